"""Leaving days out of a reader, so that damaged files of these do not keep it from the rest.

The reader gets a schema `raw` of its own, of the same tables without these days, and the views over it. The condition
stands right beside each table, so no file of such a day is opened, whatever a view joins.
"""

# ruff: noqa: S608 - tables, views and columns are constants of this package

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import duckdb

from streams.archive.damage import damaged_days
from streams.archive.place import LAKE
from streams.archive.schema import RAW, ddl
from streams.archive.views.definitions import definitions
from streams.archive.views.published import SCHEMA, columns_of_views, marks_of

_OWN = "memory"
"""DuckDB's name for what a connection has for itself."""


def leave_damage_out(con: duckdb.DuckDBPyConnection) -> set[date]:
    """Leave the days out of which some rows cannot be read; returns them, none where all is well.

    Args:
        con: A reader (`catalog.open_reader`), outside a transaction.
    """
    days = damaged_days(con)
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
    marks = marks_of(con, LAKE)
    con.execute(f"USE {_OWN}")
    con.execute(f"CREATE SCHEMA {RAW}; CREATE SCHEMA {SCHEMA}")
    for table, columns in ddl().items():
        where = condition if "date" in columns else "true"
        con.execute(f"CREATE VIEW {RAW}.{table} AS SELECT * FROM {LAKE}.{RAW}.{table} WHERE {where}")
    for view, query in definitions(marks).items():
        named = ", ".join(f'"{column}"' for column in columns_of_views()[view])
        con.execute(f"CREATE VIEW {SCHEMA}.{view} AS SELECT {named} FROM ({query})")
        con.execute(f"CREATE VIEW main.{view} AS SELECT * FROM {SCHEMA}.{view}")
