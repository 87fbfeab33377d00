"""Landing of records that are at hand, and the same bytes read and written without any of it, in one thread each."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Any

import duckdb
import msgspec
import polars as pl
from msgspec import Struct

from jobs.lab.bench.archive_traffic import PREFIX, ArchiveSize, ArchiveTraffic, Chunk
from jobs.lab.bench.measuring import BenchFailed
from jobs.shared.progress import Progress
from models.entities import REGISTRY
from models.errors import ConfigurationError
from models.policy import IntakePolicy
from streams.archive.buffer import LandingBuffer
from streams.archive.catalog import LakePaths, literal
from streams.archive.columns import fields_of, type_of
from streams.archive.landed import land_all
from streams.archive.maintenance import maintain
from streams.archive.progress import ArchivedPartition, Move
from streams.archive.schema import TABLES
from streams.archive.writer import LakeWriter
from streams.settings.archive import ArchiveSettings

_TOPICS = {topic.name: topic for topic in REGISTRY.archived_topics}
_RAW_TABLES = {
    "turns.v1": "turns",
    "profiles.v1": "profiles",
    "windows.v1": "windows",
    "compactions.v1": "compactions",
    "conversation-topics.v1": "topics",
    "episodes.v1": "episodes",
    "facts.v1": "facts",
    "commands.v1": "commands",
}
_OF_TURNS = ("turns.v1", "commands.v1")
"""Topics that hold turns and other events, which are left out of the raw write."""
_MAPPINGS = ("metadata", "repeated_topics")
_MB = 1_000_000


class Spent(Struct):
    """Work on some turns.

    Attributes:
        turns: Turns; what the roles say of them came with them.
        json_bytes: Of all records.
        cpu_s: Of this process, all its threads; what others do on the machine counts less than in `wall_s`.
        wall_s: By the clock.
    """

    turns: int = 0
    json_bytes: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0

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
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        work()
        self.cpu_s += time.process_time() - cpu_s
        self.wall_s += time.perf_counter() - wall_s


class Lander:
    """Lands polls as the archive role does, by its limits.

    Args:
        paths: The archive.
        settings: Its limits.
        threads: Of DuckDB; None: all cores.
    """

    def __init__(self, paths: LakePaths, settings: ArchiveSettings, *, threads: int | None = None) -> None:
        self.spent = Spent()
        self.writer = LakeWriter(paths)
        self._threads = threads
        self._settings = settings
        self._intake = IntakePolicy()
        self._buffer = LandingBuffer()
        self._moves = self.writer.offsets()
        self._limit_threads()

    def take(self, chunk: Chunk) -> None:
        """Land a chunk, as far as it is due."""
        self.spent.turns += chunk.turns
        self.spent.json_bytes += chunk.json_bytes
        self.spent.on(lambda: self._take(chunk))

    def finish(self) -> None:
        """Land the rest."""
        self.spent.on(self._land)

    def close(self) -> None:
        """Let go of the archive."""
        self.writer.close()

    def _limit_threads(self) -> None:
        if self._threads is not None:
            self.writer.con.execute(f"SET threads = {self._threads:d}")

    def _take(self, chunk: Chunk) -> None:
        for poll in chunk.fetched:
            topic = _TOPICS[poll.topic]
            name = topic.full_name(PREFIX)
            landing = land_all(topic, name, poll.records, self._intake)
            self._buffer.take(landing.rows)
            self._buffer.skip_all(landing.skipped)
            place = ArchivedPartition(name, poll.partition)
            move = self._moves.get(place, Move(None, 0, 0))
            self._moves[place] = self._buffer.moves[place] = move._replace(next=poll.records[-1].offset + 1)
            if self._buffer.records >= self._settings.flush_rows or self._buffer.bytes >= self._settings.flush_bytes:
                self._land()

    def _land(self) -> None:
        buffer, self._buffer = self._buffer, LandingBuffer()
        if buffer.moves:
            self.writer.land(buffer, now=datetime.now(UTC))
        for place, move in buffer.moves.items():
            self._moves[place] = move.landed


def raw_limits(folder: Path, chunks: Sequence[Chunk]) -> dict[str, Spent]:
    """The same bytes from newline-delimited JSON into sorted Parquet in the same folders, by DuckDB and by polars.

    Set `POLARS_MAX_THREADS=1` before polars is imported; DuckDB gets one thread here.

    Args:
        folder: Empty, for files.
        chunks: What to read and write.
    """
    sizes = dict(_write_json(folder, chunks))
    turns, json_bytes = sum(chunk.turns for chunk in chunks), sum(sizes.values())
    spent = {"duckdb": Spent(turns, json_bytes), "polars": Spent(turns, json_bytes)}
    with duckdb.connect() as con:
        con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        for table in sizes:
            spent["duckdb"].on(partial(con.execute, _copy(folder, table)))
    for table in sizes:
        spent["polars"].on(partial(_by_polars, folder, table))
    return spent


def _write_json(folder: Path, chunks: Sequence[Chunk]) -> Iterator[tuple[str, int]]:
    for topic, table in _RAW_TABLES.items():
        values = [
            record.value or b""
            for chunk in chunks
            for poll in chunk.fetched
            if poll.topic == topic
            for record in poll.records
            if topic not in _OF_TURNS or b'"role":' in (record.value or b"")
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


def _by_polars(folder: Path, table: str) -> None:
    # Mappings are left out, which polars cannot read as text: in its favour.
    schema = {
        field.name: _as_written(type_of(field.type).polars)
        for field in fields_of(TABLES[table].carries[0])
        if field.name not in _MAPPINGS
    }
    frame = pl.read_ndjson(folder / f"{table}.json", schema=schema)
    frame = frame.with_columns(pl.col("timestamp").str.to_datetime(time_unit="us", time_zone="UTC"))
    frame = frame.with_columns(date=pl.col("timestamp").dt.date()).sort("session_id", "timestamp")
    parts = frame.drop("content" if table == "commands" else ()).partition_by("date", "app_id", maintain_order=True)
    for number, part in enumerate(parts):
        part.write_parquet(folder / f"{table}-{number}.parquet", compression="zstd", compression_level=3)


def _as_written(kept: Any) -> Any:
    """How JSON says it: times are text."""
    match kept:
        case pl.Struct():
            return pl.Struct({field.name: _as_written(field.dtype) for field in kept.fields})
        case pl.List():
            return pl.List(_as_written(kept.inner))
        case pl.Datetime():
            return pl.String()
    return kept


def speed(folder: Path, chunks: Iterable[Chunk], settings: ArchiveSettings) -> tuple[Spent, dict[str, Spent]]:
    """Landing of these chunks in one thread, and the limits beside it.

    Args:
        folder: Empty.
        chunks: What is landed; held in memory.
        settings: Limits of a landing.
    """
    held = list(chunks)
    archive, raw = folder / "archive", folder / "raw"
    raw.mkdir()
    (raw / "duckdb").mkdir()
    lander = Lander(LakePaths(archive / "catalog.sqlite", f"{archive}{os.sep}data{os.sep}"), settings, threads=1)
    for chunk in held:
        lander.take(chunk)
    lander.finish()
    lander.close()
    limits = raw_limits(raw, held)
    shutil.rmtree(folder)
    return lander.spent, limits


KEPT = "bench-archive.json"
_WAITING_CHUNKS = 2
_LOOK_EVERY_S = 5
_FILL_BYTES = 128 * 1024 * 1024
"""Of one landing while the archive is filled, which is not what is timed."""


class Filled(Struct, frozen=True):
    """What an archive was filled with.

    Attributes:
        size: What was asked for.
        turns: Turns.
        json_bytes: Of all records.
        merge_s: How long it took to merge all files.
        merged_bytes: What was merged.
        merged_files: Likewise.
    """

    size: ArchiveSize
    turns: int
    json_bytes: int
    merge_s: float
    merged_bytes: int
    merged_files: int


def kept(data_dir: Path) -> Filled | None:
    """What an earlier run filled this archive with, None if there is none."""
    file = data_dir / KEPT
    return msgspec.json.decode(file.read_bytes(), type=Filled) if file.is_file() else None


def fill(data_dir: Path, paths: LakePaths, size: ArchiveSize, *, progress: Progress) -> Filled:
    """Fill an archive, or find that it is.

    Raises:
        ConfigurationError: There is another archive.
        BenchFailed: The process that makes the events died.
    """
    found = kept(data_dir)
    if found is not None and found.size == size:
        # An archive of an earlier release gets what it lacks.
        LakeWriter(paths).close()
        return found
    if found is not None or paths.catalog.exists():
        raise ConfigurationError(f"{data_dir} holds another archive: name an empty folder with --data-dir")
    lander = Lander(paths, ArchiveSettings(flush_bytes=_FILL_BYTES, flush_rows=1_000_000))
    with _made(size) as chunks:
        for chunk in chunks:
            lander.take(chunk)
            progress(lander.spent.turns, size.turns)
    lander.finish()
    lander.close()
    merge_s, merged_bytes, files = _merge(paths)
    filled = Filled(size, lander.spent.turns, lander.spent.json_bytes, merge_s, merged_bytes, files)
    (data_dir / KEPT).write_bytes(msgspec.json.encode(filled))
    return filled


def _merge(paths: LakePaths) -> tuple[float, int, int]:
    size = sum(file.stat().st_size for file in Path(paths.data).rglob("*.parquet"))
    begun = time.perf_counter()
    writer = LakeWriter(paths)
    done = maintain(writer, now=datetime.now(UTC), keep_replaced=timedelta(0), everything=True)
    writer.close()
    return time.perf_counter() - begun, size, done.merged_files


@contextmanager
def _made(size: ArchiveSize) -> Iterator[Iterator[Chunk]]:
    """Chunks from a process of its own, so that making them and landing them go on at once."""
    context = get_context("spawn")
    queue: Queue[Chunk | None] = context.Queue(_WAITING_CHUNKS)
    maker = context.Process(target=_make, args=(size, queue), daemon=True)
    maker.start()
    try:
        yield _taken(queue, maker)
    finally:
        if maker.is_alive():
            maker.terminate()
        maker.join()


def _taken(queue: Queue[Chunk | None], maker: BaseProcess) -> Iterator[Chunk]:
    while True:
        try:
            chunk = queue.get(timeout=_LOOK_EVERY_S)
        except Empty:
            if not maker.is_alive() and queue.empty():
                raise BenchFailed(
                    f"the process that makes the events ended with code {maker.exitcode}: is there enough memory?"
                ) from None
            continue
        if chunk is None:
            return
        yield chunk


def _make(size: ArchiveSize, queue: Queue[Chunk | None]) -> None:
    for chunk in ArchiveTraffic(size).chunks():
        queue.put(chunk)
    queue.put(None)
