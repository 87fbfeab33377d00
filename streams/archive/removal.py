"""Removing rows for good: what an erasure and retention do with rows once they know which.

Deleted rows stay in DuckLake's files until they are written anew, replaced files until they are cleaned up, the files'
statistics (least and greatest session id …) in free pages of the catalog until it is vacuumed. Readers that still are
in a replaced file fail, and ask again. Every step may be repeated. Text is gone from the files, not from the disk's
blocks: that is up to the file system.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from models.errors import StoreUnavailable
from models.events.erase import ErasedStore
from streams.archive import postgres, vacuum
from streams.archive.catalog import LAKE, METADATA, LakePaths, summary_of
from streams.archive.maintenance import maintain, schedule_orphans
from streams.archive.schema import QUERIES, RAW
from streams.archive.writer import LakeWriter

_ANY_TIME = datetime(9999, 1, 1, tzinfo=UTC)
PLACES = "removed_places"
"""Temporary table of the rows that go: `topic` (without prefix), `kafka_partition`, `kafka_offset`."""


def note_removed(con: duckdb.DuckDBPyConnection, reason: str, now: datetime) -> None:
    """Note the offsets of `PLACES` as skipped for this reason, in the transaction that removes their rows."""
    con.execute(QUERIES["note_removed"], [reason, now])


def remove_for_good(writer: LakeWriter, *, now: datetime) -> None:
    """Remove every byte of rows that are deleted, now or by a call that was cut short. Under the writers' lock.

    Raises:
        StoreUnavailable: A reader keeps the catalog: call again.
    """
    _write_anew(writer)
    # A file that no snapshot names is what a killed writer left; nobody else is writing now.
    schedule_orphans(writer, _ANY_TIME)
    maintain(writer, now=now, keep_replaced=timedelta(0))
    _vacuum(writer.paths)
    if writer.paths.is_folder:
        _remove_empty_folders(Path(writer.paths.data))


def _write_anew(writer: LakeWriter) -> None:
    """Write files anew that have deleted rows, of this erasure or of one that was cut short."""
    tables = writer.con.execute(
        f"SELECT DISTINCT t.table_name FROM {METADATA}.ducklake_delete_file d "
        f"JOIN {METADATA}.ducklake_table t USING (table_id) WHERE d.end_snapshot IS NULL AND t.end_snapshot IS NULL"
    ).fetchall()
    for (name,) in tables:
        writer.con.execute(
            f"CALL ducklake_rewrite_data_files('{LAKE}', '{name}', schema => '{RAW}', delete_threshold => 0.0)"
        )


def _vacuum(paths: LakePaths) -> None:
    """Of a catalog in SQLite in a process of its own, see `vacuum`."""
    if paths.postgres is not None:
        in_the_way = postgres.vacuum(paths.postgres)
    else:
        command = [sys.executable, "-I", vacuum.__file__, str(paths.catalog)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own module
        in_the_way = (done.stderr or "it failed") if done.returncode else ""
    if in_the_way:
        raise StoreUnavailable(
            f"removing rows left deleted bytes in {paths.shown}: {summary_of(RuntimeError(in_the_way))}. "
            "The rows are removed; repeat it for the bytes"
        )


def _remove_empty_folders(data: Path) -> None:
    """Folders carry apps' names."""
    for folder in sorted((path for path in data.glob("**/") if path != data), reverse=True):
        if next(folder.iterdir(), None) is None:
            folder.rmdir()


FOLDER = "mining"
"""Under the data directory: a folder for each job."""
LOCK = ".lock"
"""In the folder of a job, held by whoever makes or removes its days."""
_TIMEOUT_S = 60


def forget_mined(folder: Path) -> ErasedStore:
    """Remove every day and result that mining keeps beside the archive, and count the days; they are made again.

    Call it with every erasure and every retention, when the archive's rows are gone: a run of mining that saw them
    holds the lock until it has written.

    Raises:
        StoreUnavailable: A run of mining holds a job's folder; call again.
    """
    days = remaining = 0
    for job in sorted(path for path in folder.glob("*") if path.is_dir()):
        try:
            with FileLock(job / LOCK, timeout=_TIMEOUT_S):
                days += sum(1 for _ in (job / "parts").glob("*"))
                for kept in ("parts", "results"):
                    shutil.rmtree(job / kept, ignore_errors=True)
                # Before the lock is free: what is kept from then on was made of rows that are left.
                remaining += sum(1 for _ in (job / "parts").glob("*"))
        except Timeout:
            raise StoreUnavailable(
                f"`turntide analyse mine {job.name}` is working in {job}: wait for it, or end it"
            ) from None
    return ErasedStore(store="mined days", looked_at=days, removed=days - remaining, remaining=remaining)
