"""Read times of an archive: each view, one day of it, each mining job, and the report on a day."""

# ruff: noqa: S608 - tables are constants of the archive, values travel as parameters

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import duckdb
from msgspec import Struct

from jobs.analyse.mining.jobs import job_names
from jobs.archive.query_files import files_read
from jobs.lab.bench import archive_child
from streams.archive.catalog import METADATA, LakePaths, reading
from streams.archive.schema import TABLES

RUNS = 3
_SHOWN_CHARS = 300


class Stored(Struct, frozen=True):
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


class Reading(Struct, frozen=True):
    """How long reading takes, warm.

    Attributes:
        query_s: View → its headline query, median.
        failed: View → why it was not answered.
        files_read: By a query about one day of turns.
        files_looked_into: By the same query, for repeats of its rows.
        files_of_turns: There are so many in all.
    """

    query_s: dict[str, float]
    failed: dict[str, str]
    files_read: int
    files_looked_into: int
    files_of_turns: int


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


def stored(paths: LakePaths) -> Stored:
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
    return Stored(sum(sizes.values()), sum(row[1] for row in rows if row[0] in TABLES), sizes, turns_json_bytes, latest)


def read_views(paths: LakePaths, queries: dict[str, str], day: date) -> Reading:
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
    return Reading(
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
        command = (sys.executable, "-m", archive_child.__name__, str(peak), *arguments, "--output", "json")
        begun = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - our own
        seconds = time.perf_counter() - begun
        failure = done.stderr.decode(errors="replace")[-_SHOWN_CHARS:] if done.returncode else ""
        return Ran(seconds, float(peak.read_text()) if peak.exists() else 0.0, failure)
