"""Status of the archive, its contents and costs, for the command line and the metrics."""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb
from msgspec import Struct

from streams.archive.catalog import LAKE
from streams.archive.schema import OFFSETS, RAW, TABLES


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
    names = PartitionStatus.__struct_fields__
    return ArchiveStatus(
        tables=[_table(con, name, *files.get(name, (0, 0))) for name in TABLES],
        partitions=[PartitionStatus(**dict(zip(names, row, strict=True))) for row in partitions],
        snapshots=snapshots,
    )


def _table(con: duckdb.DuckDBPyConnection, name: str, files: int, size: int) -> TableStatus:
    found: Any = con.execute(f"SELECT count(*), coalesce(sum(record_bytes), 0)::BIGINT FROM {RAW}.{name}").fetchone()
    rows, json_bytes = found
    ratio = round(size / json_bytes, 3) if json_bytes else None
    return TableStatus(table=name, rows=rows, files=files, bytes=size, json_bytes=json_bytes, ratio=ratio)
