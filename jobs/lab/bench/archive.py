"""The archive at size: landing beside the physical limit, what is stored, how fast it is merged, read and mined."""

# ruff: noqa: S608 - tables are constants of the archive, values travel as parameters

import os
import shutil
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TypeVar

import duckdb
import msgspec
from aiokafka import TopicPartition
from msgspec import Struct

from jobs.analyse.mining.job import JOB_NAMES
from jobs.archive.dictionary import VIEW_MEANINGS
from jobs.archive.query import files_read
from jobs.lab.bench.archive_traffic import PREFIX, ArchiveSize, ArchiveTraffic, Chunk
from jobs.lab.bench.measuring import BenchFailed, Figures, apart, peak_mb, say
from jobs.shared.output import Progress
from models.entities import REGISTRY
from models.errors import ConfigurationError
from models.policy import IntakePolicy
from models.wire.envelope import tag_of
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import METADATA, LakePaths, literal, paths_of, reading
from streams.archive.columns import fields_of, type_of
from streams.archive.landed import land_all
from streams.archive.maintenance import maintain
from streams.archive.rows import RiskPointOfSession
from streams.archive.schema import TABLE_OF, TABLES, RawTable
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from streams.settings.archive import ArchiveSettings

KEPT = "bench-archive.json"
_TOPICS = {topic.name: topic for topic in REGISTRY.archived_topics}
_TABLES = {tag_of(event): table for event, table in TABLE_OF.items() if event is not RiskPointOfSession}
"""Of the raw write, by the events' types."""
_MB = 1_000_000
_FILL = ArchiveSettings(flush_bytes=128 * 1024 * 1024, flush_rows=1_000_000)
"""Limits of one landing while the archive is filled, which is not what is timed."""


class Spent(Struct):
    """CPU time of this process, all its threads, on some turns, and bytes of all records that came with them."""

    turns: int = 0
    json_bytes: int = 0
    cpu_s: float = 0.0

    @property
    def turns_per_s(self) -> float:
        """Of one core that does nothing else."""
        return self.turns / self.cpu_s

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
    """Land polls as the archive role does, by its limits, with so many threads of DuckDB (None: one for each core).

    `progress` is told how many turns were taken.
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
            place = TopicPartition(topic.full_name(PREFIX), poll.partition)
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
    """Landing of these chunks in one thread, and beside it DuckDB alone with the same bytes; the folder is empty."""
    held, archive = list(chunks), folder / "archive"
    (folder / "duckdb").mkdir()
    paths = LakePaths(archive / "catalog.sqlite", f"{archive}{os.sep}data{os.sep}")
    spent, sizes = land(paths, held, settings, threads=1), dict(_write_json(folder, held))
    # From newline-delimited JSON into sorted Parquet in the same folders.
    raw = Spent(sum(chunk.turns for chunk in held), sum(sizes.values()))
    with duckdb.connect() as con:
        con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        for table in sizes:
            raw.on(partial(con.execute, _copy(folder, table)))
    shutil.rmtree(folder)
    return spent, raw


def _write_json(folder: Path, chunks: Sequence[Chunk]) -> Iterator[tuple[RawTable, int]]:
    values: dict[str, list[bytes]] = {}
    for record in (record for chunk in chunks for poll in chunk.fetched for record in poll.records):
        values.setdefault(_TABLES[msgspec.json.decode(record.value)["type"]].name, []).append(record.value)
    for name, of_table in values.items():
        (folder / f"{name}.json").write_bytes(b"\n".join(of_table))
        yield TABLES[name], sum(map(len, of_table))


def _copy(folder: Path, table: RawTable) -> str:
    types = {field.name: type_of(field.type).sql for event in table.carries for field in fields_of(event)}
    columns = ", ".join(f"'{name}': {literal(kind)}" for name, kind in types.items())
    file, copied = (literal(str(folder / name)) for name in (f"{table.name}.json", f"duckdb/{table.name}"))
    source = f"read_json({file}, format = 'newline_delimited', columns = {{{columns}}})"
    kept = {column.name for column in table.columns}
    names = ", ".join(f'"{name}"' for name in types if name in {*kept, "risk_points"})
    return (
        f"COPY (SELECT {names}, timestamp::DATE AS date, app_id AS app FROM {source} ORDER BY session_id, timestamp) "
        f"TO {copied} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date, app))"
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


QUICK = {"size": ArchiveSize(sessions=1_250, turns_per_session=400, days=7)}
_LANDED = ArchiveSize(sessions=5_000, turns_per_session=400, days=14)
_LANDED_CHUNKS = (4, 12)
"""From-to, of the traffic that landing is timed on: the first ones hold nothing but beginnings."""
_JOB_DAYS = 7
_WITHIN_S = 14_400.0
_RUNS = 3
_SHOWN_CHARS = 300
_Result = TypeVar("_Result")


def measure(*, size: ArchiveSize = ArchiveSize(), data_dir: Path, progress: Progress) -> Figures:
    """Measure everything.

    Raises:
        ConfigurationError: The folder holds another archive.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    settings = load_settings()
    paths = paths_of(settings.model_copy(update={"data_dir": data_dir}))
    say("landing, and the same bytes by DuckDB alone, in one thread each")
    (spent, raw), landing_peak_mb = _apart(
        _landing, data_dir / "speed", settings.archive, environment={"POLARS_MAX_THREADS": "1"}
    )
    say(f"an archive of {size.turns:,} turns")
    filled = fill(data_dir, paths, size, progress=progress)
    holds, latest = stored(paths)
    say(f"each view of {holds['bytes'] / _MB:,.0f} MB of Parquet")
    headlines = {view: meaning.headline for view, meaning in VIEW_MEANINGS.items()}
    read, query_peak_mb = _apart(read_views, paths, headlines, latest)
    say("each mining job, and the report on one day")
    return {
        **read,
        **_jobs_and_report(data_dir, latest),
        "turns": filled.turns,
        "ratio_raw_write": spent.turns_per_s / raw.turns_per_s,
        "ratio_json_size": filled.json_bytes / holds["bytes"],
        "ratio_json_size_turns": holds["turns_json_bytes"] / holds["table_bytes"]["turns"],
        "landing_turns_per_s": spent.turns_per_s,
        "landing_mb_per_s": spent.json_bytes / spent.cpu_s / _MB,
        "raw_turns_per_s": {"duckdb": raw.turns_per_s},
        "landing_peak_mb": landing_peak_mb,
        "bytes_per_turn": holds["bytes"] / filled.turns,
        "table_bytes": holds["table_bytes"],
        "files": holds["files"],
        "merge_mb_per_s": filled.merged_bytes / filled.merge_s / _MB,
        "query_peak_mb": query_peak_mb,
    }


def _apart(
    work: Callable[..., _Result], *arguments: object, environment: dict[str, str] | None = None
) -> tuple[_Result, float]:
    """Result in a process of its own, and the most memory that the process had, in MB."""
    return apart("measuring", _with_peak, work, *arguments, within_s=_WITHIN_S, too_slow="end", environment=environment)


def _with_peak(work: Callable[..., _Result], *arguments: object) -> tuple[_Result, float]:
    return work(*arguments), peak_mb()


def _landing(folder: Path, settings: ArchiveSettings) -> tuple[Spent, Spent]:
    folder.mkdir()
    return speed(folder, islice(ArchiveTraffic(_LANDED).chunks(), *_LANDED_CHUNKS), settings)


def stored(paths: LakePaths) -> tuple[Figures, date]:
    """Content of the archive: bytes, files, bytes by table, the turns' bytes as JSON; and the last day with turns."""
    with reading(paths) as con:
        rows = con.execute(
            "SELECT t.table_name, count(*), sum(f.file_size_bytes)::BIGINT "
            f"FROM {METADATA}.ducklake_data_file f JOIN {METADATA}.ducklake_table t USING (table_id) "
            "WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL GROUP BY ALL"
        ).fetchall()
        ((latest, turns_bytes),) = con.execute("SELECT max(date), sum(record_bytes)::BIGINT FROM raw.turns").fetchall()
    sizes = {name: size for name, _, size in rows if name in TABLES}
    files = sum(count for name, count, _ in rows if name in TABLES)
    holds = {"bytes": sum(sizes.values()), "files": files, "table_bytes": sizes, "turns_json_bytes": turns_bytes}
    return holds, latest


def read_views(paths: LakePaths, queries: dict[str, str], day: date) -> Figures:
    """Ask each view its query, warm, and count the files that a query about one day of turns reads."""
    query_s, failed = {}, {}
    with reading(paths) as con:

        def rows(query: str) -> object:
            return con.execute(query).fetchall()

        for view, query in queries.items():
            try:
                query_s[view] = median(timeit.repeat(partial(rows, query), number=1, repeat=_RUNS))
            except duckdb.Error as error:
                failed[view] = type(error).__name__
        scans = files_read(con, f"SELECT count(DISTINCT session_id) FROM turns WHERE date = DATE '{day}'").scans
    of_turns = [scan for scan in scans if scan.table == "turns"]
    return {
        "query_s": query_s,
        "query_failed": failed,
        "files_read": of_turns[0].files_read,
        "files_looked_into": sum(scan.files_read for scan in of_turns[1:]),
        "files_of_turns": of_turns[0].of_files,
    }


def _jobs_and_report(data_dir: Path, day: date) -> Figures:
    """Run each mining job on the last days, then write the report on one, as commands of their own."""
    until = ("--until", f"{day}")
    commands: dict[str, tuple[str, ...]] = {
        name: ("mine", name, "--days", f"{_JOB_DAYS}", *until) for name in JOB_NAMES
    }
    report = str(data_dir / "bench-report.html")
    commands["report"] = ("report", "--since", f"{day}", *until, "--to", report)
    job_s, job_peak_mb, failed = dict[str, float](), dict[str, float](), dict[str, str]()
    for name, arguments in commands.items():
        began_s = time.perf_counter()
        try:
            _, job_peak_mb[name] = _apart(_command, *arguments, environment={"TURNTIDE_DATA_DIR": str(data_dir)})
            job_s[name] = time.perf_counter() - began_s
        except BenchFailed as error:
            failed[name] = str(error)[-_SHOWN_CHARS:]
    job_peak_mb.pop("report", None)
    return {"report_day_s": job_s.pop("report", None), "job_s": job_s, "job_peak_mb": job_peak_mb, "job_failed": failed}


def _command(*arguments: str) -> None:
    """Run a command line of ours."""
    from jobs.cli import main

    sys.argv = ["turntide", *arguments, "--output", "json"]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
