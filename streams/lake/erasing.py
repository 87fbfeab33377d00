"""Erasing a subject from the archive: its rows, the files and snapshots that had them, and every byte of the catalog.

Deleted rows stay in DuckLake's files until they are written anew, replaced files until they are cleaned up, the files'
statistics (least and greatest session id …) in free pages of the catalog until it is vacuumed. So all of this follows
the deletion at once; readers that still are in a replaced file fail, and ask again.

Every step may be repeated, and is: killed at any point, the next call completes the work. Text is gone from the files,
not from the disk's blocks: that is up to the file system.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import structlog

from models.erase_events import ErasedStore
from models.erasure import Subject
from models.errors import StoreUnavailable
from streams.lake import vacuum
from streams.lake.catalog import LAKE, METADATA, summary_of
from streams.lake.maintenance import maintain
from streams.lake.schema import ERASED, LETTER_ERASED, OFFSETS, RAW, SKIPPED, TABLES
from streams.lake.subject_rows import SubjectRows
from streams.lake.writer import LakeWriter

log = structlog.get_logger(__name__)

_PLACES = "erased_places"


def erase(writer: LakeWriter, subject: Subject, *, now: datetime) -> list[ErasedStore]:
    """Remove every row of the subject, and their bytes; the offsets are noted as `erased`.

    Blocking, and it takes as long as the files with such rows take to be written anew; nothing lands meanwhile.

    Args:
        writer: The archive. It must have landed whatever the subject's records led to.
        subject: Whose rows.
        now: The time, aware.

    Returns:
        What was looked at, removed and found by a second look, by table. After a call that was cut short, the rows that
        it removed are not counted again.

    Raises:
        StoreUnavailable: The archive cannot be written, or a reader keeps the catalog. Some of it may be done: call
            again.
    """
    with writer.exclusively("erasing"):
        mine = SubjectRows(writer.con, subject)
        looked_at, found = _count(writer.con, mine)
        removed = _delete(writer, mine, now) if any(found.values()) else found
        _, remaining = _count(writer.con, mine)
        _write_anew(writer)
        # A file that no snapshot names is what a killed writer left; nobody else is writing now.
        writer.con.execute(f"CALL ducklake_delete_orphaned_files('{LAKE}', cleanup_all => true)")
        maintain(writer, now=now, keep_replaced=timedelta(0))
        _vacuum(writer)
        _remove_empty_folders(Path(writer.paths.data))
    log.info("archive_erased", rows=sum(removed.values()))
    return [
        ErasedStore(
            store=f"archive {name}", looked_at=looked_at[name], removed=removed[name], remaining=remaining[name]
        )
        for name in looked_at
    ]


def _count(con: duckdb.DuckDBPyConnection, mine: SubjectRows) -> tuple[dict[str, int], dict[str, int]]:
    """Rows of each table, and how many of them are the subject's."""
    sql = " UNION ALL ".join(
        f"SELECT '{name}', count(*), count(*) FILTER ({mine.condition(name)}) FROM {RAW}.{name} AS r"
        for name in (*TABLES, SKIPPED)
    )
    counted = con.execute(sql, mine.parameters(sql)).fetchall()
    return {name: rows for name, rows, _ in counted}, {name: found for name, _, found in counted}


def _delete(writer: LakeWriter, mine: SubjectRows, now: datetime) -> dict[str, int]:
    """Delete, and note the offsets, in one transaction; returns how many rows of each table went."""
    con = writer.con
    places = f"CREATE OR REPLACE TEMP TABLE {_PLACES} AS " + " UNION ALL ".join(
        f"SELECT '{name}' AS name, '{table.topic.name}' AS topic, kafka_partition, kafka_offset "
        f"FROM {RAW}.{name} AS r WHERE {mine.condition(name)}"
        for name, table in TABLES.items()
    )
    con.execute(places, mine.parameters(places))
    removed = dict(con.execute(f"SELECT name, count(*) FROM temp.{_PLACES} GROUP BY name").fetchall())
    with writer.transaction():
        if "dead_letters" in removed:
            con.execute(_LETTERS, [LETTER_ERASED])
        for name in removed:
            con.execute(
                f"DELETE FROM {RAW}.{name} WHERE (kafka_partition, kafka_offset) IN "
                f"(SELECT kafka_partition, kafka_offset FROM temp.{_PLACES} WHERE name = '{name}')"
            )
        blank = (
            f"UPDATE {RAW}.{SKIPPED} AS r SET reason = '{ERASED}', detail = '', \"key\" = NULL, value = NULL "
            f"WHERE {mine.condition(SKIPPED)}"
        )
        ((blanked,),) = con.execute(blank, mine.parameters(blank)).fetchall()
        con.execute(_NOTE, [now])
    return {name: removed.get(name, 0) for name in TABLES} | {SKIPPED: blanked}


_LETTERS = f"""
UPDATE {RAW}.{SKIPPED} AS s SET detail = ?
FROM {RAW}.dead_letters AS d JOIN temp.{_PLACES} AS p USING (kafka_partition, kafka_offset)
WHERE p.name = 'dead_letters' AND s.topic = d.topic AND s.kafka_partition = d."partition"
  AND s.first_offset = d."offset"
"""
_NOTE = f"""
INSERT INTO {RAW}.{SKIPPED} BY NAME
WITH places AS (SELECT DISTINCT topic AS short_name, kafka_partition, kafka_offset FROM temp.{_PLACES}),
runs AS (
  SELECT *, kafka_offset - row_number() OVER (PARTITION BY short_name, kafka_partition ORDER BY kafka_offset) AS run
  FROM places
),
names AS (SELECT DISTINCT topic FROM {RAW}.{OFFSETS})
SELECT names.topic, kafka_partition, min(kafka_offset) AS first_offset, max(kafka_offset) AS last_offset,
  '{ERASED}' AS reason, '' AS detail, ?::TIMESTAMPTZ AS landed_at
FROM runs JOIN names ON ends_with(names.topic, '.' || short_name)
GROUP BY names.topic, kafka_partition, run
"""
"""Offsets that lost their row, neighbours in one; an archive belongs to one prefix."""


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


def _vacuum(writer: LakeWriter) -> None:
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-I", vacuum.__file__, str(writer.paths.catalog)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise StoreUnavailable(
            f"erasing left deleted bytes in {writer.paths.catalog}: {summary_of(RuntimeError(done.stderr))}. "
            "The rows are gone; call it again"
        )


def _remove_empty_folders(data: Path) -> None:
    """Folders carry apps' names."""
    for folder in sorted((path for path in data.glob("**/") if path != data), reverse=True):
        if next(folder.iterdir(), None) is None:
            folder.rmdir()
