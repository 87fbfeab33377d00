"""Status of the archive, and its verification: is every record there exactly once?

Each offset below `next` is one row or one noted skip. Read-only, from one snapshot; verification opens every file.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import duckdb
from msgspec import Struct

from models.entities import REGISTRY, carried_by
from models.events.topics import TURNS, Cleanup, Topic
from streams.archive.place import LAKE
from streams.archive.schema import (
    ABSENT,
    AGED,
    ERASED,
    EXPIRED,
    LETTER_ERASED,
    OFFSETS,
    RAW,
    SKIPPED,
    TABLE_OF,
    TABLES,
    UNNUMBERED,
    ddl,
)

DEAD_LETTER_GRACE = timedelta(minutes=5)
"""A refused turn's dead letter comes from the sessions role and may lag; only later is its absence a finding."""
_GAPS_SHOWN = 5


class PartitionCheck(Struct, frozen=True, kw_only=True):
    """One partition of one topic."""

    topic: str
    kafka_partition: int
    first_offset: int
    next_offset: int
    rows: int
    distinct_offsets: int
    skipped: int
    """Offsets without a row for a noted reason."""
    absent: int
    """… of these, not in the log when it was read."""
    missing: int
    """Offsets that are neither: must be 0."""
    findings: list[str]


class TableCheck(Struct, frozen=True, kw_only=True):
    """One table; repeats of an id are what a crash leaves, the views show one."""

    table: str
    rows: int
    distinct_ids: int | None
    repeats: int


class Verification(Struct, frozen=True, kw_only=True):
    """What `verify` found. `waiting_dead_letters`: refused turns whose dead letter may still come."""

    partitions: list[PartitionCheck]
    tables: list[TableCheck]
    waiting_dead_letters: int
    findings: list[str]


class _CountedPartition(NamedTuple):
    """What is noted of a partition, and what its tables hold."""

    kafka_partition: int
    first_offset: int
    next_offset: int
    rows: int
    distinct_offsets: int
    lowest: int
    highest: int
    skipped: int
    absent: int
    expired: int


def verify(con: duckdb.DuckDBPyConnection, *, prefix: str, now: datetime, transactional: bool = False) -> Verification:
    """Check the whole archive. Where producers are `transactional`, absent offsets (markers) are no finding."""
    con.execute("BEGIN")
    try:
        noted = {topic for (topic,) in con.execute(f"SELECT DISTINCT topic FROM {RAW}.{OFFSETS}").fetchall()}
        partitions = [
            check
            for topic in REGISTRY.archived_topics
            if (name := topic.full_name(prefix)) in noted
            for check in _partitions(con, topic, name, transactional=transactional)
        ]
        tables = [_table_check(con, name) for name in dict.fromkeys(table.name for table in TABLE_OF.values())]
        waiting, overdue = _without_dead_letter(con, prefix, now)
    finally:
        con.execute("ROLLBACK")
    findings = [finding for check in partitions for finding in check.findings]
    if overdue:
        findings.append(
            f"{overdue} refused records of {TURNS.name} have no dead letter after {DEAD_LETTER_GRACE}: "
            "is the sessions role running, and does this archive read its dead letters?"
        )
    return Verification(partitions=partitions, tables=tables, waiting_dead_letters=waiting, findings=findings)


def _partitions(
    con: duckdb.DuckDBPyConnection, topic: Topic, name: str, *, transactional: bool
) -> Iterator[PartitionCheck]:
    """The partitions of which something is noted, in their order."""
    tables = dict.fromkeys(TABLE_OF[event].name for event in carried_by(topic) if event in TABLE_OF)
    rows = " UNION ALL ".join(f"SELECT kafka_partition, kafka_offset FROM {RAW}.{table}" for table in tables)
    length = "last_offset - first_offset + 1"
    found = con.execute(
        "WITH r AS (SELECT kafka_partition, count(*) AS n, count(DISTINCT kafka_offset) AS d, "
        f"  min(kafka_offset) AS low, max(kafka_offset) AS high FROM ({rows}) GROUP BY ALL), "
        f"s AS (SELECT kafka_partition, sum({length})::BIGINT AS n, "
        f"  sum({length}) FILTER (reason = ?)::BIGINT AS absent, sum({length}) FILTER (reason = ?)::BIGINT AS expired "
        f"  FROM {RAW}.{SKIPPED} WHERE topic = ? GROUP BY ALL) "
        "SELECT kafka_partition, o.first_offset, o.next_offset, coalesce(r.n, 0), coalesce(r.d, 0), "
        "  coalesce(r.low, 0), coalesce(r.high, 0), coalesce(s.n, 0), coalesce(s.absent, 0), coalesce(s.expired, 0) "
        f"FROM {RAW}.{OFFSETS} o LEFT JOIN r USING (kafka_partition) LEFT JOIN s USING (kafka_partition) "
        "WHERE o.topic = ? ORDER BY ALL",
        [ABSENT, EXPIRED, name, name],
    ).fetchall()
    normal = topic.cleanup is Cleanup.COMPACT or transactional
    for each in map(_CountedPartition._make, found):
        yield _judged(con, rows, name, each, absent_is_normal=normal)


def _judged(
    con: duckdb.DuckDBPyConnection, rows: str, topic: str, found: _CountedPartition, *, absent_is_normal: bool
) -> PartitionCheck:
    place = f"{topic}-{found.kafka_partition}"
    missing = found.next_offset - found.first_offset - found.distinct_offsets - found.skipped
    findings = []
    if found.rows != found.distinct_offsets:
        findings.append(
            f"{place}: {found.rows - found.distinct_offsets} rows more than offsets, the same record was archived twice"
        )
    if missing:
        below = f"{missing} offsets below {found.next_offset}"
        findings.append(f"{place}: {below} are neither archived nor skipped: {_gaps(con, rows, topic, found)}")
    if found.rows and (found.lowest < found.first_offset or found.highest >= found.next_offset):
        findings.append(f"{place}: rows outside of {found.first_offset}-{found.next_offset - 1}")
    if found.expired:
        findings.append(f"{place}: {found.expired} records were removed by retention before they were archived: lost")
    if found.absent and not absent_is_normal:
        findings.append(
            f"{place}: {found.absent} offsets were not in the log when it was read: with --transactional this is "
            "expected (markers), without transactions they are lost"
        )
    counted = {name: value for name, value in found._asdict().items() if name in PartitionCheck.__struct_fields__}
    return PartitionCheck(topic=topic, missing=missing, findings=findings, **counted)


def _gaps(con: duckdb.DuckDBPyConnection, rows: str, topic: str, found: _CountedPartition) -> str:
    """The first few ranges without row or skip, as text."""
    partition, first, next_ = found[:3]
    gaps = con.execute(
        f"WITH seen AS (SELECT kafka_offset AS low, kafka_offset AS high FROM ({rows}) WHERE kafka_partition = ? "
        f"  UNION ALL SELECT first_offset, last_offset FROM {RAW}.{SKIPPED} WHERE topic = ? AND kafka_partition = ? "
        "  UNION ALL SELECT ? - 1, ? - 1 UNION ALL SELECT ?, ?), "
        "steps AS (SELECT high + 1 AS low, lead(low) OVER (ORDER BY low) - 1 AS high FROM seen) "
        "SELECT low, high FROM steps WHERE high >= low ORDER BY low LIMIT ?",
        [partition, topic, partition, first, first, next_, next_, _GAPS_SHOWN + 1],
    ).fetchall()
    shown = ", ".join(f"{low}-{high}" for low, high in gaps[:_GAPS_SHOWN])
    return shown + (", …" if len(gaps) > _GAPS_SHOWN else "")


def _table_check(con: duckdb.DuckDBPyConnection, name: str) -> TableCheck:
    key = {"turns": "(app_id, session_id, turn)", "risk_points": "(id, turn)"}.get(
        name, "id" if "id" in ddl()[name] else None
    )
    if key is None:
        count: Any = con.execute(f"SELECT count(*) FROM {RAW}.{name}").fetchone()
        return TableCheck(table=name, rows=count[0], distinct_ids=None, repeats=0)
    both: Any = con.execute(f"SELECT count(*), count(DISTINCT {key}) FROM {RAW}.{name}").fetchone()
    return TableCheck(table=name, rows=both[0], distinct_ids=both[1], repeats=both[0] - both[1])


def _without_dead_letter(con: duckdb.DuckDBPyConnection, prefix: str, now: datetime) -> tuple[int, int]:
    """Refused turns without a dead letter: (young enough to wait for, overdue)."""
    waited = now - DEAD_LETTER_GRACE
    found: Any = con.execute(
        "SELECT coalesce(sum((s.landed_at > ?)::INT), 0), coalesce(sum((s.landed_at <= ?)::INT), 0) "
        f"FROM {RAW}.{SKIPPED} s ANTI JOIN {RAW}.dead_letters d ON d.topic = s.topic "
        'AND d."partition" = s.kafka_partition AND d."offset" = s.first_offset '
        "WHERE s.topic = ? AND s.reason NOT IN (?, ?, ?, ?, ?) AND s.detail <> ?",
        [waited, waited, TURNS.full_name(prefix), ABSENT, EXPIRED, ERASED, AGED, UNNUMBERED, LETTER_ERASED],
    ).fetchone()
    return int(found[0]), int(found[1])


class TableStatus(Struct, frozen=True, kw_only=True):
    """Size of one table."""

    table: str
    rows: int
    files: int
    bytes: int
    """Of Parquet."""
    json_bytes: int
    """Of the records' values on the topic."""
    ratio: float | None
    """Parquet per JSON; below 1 the archive is smaller."""


class PartitionStatus(Struct, frozen=True, kw_only=True):
    """How far one partition is archived."""

    topic: str
    kafka_partition: int
    next_offset: int
    landed_at: datetime


class ArchiveStatus(Struct, frozen=True, kw_only=True):
    """The whole archive."""

    tables: list[TableStatus]
    partitions: list[PartitionStatus]
    snapshots: int


def status(con: duckdb.DuckDBPyConnection) -> ArchiveStatus:
    """Look at every table of a reader's (or the writer's) connection."""
    tables = con.execute(
        f"SELECT table_name, file_count, file_size_bytes FROM ducklake_table_info('{LAKE}')"
    ).fetchall()
    files = {name: (count, size) for name, count, size in tables}
    ((snapshots,),) = con.execute(f"SELECT count(*) FROM ducklake_snapshots('{LAKE}')").fetchall()
    partitions = con.execute(
        f"SELECT topic, kafka_partition, next_offset, landed_at FROM {RAW}.{OFFSETS} ORDER BY ALL"
    ).fetchall()
    sized = (f"SELECT '{name}', count(*), coalesce(sum(record_bytes), 0)::BIGINT FROM {RAW}.{name}" for name in TABLES)
    counted = {name: (rows, size) for name, rows, size in con.execute(" UNION ALL ".join(sized)).fetchall()}
    names = PartitionStatus.__struct_fields__
    return ArchiveStatus(
        tables=[_table(name, *counted[name], *files.get(name, (0, 0))) for name in TABLES],
        partitions=[PartitionStatus(**dict(zip(names, row, strict=True))) for row in partitions],
        snapshots=snapshots,
    )


def _table(name: str, rows: int, json_bytes: int, files: int, size: int) -> TableStatus:
    ratio = round(size / json_bytes, 3) if json_bytes else None
    return TableStatus(table=name, rows=rows, files=files, bytes=size, json_bytes=json_bytes, ratio=ratio)
