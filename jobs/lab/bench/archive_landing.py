"""Landing of records that are at hand, and the same bytes read and written without any of it, in one thread each."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import msgspec
from msgspec import Struct

from jobs.lab.bench.archive_traffic import PREFIX, ArchiveSize, ArchiveTraffic, Chunk
from jobs.shared.output import Progress
from models.entities import REGISTRY, TOPIC_OF
from models.errors import ConfigurationError
from models.policy import IntakePolicy
from streams.archive.buffer import ArchivedPartition, LandingBuffer, Move
from streams.archive.catalog import LakePaths, literal
from streams.archive.columns import fields_of, type_of
from streams.archive.landed import land_all
from streams.archive.maintenance import maintain
from streams.archive.schema import TABLES
from streams.archive.writer import LakeWriter
from streams.settings.archive import ArchiveSettings

KEPT = "bench-archive.json"
_TOPICS = {topic.name: topic for topic in REGISTRY.archived_topics}
_RAW = ("turns", "profiles", "windows", "compactions", "topics", "episodes", "facts", "commands")
"""Tables of the raw write."""
_OF_TURNS = ("turns.v1", "commands.v1")
"""Topics that hold turns and other events, which are left out of the raw write."""
_MAPPINGS = ("metadata", "repeated_topics")
_MB = 1_000_000
_FILL = ArchiveSettings(flush_bytes=128 * 1024 * 1024, flush_rows=1_000_000)
"""Limits of one landing while the archive is filled, which is not what is timed."""


class Spent(Struct):
    """Work on some turns.

    Attributes:
        turns: Turns; what the roles say of them came with them.
        json_bytes: Of all records.
        cpu_s: Of this process, all its threads.
    """

    turns: int = 0
    json_bytes: int = 0
    cpu_s: float = 0.0

    @property
    def turns_per_s(self) -> float:
        """Of one core that does nothing else."""
        return self.turns / self.cpu_s

    @property
    def mb_per_s(self) -> float:
        """Megabytes (10⁶) of JSON, of one core."""
        return self.json_bytes / self.cpu_s / _MB

    def on(self, work: Callable[[], object]) -> None:
        """Do it and count the time."""
        began_s = time.process_time()
        work()
        self.cpu_s += time.process_time() - began_s


def land(
    paths: LakePaths,
    chunks: Iterable[Chunk],
    settings: ArchiveSettings,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Spent:
    """Land polls as the archive role does, by its limits.

    Args:
        paths: The archive.
        chunks: Polls.
        settings: Its limits.
        threads: Of DuckDB; None: all cores.
        progress: Told how many turns were taken.
    """
    spent, writer, buffer = Spent(), LakeWriter(paths), LandingBuffer()
    moves, intake = writer.offsets(), IntakePolicy()
    if threads is not None:
        writer.con.execute(f"SET threads = {threads:d}")

    def write() -> None:
        nonlocal buffer
        if buffer.moves:
            writer.land(buffer, now=datetime.now(UTC))
        moves.update((place, move.landed) for place, move in buffer.moves.items())
        buffer = LandingBuffer()

    def take(chunk: Chunk) -> None:
        for poll in chunk.fetched:
            topic = _TOPICS[poll.topic]
            place = ArchivedPartition(topic.full_name(PREFIX), poll.partition)
            landing = land_all(topic, place.topic, poll.records, intake)
            buffer.take(landing.rows)
            buffer.skip_all(landing.skipped)
            move = moves.get(place, Move(None, 0, 0))._replace(next=poll.records[-1].offset + 1)
            moves[place] = buffer.moves[place] = move
            if buffer.records >= settings.flush_rows or buffer.bytes >= settings.flush_bytes:
                write()

    for chunk in chunks:
        spent.turns += chunk.turns
        spent.json_bytes += chunk.json_bytes
        spent.on(partial(take, chunk))
        progress(spent.turns)
    spent.on(write)
    writer.close()
    return spent


def speed(folder: Path, chunks: Iterable[Chunk], settings: ArchiveSettings) -> tuple[Spent, Spent]:
    """Landing of these chunks in one thread, and beside it DuckDB alone with the same bytes.

    Args:
        folder: Empty.
        chunks: What is landed; held in memory.
        settings: Limits of a landing.
    """
    held, archive = list(chunks), folder / "archive"
    (folder / "duckdb").mkdir()
    paths = LakePaths(archive / "catalog.sqlite", f"{archive}{os.sep}data{os.sep}")
    spent, raw = land(paths, held, settings, threads=1), _raw_limit(folder, held)
    shutil.rmtree(folder)
    return spent, raw


def _raw_limit(folder: Path, chunks: Sequence[Chunk]) -> Spent:
    """The same bytes from newline-delimited JSON into sorted Parquet in the same folders, by DuckDB in one thread."""
    sizes = dict(_write_json(folder, chunks))
    spent = Spent(sum(chunk.turns for chunk in chunks), sum(sizes.values()))
    with duckdb.connect() as con:
        con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        for table in sizes:
            spent.on(partial(con.execute, _copy(folder, table)))
    return spent


def _write_json(folder: Path, chunks: Sequence[Chunk]) -> Iterator[tuple[str, int]]:
    for topic, table in ((TOPIC_OF[TABLES[table].carries[0]].name, table) for table in _RAW):
        values = [
            record.value
            for chunk in chunks
            for poll in chunk.fetched
            if poll.topic == topic
            for record in poll.records
            if topic not in _OF_TURNS or b'"role":' in record.value
        ]
        if values:
            (folder / f"{table}.json").write_bytes(b"\n".join(values))
            yield table, sum(map(len, values))


def _copy(folder: Path, table: str) -> str:
    types = {
        field.name: "JSON" if field.name in _MAPPINGS else type_of(field.type).sql
        for field in fields_of(TABLES[table].carries[0])
    }
    columns = ", ".join(f"'{name}': {literal(kind)}" for name, kind in types.items())
    file = literal(str(folder / f"{table}.json"))
    source = f"read_json({file}, format = 'newline_delimited', columns = {{{columns}}})"
    kept = {column.name for column in TABLES[table].columns}
    names = ", ".join(f'"{name}"' for name in types if name in {*kept, "risk_points"})
    return (
        f"COPY (SELECT {names}, timestamp::DATE AS date, app_id AS app FROM {source} ORDER BY session_id, timestamp) "  # noqa: S608
        f"TO {literal(str(folder / 'duckdb' / table))} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date, app))"
    )


class Filled(Struct, frozen=True):
    """Content of an archive: its size, turns, bytes of all records, and what merging its files took."""

    size: ArchiveSize
    turns: int
    json_bytes: int
    merge_s: float
    merged_bytes: int


def fill(data_dir: Path, paths: LakePaths, size: ArchiveSize, *, progress: Progress) -> Filled:
    """Fill an archive, or find that it is.

    Raises:
        ConfigurationError: There is another archive.
    """
    kept = data_dir / KEPT
    found = msgspec.json.decode(kept.read_bytes(), type=Filled) if kept.is_file() else None
    if found is not None and found.size == size:
        LakeWriter(paths).close()  # an archive of an earlier release gets what it lacks
        return found
    if found is not None or paths.catalog.exists():
        raise ConfigurationError(f"{data_dir} holds another archive: name an empty folder with --data-dir")
    spent = land(paths, ArchiveTraffic(size).chunks(), _FILL, progress=lambda turns: progress(turns, size.turns))
    merged_bytes = sum(file.stat().st_size for file in Path(paths.data).rglob("*.parquet"))
    began_s, writer = time.perf_counter(), LakeWriter(paths)
    maintain(writer, now=datetime.now(UTC), keep_replaced=timedelta(0), everything=True)
    writer.close()
    filled = Filled(size, spent.turns, spent.json_bytes, time.perf_counter() - began_s, merged_bytes)
    kept.write_bytes(msgspec.json.encode(filled))
    return filled
