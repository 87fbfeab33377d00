"""What stores have of somebody, and still have after an erasure: every byte of their files."""

import os
import re
from collections.abc import Iterator
from errno import ENXIO
from io import BytesIO
from pathlib import Path
from struct import Struct

import fastavro
import polars as pl
from aiokafka.record.default_records import DefaultRecordBatch

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
    held = [(name, name.encode() + (_written(path) if path.is_file() else b"")) for name, path in paths]
    return [name for name, data in held if any(each in data for each in wanted)]


def holding(folder: Path, word: str) -> list[str]:
    """Files below a folder in which a word stands, given in lower case; what compressed ones say is read, too."""
    return [*_holding(folder, word)]


def holds(folder: Path, word: str) -> bool:
    """Whether there is such a file; those after the first are not read."""
    return any(True for _ in _holding(folder, word))


def _holding(folder: Path, word: str) -> Iterator[str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    yield from (str(path.relative_to(folder)) for path in files if word.encode() in _bytes(path).lower())


def _bytes(path: Path) -> bytes:
    try:
        found = _written(path)
    except FileNotFoundError:
        return b""  # the broker removes files meanwhile
    if path.suffix == ".parquet" and found[len(_PARQUET) :].endswith(_PARQUET):  # else it is still being written
        return found + str(pl.read_parquet(found).rows()).encode()
    if path.suffix == ".avro":
        return found + str([*fastavro.reader(BytesIO(found))]).encode()
    return found + b"".join(_records(found)) if _SEGMENT.fullmatch(path.name) else found


def _written(path: Path) -> bytes:
    """The file's bytes; a hole of a sparse one, of which stores have gigabytes, is read as a single zero."""
    parts, at = [], 0
    with path.open("rb", buffering=0) as file:
        try:
            while True:
                begins = os.lseek(file.fileno(), at, os.SEEK_DATA)
                at = os.lseek(file.fileno(), begins, os.SEEK_HOLE)
                parts.append(os.pread(file.fileno(), at - begins, begins))
        except OSError as error:
            if error.errno != ENXIO:  # the last hole has no data behind it; what cannot be read holds who knows what
                raise
    return b"\0".join(parts)


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
