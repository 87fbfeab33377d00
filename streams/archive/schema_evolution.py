"""Schema evolution of the archive's columns: structs get further fields, and nothing else changes."""

from __future__ import annotations

from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType


def type_of_column(con: duckdb.DuckDBPyConnection, kind: str) -> str:
    """The type as DuckDB spells it."""
    described: Any = con.execute(f"DESCRIBE SELECT NULL::{kind} AS x").fetchone()
    return str(described[1])


def grows(con: duckdb.DuckDBPyConnection, present: str, wanted: str) -> bool:
    """Whether a type is another one with further fields in its structs: old rows can have null there.

    >>> with duckdb.connect() as con:
    ...     grows(con, "STRUCT(a INTEGER)[]", "STRUCT(a INTEGER, b VARCHAR)[]"), grows(con, "INTEGER", "BIGINT")
    (True, False)
    """
    return _contains(con.type(wanted), con.type(present))


def _contains(wanted: DuckDBPyType, present: DuckDBPyType) -> bool:
    if wanted.id != present.id or wanted.id not in {"struct", "list"}:
        return wanted == present
    fields = dict(_named(wanted))
    return all(name in fields and _contains(fields[name], kind) for name, kind in _named(present))


def _named(nested: DuckDBPyType) -> list[tuple[str, Any]]:
    """The types in a struct or list, by name."""
    return nested.children
