"""What stores have of somebody, and still have after an erasure: records of topics, and every byte of files."""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from struct import Struct

import polars as pl
from aiokafka.record.default_records import DefaultRecordBatch

from models.events.topics import Topic
from streams.kafka.client import read_to_end
from streams.settings import Settings

SEARCHED = {"log.index.size.max.bytes": 16 * 1024}
"""Of a broker whose files are searched: by default each of its hundreds of indexes is a file of 10 MB of zeros."""
_SEGMENT = re.compile(r"\d{20}\.log")
"""A segment of Kafka's log; RocksDB's own logs have shorter numbers."""
_PARQUET = b"PAR1"
"""What a Parquet file begins and ends with."""
_BEGINS, _MAGIC, _HEADER = Struct(">qi"), 16, 61
"""A batch begins with its first offset and the number of bytes that follow; where its format stands, and the least."""


def files_with(folder: Path, *needles: str | bytes) -> list[str]:
    """Files and folders below a folder in which, or in whose path, any of these stand; by their path from there."""
    wanted = [each.encode() if isinstance(each, str) else each for each in needles]
    paths = [(str(path.relative_to(folder)), path) for path in sorted(folder.rglob("*"))]
    held = [(name, name.encode() + (path.read_bytes() if path.is_file() else b"")) for name, path in paths]
    return [name for name, data in held if any(each in data for each in wanted)]


def holding(folder: Path, word: str) -> list[str]:
    """Files below a folder in which a word stands; Parquet is compressed and read as what it says."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [str(path.relative_to(folder)) for path in files if word.encode() in _bytes(path).lower()]


async def valued(settings: Settings, topic: Topic, word: str) -> int:
    """Records of a topic in which a word comes, as readers with the keys have them."""
    found = read_to_end(settings.kafka, topic.full_name(settings.topic_prefix))
    return sum([word in (record.value or b"").decode().lower() async for record in found])


async def remembered(settings: Settings, topics: Iterable[Topic], words: Iterable[str]) -> bool:
    """Whether these words have come to all of these topics."""
    for topic, word in product(topics, words):
        if not await valued(settings, topic, word):
            return False
    return True


def _bytes(path: Path) -> bytes:
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return b""  # the broker removes files meanwhile
    if path.suffix == ".parquet" and found[len(_PARQUET) :].endswith(_PARQUET):  # else it is still being written
        return str(pl.read_parquet(found).rows()).encode()
    return found + b"".join(_records(found)) if _SEGMENT.fullmatch(path.name) else found


def _records(segment: bytes) -> Iterator[bytes]:
    """What whole batches of a segment of Kafka's log say, which are compressed; whatever lies between them is left."""
    at = 0
    while (magic := segment.find(2, at + _MAGIC)) >= 0:
        at = magic - _MAGIC
        _, follows = _BEGINS.unpack_from(segment, at)
        batch = segment[at : at + _BEGINS.size + follows]
        if len(batch) < _HEADER or not (records := DefaultRecordBatch(batch)).validate_crc():
            at += 1
            continue
        for record in records:
            said = (record.key, record.value, *(value for _, value in record.headers))
            yield from (part for part in said if part is not None)
        at += len(batch)
