"""Files of the archive that a query reads, and its rows written to a file of one's own."""

# ruff: noqa: S608 - the statement is the analyst's own, on a connection that cannot write the archive

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from models.errors import ConfigurationError
from streams.archive.catalog import METADATA, literal

_OPTIONS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "json": "FORMAT json, ARRAY",
}


class Scan(NamedTuple):
    """One scan of one table."""

    table: str
    files_read: int
    of_files: int
    filters: str
    """What was known before the files were opened, and kept some of them shut."""


class Read(NamedTuple):
    """What a statement read."""

    scans: list[Scan]
    bytes: int
    seconds: float


def files_read(con: duckdb.DuckDBPyConnection, sql: str) -> Read:
    """Run a statement and look at what it opened.

    Raises:
        duckdb.Error: It cannot be run.
    """
    explained: Any = con.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchone()
    plan = msgspec.json.decode(explained[1])
    present = dict(
        con.execute(
            f"SELECT t.table_name, count(*) FROM {METADATA}.ducklake_data_file f "
            f"JOIN {METADATA}.ducklake_table t USING (table_id) "
            "WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL GROUP BY t.table_name"
        ).fetchall()
    )
    return Read(
        [
            Scan(scan["Table"], int(scan.get("Total Files Read", 0)), present.get(scan["Table"], 0), _text(scan))
            for scan in _scans(plan)
        ],
        int(plan["total_bytes_read"]),
        float(plan["latency"]),
    )


def _scans(node: dict[str, Any]) -> list[dict[str, Any]]:
    mine = [node["extra_info"]] if node.get("operator_name") == "DUCKLAKE_SCAN" else []
    return mine + [scan for child in node.get("children", ()) for scan in _scans(child)]


def _text(scan: dict[str, Any]) -> str:
    filters = scan.get("Filters", "")
    return " AND ".join(filters) if isinstance(filters, list) else str(filters)


def write(con: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str, limit: int | None) -> int:
    """Write at most `limit` rows of a SELECT to a parquet, csv or json file; returns how many.

    The file is there whole or as it was.

    Raises:
        ConfigurationError: The file's folder does not exist or cannot be written.
        duckdb.Error: The statement cannot be run.
    """
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigurationError(f"cannot write {path}: its folder is missing or not writable")
    beginning = path.with_name(f".{path.name}.{os.getpid()}")
    bound = "" if limit is None else f" LIMIT {limit:d}"
    try:
        written: Any = con.execute(
            f"COPY (SELECT * FROM ({sql.strip().rstrip(';')}\n){bound}) TO {literal(str(beginning))} ({_OPTIONS[form]})"
        ).fetchone()
        beginning.replace(path)
    finally:
        beginning.unlink(missing_ok=True)
    return int(written[0])
