"""The archive at size: landing beside the physical limit, what is stored, how fast it is merged, read and mined."""

# ruff: noqa: S608 - tables are constants of the archive, values travel as parameters

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import date
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TypeVar

import duckdb

from jobs.analyse.mining.job import job_names
from jobs.archive.dictionary import VIEW_MEANINGS
from jobs.archive.query import files_read
from jobs.lab.bench.apart import apart
from jobs.lab.bench.archive_landing import Spent, fill, speed
from jobs.lab.bench.archive_traffic import ArchiveSize, ArchiveTraffic
from jobs.lab.bench.measuring import BenchFailed, Figures, peak_mb, say
from jobs.shared.output import Progress
from streams.archive.catalog import METADATA, LakePaths, paths_of, reading
from streams.archive.schema import TABLES
from streams.settings import load_settings
from streams.settings.archive import ArchiveSettings

QUICK = {"size": ArchiveSize(sessions=1_250, turns_per_session=400, days=7)}
_LANDED = ArchiveSize(sessions=5_000, turns_per_session=400, days=14)
_LANDED_CHUNKS = (4, 12)
"""From-to, of the traffic that landing is timed on: the first ones hold nothing but beginnings."""
_JOB_DAYS = 7
_WITHIN_S = 14_400.0
_RUNS = 3
_SHOWN_CHARS = 300
_MB = 1_000_000
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
        "landing_mb_per_s": spent.mb_per_s,
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
    """Ask each view, warm, and count the files that a query about one day of turns reads.

    Args:
        paths: The archive.
        queries: View → what is asked.
        day: One that holds turns.
    """
    query_s, failed = {}, {}
    with reading(paths) as con:
        for view, query in queries.items():
            try:
                query_s[view] = median(_seconds(con, query) for _ in range(_RUNS))
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


def _seconds(con: duckdb.DuckDBPyConnection, query: str) -> float:
    began_s = time.perf_counter()
    con.execute(query).fetchall()
    return time.perf_counter() - began_s


def _jobs_and_report(data_dir: Path, day: date) -> Figures:
    """Run each mining job on the last days, then write the report on one, as commands of their own."""
    until = ("--until", f"{day}")
    commands: dict[str, tuple[str, ...]] = {
        name: ("mine", name, "--days", f"{_JOB_DAYS}", *until) for name in job_names()
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
