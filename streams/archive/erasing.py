"""Erasing a subject from the archive: its rows, the files and snapshots that had them, and every byte of the catalog.

What makes the bytes go as well follows the deletion at once (`removal`).

Every step may be repeated, and is: killed at any point, the next call completes the work. Text is gone from the files,
not from the disk's blocks: that is up to the file system.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from __future__ import annotations

from datetime import datetime

import duckdb
import structlog

from models.erasure import ErasureSubject
from models.events.erase import ErasedStore
from streams.archive.deduplication import look_again
from streams.archive.removal import PLACES, note_removed, remove_for_good
from streams.archive.schema import ERASED, LETTER_ERASED, RAW, SKIPPED, TABLES
from streams.archive.subject_rows import SubjectRows
from streams.archive.writer import LakeWriter

log = structlog.get_logger(__name__)


def erase(writer: LakeWriter, subject: ErasureSubject, *, now: datetime) -> list[ErasedStore]:
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
        remove_for_good(writer, now=now)
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
    places = f"CREATE OR REPLACE TEMP TABLE {PLACES} AS " + " UNION ALL ".join(
        f"SELECT '{name}' AS name, '{table.topic.name}' AS topic, kafka_partition, kafka_offset "
        f"FROM {RAW}.{name} AS r WHERE {mine.condition(name)}"
        for name, table in TABLES.items()
    )
    con.execute(places, mine.parameters(places))
    removed = dict(con.execute(f"SELECT name, count(*) FROM temp.{PLACES} GROUP BY name").fetchall())
    with writer.transaction():
        if "dead_letters" in removed:
            con.execute(_LETTERS, [LETTER_ERASED])
        for name in removed:
            con.execute(
                f"DELETE FROM {RAW}.{name} WHERE (kafka_partition, kafka_offset) IN "
                f"(SELECT kafka_partition, kafka_offset FROM temp.{PLACES} WHERE name = '{name}')"
            )
        blank = (
            f"UPDATE {RAW}.{SKIPPED} AS r SET reason = '{ERASED}', detail = '', \"key\" = NULL, value = NULL "
            f"WHERE {mine.condition(SKIPPED)}"
        )
        ((blanked,),) = con.execute(blank, mine.parameters(blank)).fetchall()
        note_removed(con, ERASED, now)
        look_again(con, removed)
    return {name: removed.get(name, 0) for name in TABLES} | {SKIPPED: blanked}


_LETTERS = f"""
UPDATE {RAW}.{SKIPPED} AS s SET detail = ?
FROM {RAW}.dead_letters AS d JOIN temp.{PLACES} AS p USING (kafka_partition, kafka_offset)
WHERE p.name = 'dead_letters' AND s.topic = d.topic AND s.kafka_partition = d."partition"
  AND s.first_offset = d."offset"
"""
