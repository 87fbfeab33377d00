"""The views in the catalog: a schema for each version, and the same names without a schema for the present one.

A view names its columns one by one, in the order of the contract (`deploy/contracts/views.json`). Columns are added to
a version; one that goes or changes its type makes a new version, in a schema of its own beside the old one's.
"""

# ruff: noqa: S608 - views and columns are constants of this package

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

import duckdb

from streams.archive.schema import RAW, REPEATS, ddl
from streams.archive.views.definitions import definitions
from streams.archive.views.once import Marks

VIEWS_VERSION = 1
"""Of the set of views: the name of their schema."""
SCHEMA = f"v{VIEWS_VERSION}"
ABOUT = "archive_version"
"""View of one row that tells a reader what it has before it: `views_version`, and a digest of what they are."""


@cache
def columns_of_views() -> dict[str, dict[str, str]]:
    """View → column → type as DuckDB spells it, in the order of the columns. Needs no archive."""
    with duckdb.connect() as con:
        con.execute(f"CREATE SCHEMA {RAW}; CREATE SCHEMA {SCHEMA}")
        for table, columns in ddl().items():
            described = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            con.execute(f"CREATE TABLE {RAW}.{table} ({described})")
        found = {}
        for view, query in definitions({}).items():
            con.execute(f"CREATE VIEW {SCHEMA}.{view} AS {query}")
            found[view] = {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE {SCHEMA}.{view}").fetchall()}
        return found


@cache
def digest() -> str:
    """Of what the views are, apart from what is settled."""
    return sha256(repr((VIEWS_VERSION, ddl(), definitions({}))).encode()).hexdigest()


def create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Create or replace all views, with nothing settled. Part of the writer's transaction that makes the tables."""
    con.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    con.execute(f"DELETE FROM {RAW}.{REPEATS}")
    for view, query in definitions({}).items():
        con.execute(_create(SCHEMA, view, f"({query})"))
        con.execute(_create("main", view, f"{SCHEMA}.{view}"))
    con.execute(
        f"CREATE OR REPLACE VIEW main.{ABOUT} AS SELECT {VIEWS_VERSION} AS views_version, '{digest()}' AS digest"
    )
    _note(con, {})


def marks_of(con: duckdb.DuckDBPyConnection, database: str) -> dict[str, dict[int, int]]:
    """Table → partition → offset below which its repeats are written down."""
    noted: Any = con.execute(
        "SELECT comment FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? AND table_name = ?",
        [database, RAW, REPEATS],
    ).fetchone()
    marks = json.loads(noted[0]) if noted and noted[0] else {}
    return {table: {int(partition): mark for partition, mark in of.items()} for table, of in marks.items()}


def move_marks(con: duckdb.DuckDBPyConnection, before: Mapping[str, Marks], after: Mapping[str, Marks]) -> None:
    """Replace the views of tables whose marks moved; call it in the transaction that wrote their repeats."""
    old = definitions(before)
    for view, query in definitions(after).items():
        if query != old[view]:
            con.execute(_create(SCHEMA, view, f"({query})"))
    _note(con, after)


def _note(con: duckdb.DuckDBPyConnection, marks: Mapping[str, Marks]) -> None:
    con.execute(f"COMMENT ON TABLE {RAW}.{REPEATS} IS '{json.dumps(marks)}'")


def _create(schema: str, view: str, source: str) -> str:
    columns = ", ".join(f'"{column}"' for column in columns_of_views()[view])
    return f"CREATE OR REPLACE VIEW {schema}.{view} AS SELECT {columns} FROM {source}"


def version_of(con: duckdb.DuckDBPyConnection) -> int | None:
    """Version of the views that an archive has; None for one that is new or older than versions."""
    try:
        found = con.execute(f"SELECT views_version FROM main.{ABOUT}").fetchone()
    except duckdb.CatalogException:
        return None
    return int(found[0]) if found else None


def lacking(con: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    """What this version reads and the archive does not have: views, or columns as `view.column`; empty if all is there.

    An archive of a later release of the same version has more, and that is no matter.
    """
    try:
        found = con.execute(f"SELECT views_version, digest FROM main.{ABOUT}").fetchone()
    except duckdb.CatalogException:
        found = None
    if found == (VIEWS_VERSION, digest()):
        return []
    present: dict[str, set[str]] = {}
    rows = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ? AND schema_name = ?",
        [database, SCHEMA],
    ).fetchall()
    for view, column in rows:
        present.setdefault(view, set()).add(column)
    return [
        view if column is None else f"{view}.{column}"
        for view, columns in columns_of_views().items()
        for column in ([None] if view not in present else [c for c in columns if c not in present[view]])
    ]
