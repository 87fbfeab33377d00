"""What stores have of somebody, and still have after an erasure: records of topics, and every byte of files."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import polars as pl
from aiokafka.errors import CorruptRecordException
from aiokafka.record import MemoryRecords

from models.events.topics import Topic
from streams.kafka.client import read_to_end
from streams.settings import Settings

SEARCHED = {"log.index.size.max.bytes": 16 * 1024}
"""Of a broker whose files are searched: by default each of its hundreds of indexes is a file of 10 MB of zeros."""
_SEGMENT = re.compile(r"\d{20}\.log")
"""A segment of Kafka's log; RocksDB's own logs have shorter numbers."""


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
        if path.suffix == ".parquet":
            return str(pl.read_parquet(path).rows()).encode()
        found = path.read_bytes()
    except FileNotFoundError:
        return b""  # the broker removes files meanwhile
    return found + b"".join(_records(found)) if _SEGMENT.fullmatch(path.name) else found


def _records(segment: bytes) -> Iterator[bytes]:
    """Keys and values of a segment of Kafka's log, whose batches are compressed."""
    batches = MemoryRecords(segment)
    with suppress(CorruptRecordException):  # the last batch is being written, or room for more follows
        while (batch := batches.next_batch()) is not None:
            yield from (part for record in batch for part in (record.key, record.value) if part is not None)
