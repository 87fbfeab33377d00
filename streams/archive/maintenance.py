"""Maintenance of the archive: merge small files, expire old snapshots, delete replaced files.

Files are merged by size class, and a class only if it has enough files in one folder, so that a row is rewritten once a
class (as in a log-structured merge) instead of once a minute. Running readers are safe: a replaced file stays for
`keep_replaced`.

DuckLake's statistics have up to 256 characters of the lowest and highest value of each column, in the catalog, for each
file and permanently for each table. For text they prune nothing and survive an erasure, so they are replaced by the
widest bounds; never by null, which DuckLake treats as "no value yet" and then computes bounds that hide rows.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from msgspec import Struct

from streams.archive.catalog import LAKE, METADATA, open_any_reader
from streams.archive.damage import damaged, is_ours, render_damage
from streams.archive.deduplication import deduplicate
from streams.archive.place import LakePaths
from streams.archive.schema import OFFSETS, RAW
from streams.archive.views.published import added, present_columns
from streams.archive.writer import LANDING_LEVEL, LakeWriter
from streams.observe.telemetry import metrics
from streams.settings.archive import ArchiveSettings

log = structlog.get_logger(__name__)

_MIB = 1024 * 1024
SIZE_CLASSES = ((0, 1 * _MIB), (1 * _MIB, 16 * _MIB), (16 * _MIB, 256 * _MIB))
"""Bytes, from-to. A file above the last class is only rewritten by an erasure."""
FILES_TO_MERGE = 8
"""Number of files of one class in one folder from which they are merged."""
MERGED_LEVEL = 9
"""zstd's level of merged files, which are written once per class and read for years: measured on turns, 8 % smaller
than the level of landing, for three times the CPU of writing."""
ORPHAN_AGE = timedelta(hours=1)
"""Age from which a file without a snapshot is an orphan of a killed writer; no landing takes that long."""

_NO_READERS = datetime(9999, 1, 1, tzinfo=UTC)
_NO_FILE = 2**62
_LONG_AGO = "2000-01-01T00:00:00.000000+00"

KEYS = ("id", "session_id", "user_id", "app_id", "alert_id", "app")
"""Text columns whose bounds per file help to find rows; an erasure removes them with their file."""
WIDEST = {"varchar": ("", "\U0010ffff" * 64), "blob": ("", "FF" * 256)}


class Maintained(Struct, frozen=True):
    """Result of one round of maintenance."""

    merged_files: int
    deleted_files: int
    orphans: int
    expired_snapshots: int
    settled: bool = True
    """Whether repeats are recorded; if not, the log has the reason (`archive_not_settled`)."""


class CutShort(Exception):  # noqa: N818 - nothing failed
    """Ends maintenance before its next step, since something more urgent waits."""


def maintain(
    writer: LakeWriter,
    *,
    now: datetime,
    keep_replaced: timedelta,
    everything: bool = False,
    look: Callable[[], None] = lambda: None,
) -> Maintained:
    """Merge, settle, expire, delete, and reopen the connection, see `LakeWriter.reopen`.

    Idempotent; a killed run leaves a complete archive.

    Args:
        writer: The archive; landings of other processes wait during it.
        now: The time, aware.
        keep_replaced: How long replaced files and old snapshots stay for running readers; zero: not at all, including
            the files that this call replaces.
        everything: Merge even two files, and search for orphans.
        look: Called between steps. An error from it ends the round; the next round does the rest.

    Raises:
        StoreUnavailable: The archive cannot be written, or another process has locked it.
    """
    before = now - keep_replaced if keep_replaced else _NO_READERS
    with writer.exclusively("merging files"):
        # Damaged tables cannot be merged: the others are, and landing goes on.
        if found := damaged(writer.con):
            log.error("archive_damaged", damage=render_damage(found))
        skipped = {file.table for file in found}
        at_least = 2 if everything else FILES_TO_MERGE
        with _packed_tightly(writer):
            merged = sum(_merge(writer, sizes, at_least, skipped, look) for sizes in SIZE_CLASSES)
        settled = deduplicate(writer) is not None
        look()
        _compact_offsets(writer)
        look()
        expired = _expire(writer, before)
        look()
        orphans = schedule_orphans(writer, now - ORPHAN_AGE) if everything else 0
        deleted = _delete_replaced(writer, before) - orphans
        look()
        widen_text_bounds(writer)
        writer.reopen()
    return Maintained(merged, deleted, orphans, expired, settled)


def schedule_orphans(writer: LakeWriter, before: datetime) -> int:
    """Schedule older files without a snapshot for deletion with the next replaced ones; returns their number.

    DuckLake's own function would delete every file that ends in `.parquet`, also foreign ones: this deletes only files
    with our names. Call it with the writers' lock, else files that are being written may be among them.
    """
    found = writer.con.execute(
        f"SELECT path FROM ducklake_delete_orphaned_files('{LAKE}', dry_run => true, older_than => ?)", [before]
    ).fetchall()
    ours = [path for (path,) in found if is_ours(path)]
    if ours:
        # DuckLake forgets these rows by their id once the files are gone; no real file has so great an id.
        scheduled = f"{METADATA}.ducklake_files_scheduled_for_deletion"
        writer.con.execute(
            f"INSERT INTO {scheduled} SELECT row_number() OVER () "
            f"+ (SELECT greatest({_NO_FILE}, coalesce(max(data_file_id), 0)) FROM {scheduled}), path, false, ? "
            "FROM (SELECT unnest(?::VARCHAR[]) AS path)",
            [_LONG_AGO, ours],
        )
    if len(found) > len(ours):
        log.warning("archive_foreign_files", files=len(found) - len(ours), place=writer.paths.data)
    return len(ours)


def widen_text_bounds(writer: LakeWriter) -> None:
    """Remove text of turns from the catalog's statistics; also part of every erasure.

    Removes all text from bounds of the table, and all but `KEYS` from bounds of files.
    """
    for kind, (low, high) in WIDEST.items():
        for scope in ("table", "file"):
            keys = KEYS if scope == "file" else ()
            writer.con.execute(
                f"UPDATE {METADATA}.ducklake_{scope}_column_stats AS s SET min_value = ?, max_value = ? "
                f"FROM {METADATA}.ducklake_column AS c "
                "WHERE c.table_id = s.table_id AND c.column_id = s.column_id AND c.column_type = ? "
                "AND NOT list_contains(?::VARCHAR[], c.column_name) AND coalesce(s.max_value, s.min_value) IS NOT NULL "
                "AND s.max_value IS DISTINCT FROM ?",
                [low, high, kind, list(keys), high],
            )


@contextmanager
def _packed_tightly(writer: LakeWriter) -> Iterator[None]:
    """Write with `MERGED_LEVEL`. A killed process leaves this level until the next merge, which only costs time."""
    writer.con.execute(f"CALL {LAKE}.set_option('parquet_compression_level', {MERGED_LEVEL})")
    try:
        yield
    finally:
        writer.con.execute(f"CALL {LAKE}.set_option('parquet_compression_level', {LANDING_LEVEL})")


def _merge(
    writer: LakeWriter, sizes: tuple[int, int], at_least: int, skipped: Collection[str], look: Callable[[], None]
) -> int:
    """Merge the files of one size class in each table with enough of them; returns the number of merged files."""
    low, high = sizes
    tables = writer.con.execute(
        "SELECT table_name FROM (SELECT t.table_name, count(*) AS files "
        f"FROM {METADATA}.ducklake_data_file f JOIN {METADATA}.ducklake_table t USING (table_id) "
        "WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL AND f.file_size_bytes >= ? AND f.file_size_bytes < ? "
        "GROUP BY t.table_name, regexp_replace(f.path, '[^/]*$', '')) GROUP BY table_name HAVING max(files) >= ?",
        [low, high, at_least],
    ).fetchall()
    merged = 0
    for (table,) in tables:
        look()
        if table != OFFSETS and table not in skipped:
            done = writer.con.execute(
                f"CALL ducklake_merge_adjacent_files('{LAKE}', '{table}', schema => '{RAW}', "
                f"min_file_size => {low}, max_file_size => {high})"
            ).fetchall()
            merged += sum(row[2] for row in done)
    return merged


def _compact_offsets(writer: LakeWriter) -> None:
    """Move past versions of the offsets out of the catalog, and drop them with their snapshots."""
    writer.con.execute(f"CALL ducklake_flush_inlined_data('{LAKE}', schema_name => '{RAW}', table_name => '{OFFSETS}')")
    writer.con.execute(
        f"CALL ducklake_rewrite_data_files('{LAKE}', '{OFFSETS}', schema => '{RAW}', delete_threshold => 0.0)"
    )


def _expire(writer: LakeWriter, before: datetime) -> int:
    """Expire older snapshots, but not the latest; selected here, since DuckLake compares times in SQLite as text.

    It writes a space between date and time and compares with a `T`, so all snapshots of the same day would be older.
    """
    versions = writer.con.execute(
        f"SELECT list(snapshot_id) FROM {METADATA}.ducklake_snapshot WHERE snapshot_time::TIMESTAMPTZ < ? "
        f"AND snapshot_id < (SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot)",
        [before],
    ).fetchone()
    if versions is None or not versions[0]:
        return 0
    expired = writer.con.execute(f"CALL ducklake_expire_snapshots('{LAKE}', versions => ?)", [versions[0]])
    return len(expired.fetchall())


def _delete_replaced(writer: LakeWriter, before: datetime) -> int:
    """Delete files replaced before a time; in SQLite first with the `T` for the comparison, see `_expire`."""
    if writer.paths.postgres is None:
        writer.con.execute(
            f"UPDATE {METADATA}.ducklake_files_scheduled_for_deletion SET schedule_start = "
            "strftime(schedule_start::TIMESTAMPTZ AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f+00')"
        )
    return len(writer.con.execute(f"CALL ducklake_cleanup_old_files('{LAKE}', older_than => ?)", [before]).fetchall())


_ALL_FILES_EVERY = timedelta(hours=1)
"""Interval of the search for orphans, and of merges of even two small files."""


class ArchiveUpkeep:
    """Merges at the interval of the settings."""

    def __init__(self, writer: LakeWriter, wanted: ArchiveSettings) -> None:
        self._writer = writer
        self._wanted = wanted
        self._merged_s = monotonic()
        self._merged_all_s: float | None = None

    async def maintain(self, is_urgent: Callable[[], bool] = lambda: False) -> None:
        """Merge if it is due. Call it while nothing lands.

        Args:
            is_urgent: Whether something waits for the end; called before each step, from another thread.
        """
        now_s = monotonic()
        if now_s - self._merged_s < self._wanted.merge_every.total_seconds():
            return

        def look() -> None:
            if is_urgent():
                raise CutShort

        everything = self._merged_all_s is None or now_s - self._merged_all_s >= _ALL_FILES_EVERY.total_seconds()
        try:
            look()
            done = await asyncio.to_thread(
                maintain,
                self._writer,
                now=datetime.now(UTC),
                keep_replaced=self._wanted.keep_replaced,
                everything=everything,
                look=look,
            )
        except CutShort:
            log.info("archive_maintenance_cut_short")
            return
        self._merged_s = monotonic()
        if everything:
            self._merged_all_s = self._merged_s
        metrics.counter("archive_upkeep_total", result="done" if done.settled else "not_settled").inc()
        metrics.gauge("archive_unsettled").set(not done.settled)
        metrics.gauge("archive_upkeep_timestamp_seconds").set(datetime.now(UTC).timestamp())
        log.debug("archive_maintained", done=str(done))


def upgrade(paths: LakePaths) -> list[str]:
    """Add tables, columns and views; returns the new views and new columns of views.

    Raises:
        ConfigurationError: There is no archive, or it has columns of other types.
        StoreUnavailable: It cannot be written.
    """
    with closing(open_any_reader(paths)) as con:
        before = present_columns(con)
    with closing(LakeWriter(paths)) as writer:
        return added(before, present_columns(writer.con))
