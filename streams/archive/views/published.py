"""The views in the catalog: a schema for each version, and the same names without a schema for the present one.

A view names its columns one by one, in the order of the contract (`deploy/contracts/views.json`). Columns are added to
a version; one that goes or changes its type makes a new version, in a schema of its own beside the old one's.
"""

# ruff: noqa: S608 - tables, views and columns are constants of this package

import json
from collections.abc import Collection, Mapping
from datetime import date
from functools import cache
from hashlib import sha256
from typing import Any

import duckdb

from streams.archive.damage import damaged
from streams.archive.place import LAKE
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


def marks_of(con: duckdb.DuckDBPyConnection) -> dict[str, dict[int, int]]:
    """Table → partition → offset below which its repeats are written down."""
    noted: Any = con.execute(
        "SELECT comment FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? AND table_name = ?",
        [LAKE, RAW, REPEATS],
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
    about = _about(con)
    return int(about[0]) if about else None


def _about(con: duckdb.DuckDBPyConnection) -> tuple[Any, ...] | None:
    try:
        return con.execute(f"SELECT views_version, digest FROM main.{ABOUT}").fetchone()
    except duckdb.CatalogException:
        return None


def present_columns(con: duckdb.DuckDBPyConnection, schema: str = SCHEMA) -> dict[str, dict[str, str]]:
    """View, or table, of a schema of the archive → column → type, in the order of the columns."""
    found: dict[str, dict[str, str]] = {}
    rows = con.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? ORDER BY table_name, column_index",
        [LAKE, schema],
    ).fetchall()
    for name, column, kind in rows:
        found.setdefault(name, {})[column] = kind
    return found


def lacking(con: duckdb.DuckDBPyConnection) -> list[str]:
    """What this version reads and the archive lacks: views, or columns as `view.column`; empty if all is there.

    An archive of a later release of the same version has more, and that is no matter.
    """
    return [] if _about(con) == (VIEWS_VERSION, digest()) else added(present_columns(con), columns_of_views())


def added(before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]) -> list[str]:
    """Views, or columns as `view.column`, that one set of views has beyond another."""
    return [
        name
        for view, columns in after.items()
        for name in ([f"{view}.{each}" for each in columns if each not in before[view]] if view in before else [view])
    ]


_OWN = "memory"
"""DuckDB's name for what a connection has for itself."""


def leave_damage_out(con: duckdb.DuckDBPyConnection) -> set[date]:
    """Leave out the days of which some rows cannot be read; returns them. `con` is a reader outside a transaction."""
    days = {file.date for file in damaged(con) if file.date}
    leave_out(con, days)
    return days


def leave_out(con: duckdb.DuckDBPyConnection, days: Collection[date]) -> None:
    """Have tables and views of a reader, by their names without a database, be without the rows received on some days.

    Tables without days stay whole. Rows of other days that repeat one of these stay left out, too. No days: nothing is
    done.
    """
    if not days:
        return
    # Measured: by `<>` DuckLake leaves files out, by `NOT IN` and by ranges joined with OR it opens them all.
    condition = " AND ".join(f"date <> DATE '{day}'" for day in sorted(days))
    marks = marks_of(con)
    con.execute(f"USE {_OWN}")
    con.execute(f"CREATE SCHEMA {RAW}; CREATE SCHEMA {SCHEMA}")
    for table, columns in ddl().items():
        where = condition if "date" in columns else "true"
        con.execute(f"CREATE VIEW {RAW}.{table} AS SELECT * FROM {LAKE}.{RAW}.{table} WHERE {where}")
    for view, query in definitions(marks).items():
        named = ", ".join(f'"{column}"' for column in columns_of_views()[view])
        con.execute(f"CREATE VIEW {SCHEMA}.{view} AS SELECT {named} FROM ({query})")
        con.execute(f"CREATE VIEW main.{view} AS SELECT * FROM {SCHEMA}.{view}")
