"""`turntide query`: SQL over the archive, also while it is being written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli import examples
from jobs.output import Output, OutputFormat
from models.errors import ConfigurationError
from streams.settings import load_settings

if TYPE_CHECKING:
    import duckdb

_TABLE_ROWS = 100
_FETCHED_AT_ONCE = 1_000


def query(
    sql: Annotated[str, typer.Argument(help="A statement in DuckDB's SQL.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help=f"Print at most this many rows; a table shows {_TABLE_ROWS} unless told."),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the rows are printed.")] = OutputFormat.TABLE,
) -> None:
    """Ask the archive in SQL, read-only.

    Views: turns, sessions, profiles, risk_points, alerts, alert_changes, alert_labels, windows, compactions, segments,
    topics, topic_changes, topic_compactions, topic_turns, episodes, controls, dead_letters, profile_history. `DESCRIBE
    turns` shows columns.
    """
    from streams.lake.catalog import open_reader, paths_of

    with closing(open_reader(paths_of(load_settings()))) as con:
        columns, rows = run(con, sql)
        printed = Output(output)
        most = limit or (_TABLE_ROWS if output is OutputFormat.TABLE else None)
        printed.table("", columns, rows if most is None else islice(rows, most))
        if most is not None and next(rows, None) is not None:
            printed.message(f"the first {most} rows; --limit shows more")


query.epilog = examples(  # type: ignore[attr-defined]
    "turntide query \"SELECT session_id, severity, reason FROM alerts WHERE status = 'firing'\"",
    'turntide query "SELECT app_id, count(*) AS turns FROM turns GROUP BY ALL" --output csv',
    "turntide query \"FROM risk_points WHERE session_id = 's-1' ORDER BY turn\" --output json",
)


def run(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Execute, and hand out column names and rows as they are fetched.

    Raises:
        ConfigurationError: The statement is wrong, or would write.
    """
    import duckdb

    try:
        result = con.execute(sql)
    except duckdb.Error as error:
        raise _refused(error) from None
    columns = [column[0] for column in result.description or ()]
    return columns, _fetched(result)


def _fetched(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    import duckdb

    try:
        while rows := result.fetchmany(_FETCHED_AT_ONCE):
            yield from rows
    except duckdb.Error as error:
        raise _refused(error) from None


def _refused(error: Exception) -> ConfigurationError:
    said = textwrap.indent(str(error).strip(), "  ")
    return ConfigurationError(
        f"the archive's engine says:\n{said}\n"
        '`turntide query "SHOW TABLES"` lists the views, `turntide query "DESCRIBE turns"` the columns of one. '
        "The archive is opened read-only."
    )
