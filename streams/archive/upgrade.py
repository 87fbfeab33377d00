"""An archive of an earlier release gets what this one reads."""

from __future__ import annotations

from contextlib import closing

import duckdb

from streams.archive.catalog import LAKE, open_any_reader
from streams.archive.place import LakePaths
from streams.archive.views.published import SCHEMA
from streams.archive.writer import LakeWriter


def upgrade(paths: LakePaths) -> list[str]:
    """Add tables, columns and views; nothing is rewritten. Idempotent, and so does every writer when it opens.

    Returns:
        What the views have now and had not before: `view`, or `view.column`.

    Raises:
        ConfigurationError: There is no archive, or it holds columns of other types.
        StoreUnavailable: It cannot be written.
    """
    with closing(open_any_reader(paths)) as con:
        before = _columns(con)
    with closing(LakeWriter(paths)) as writer:
        after = _columns(writer.con)
    return [
        added
        for view, columns in sorted(after.items())
        for added in ([f"{view}.{c}" for c in columns if c not in before[view]] if view in before else [view])
    ]


def _columns(con: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? "
        "ORDER BY table_name, column_index",
        [LAKE, SCHEMA],
    ).fetchall()
    for view, column in rows:
        found.setdefault(view, []).append(column)
    return found
