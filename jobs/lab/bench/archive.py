"""The archive at size: landing beside the physical limit, what is stored, how fast it is merged, read and mined."""

# ruff: noqa: S608 - tables are constants of the archive, values travel as parameters

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TypeVar

import duckdb
from msgspec import Struct
from msgspec.structs import asdict

from jobs.analyse.mining.jobs import job_names
from jobs.archive.query_files import files_read
from jobs.archive.view_meanings import VIEW_MEANINGS
from jobs.lab.bench import measuring
from jobs.lab.bench.apart import apart
from jobs.lab.bench.archive_landing import Filled, Spent, fill, speed
from jobs.lab.bench.archive_traffic import ArchiveSize, ArchiveTraffic
from jobs.lab.bench.measuring import Figures, Say, peak_mb
from jobs.shared.progress import Progress
from streams.archive.catalog import METADATA, LakePaths, paths_of, reading
from streams.archive.schema import TABLES
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings

FULL = ArchiveSize()
QUICK = ArchiveSize(sessions=1_250, turns_per_session=400, days=7)
_LANDED = ArchiveSize(sessions=5_000, turns_per_session=400, days=14)
_LANDED_CHUNKS = (4, 12)
"""From-to, of the traffic that landing is timed on: the first ones hold nothing but beginnings."""
_JOB_DAYS = 7
_THREADS = "POLARS_MAX_THREADS"
_WITHIN_S = 14_400.0
_Result = TypeVar("_Result")
_MB = 1_000_000


class ReadingTimes(Struct, frozen=True):
    """How long reading takes, warm.

    Attributes:
        query_s: View → its headline query, median.
        query_failed: View → why it was not answered.
        files_read: By a query about one day of turns.
        files_looked_into: By the same query, for repeats of its rows.
        files_of_turns: There are so many in all.
    """

    query_s: dict[str, float]
    query_failed: dict[str, str]
    files_read: int
    files_looked_into: int
    files_of_turns: int


def headline_queries() -> dict[str, str]:
    """View → what the dictionary asks of it."""
    return {view: meaning.headline for view, meaning in VIEW_MEANINGS.items()}


def measure(data_dir: Path, settings: Settings, size: ArchiveSize, *, say: Say, progress: Progress) -> Figures:
    """Measure everything.

    Raises:
        ConfigurationError: The folder holds another archive.
        BenchFailed: A process died.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    paths = paths_of(settings.model_copy(update={"data_dir": data_dir}))
    say("landing, and the same bytes by DuckDB and polars alone, in one thread each")
    (spent, raw), landing_peak_mb = _apart(_landing, data_dir / "speed", settings.archive, threads="1")
    say(f"an archive of {size.turns:,} turns")
    filled = fill(data_dir, paths, size, progress=progress)
    holds = stored(paths)
    say(f"each view of {holds.bytes / _MB:,.0f} MB of Parquet")
    read, query_peak_mb = _apart(read_views, paths, headline_queries(), holds.latest)
    say("each mining job, and the report on one day")
    mined, report = jobs_and_report(data_dir, holds.latest, _JOB_DAYS)
    return _summary(filled, holds, (spent, raw, landing_peak_mb), (read, query_peak_mb), (mined, report))


def _with_peak(work: Callable[..., _Result], *arguments: object) -> tuple[_Result, float]:
    """What it gives, and the most memory that the process had, in MB."""
    return work(*arguments), peak_mb()


def _apart(work: Callable[..., _Result], *arguments: object, threads: str | None = None) -> tuple[_Result, float]:
    environment = {**os.environ, **({} if threads is None else {_THREADS: threads})}
    return asyncio.run(
        apart("measuring", _with_peak, work, *arguments, within_s=_WITHIN_S, too_slow="end", environment=environment)
    )


def _landing(folder: Path, settings: ArchiveSettings) -> tuple[Spent, dict[str, Spent]]:
    folder.mkdir()
    return speed(folder, islice(ArchiveTraffic(_LANDED).chunks(), *_LANDED_CHUNKS), settings)


def _summary(
    filled: Filled,
    holds: StoredBytes,
    landed: tuple[Spent, Mapping[str, Spent], float],
    asked: tuple[ReadingTimes, float],
    made: tuple[Mapping[str, Ran], Ran],
) -> Figures:
    (spent, raw, landing_peak_mb), (read, query_peak_mb), (mined, report) = landed, asked, made
    done = {name: each for name, each in mined.items() if not each.failure}
    return {
        **asdict(read),
        "turns": filled.turns,
        "ratio_raw_write": spent.turns_per_s / max(each.turns_per_s for each in raw.values()),
        "ratio_json_size": filled.json_bytes / holds.bytes,
        "ratio_json_size_turns": holds.turns_json_bytes / holds.bytes_by_table["turns"],
        "landing_turns_per_s": spent.turns_per_s,
        "landing_mb_per_s": spent.mb_per_s,
        "raw_turns_per_s": {name: each.turns_per_s for name, each in raw.items()},
        "landing_peak_mb": landing_peak_mb,
        "bytes_per_turn": holds.bytes / filled.turns,
        "table_bytes": holds.bytes_by_table,
        "files": holds.files,
        "merge_mb_per_s": filled.merged_bytes / filled.merge_s / _MB,
        "query_peak_mb": query_peak_mb,
        "job_s": {name: each.seconds for name, each in done.items()},
        "job_peak_mb": {name: each.peak_mb for name, each in done.items()},
        "job_failed": {name: each.failure for name, each in {**mined, "report": report}.items() if each.failure},
        "report_day_s": None if report.failure else report.seconds,
    }


RUNS = 3
_SHOWN_CHARS = 300


class StoredBytes(Struct, frozen=True):
    """What lies in the archive.

    Attributes:
        bytes: Of all Parquet files.
        files: How many.
        bytes_by_table: By table.
        turns_json_bytes: What the turns were as JSON.
        latest: The last day with turns.
    """

    bytes: int
    files: int
    bytes_by_table: dict[str, int]
    turns_json_bytes: int
    latest: date


class Ran(Struct, frozen=True):
    """A command that was run.

    Attributes:
        seconds: From start to end.
        peak_mb: Most memory that it had.
        failure: Why it did not end well; empty if it did.
    """

    seconds: float
    peak_mb: float
    failure: str = ""


def stored(paths: LakePaths) -> StoredBytes:
    """What lies in the archive."""
    with reading(paths) as con:
        rows = con.execute(
            "SELECT t.table_name, count(*), sum(f.file_size_bytes)::BIGINT "
            f"FROM {METADATA}.ducklake_data_file f JOIN {METADATA}.ducklake_table t USING (table_id) "
            "WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL GROUP BY ALL"
        ).fetchall()
        latest, turns_json_bytes = con.execute("SELECT max(date), sum(record_bytes)::BIGINT FROM raw.turns").fetchall()[
            0
        ]
    sizes = {name: size for name, _, size in rows if name in TABLES}
    return StoredBytes(
        sum(sizes.values()), sum(row[1] for row in rows if row[0] in TABLES), sizes, turns_json_bytes, latest
    )


def read_views(paths: LakePaths, queries: dict[str, str], day: date) -> ReadingTimes:
    """Ask each view.

    Args:
        paths: The archive.
        queries: View → what is asked.
        day: One that holds turns.
    """
    query_s, failed = {}, {}
    with reading(paths) as con:
        for view, query in queries.items():
            try:
                query_s[view] = sorted(_seconds(con, query) for _ in range(RUNS))[RUNS // 2]
            except duckdb.Error as error:
                failed[view] = type(error).__name__
        scans = files_read(con, f"SELECT count(DISTINCT session_id) FROM turns WHERE date = DATE '{day}'").scans
    of_turns = [scan for scan in scans if scan.table == "turns"]
    return ReadingTimes(
        query_s,
        failed,
        of_turns[0].files_read,
        sum(scan.files_read for scan in of_turns[1:]),
        of_turns[0].of_files,
    )


def _seconds(con: duckdb.DuckDBPyConnection, query: str) -> float:
    begun = time.perf_counter()
    con.execute(query).fetchall()
    return time.perf_counter() - begun


def jobs_and_report(data_dir: Path, day: date, days: int) -> tuple[dict[str, Ran], Ran]:
    """Run each mining job on the last days, then write the report on one, as commands of their own.

    Args:
        data_dir: Where the archive is; what the jobs make of it is made anew.
        day: The last day.
        days: So many up to that.
    """
    mined = {name: ran(data_dir, "mine", name, "--days", str(days), "--until", f"{day}") for name in job_names()}
    with tempfile.TemporaryDirectory(prefix="turntide-bench-") as folder:
        file = str(Path(folder) / "report.html")
        report = ran(data_dir, "report", "--since", f"{day}", "--until", f"{day}", "--to", file)
    return mined, report


def ran(data_dir: Path, *arguments: str) -> Ran:
    """Run a command of ours on a data directory, and see what it took."""
    environment = {**os.environ, "TURNTIDE_DATA_DIR": str(data_dir)}
    with tempfile.TemporaryDirectory(prefix="turntide-bench-") as folder:
        peak = Path(folder) / "peak"
        command = (sys.executable, "-m", measuring.__name__, str(peak), *arguments, "--output", "json")
        begun = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - our own
        seconds = time.perf_counter() - begun
        failure = done.stderr.decode(errors="replace")[-_SHOWN_CHARS:] if done.returncode else ""
        return Ran(seconds, float(peak.read_text()) if peak.exists() else 0.0, failure)
