"""`turntide query`: SQL over the archive, also while it is being written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli import examples
from jobs.shared.options import WithoutDamageOption
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError
from streams.archive.views.definitions import VIEW_NAMES
from streams.settings import load_settings

if TYPE_CHECKING:
    import duckdb

_TABLE_ROWS = 100
_FETCHED_AT_ONCE = 1_000
_OF_STATEMENT = ("Invalid Input Error: Cannot execute statement", "Invalid Input Error: No snapshot found")


class QueryFormat(StrEnum):
    """Forms of a query's rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def query(
    sql: Annotated[str, typer.Argument(help="A statement in DuckDB's SQL.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help=f"Print at most this many rows; a table shows {_TABLE_ROWS} unless told."),
    ] = None,
    output: Annotated[QueryFormat, typer.Option("--output", help="How the rows are printed.")] = QueryFormat.TABLE,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write all rows to this file instead: parquet, json or csv.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Run it, and say which of the archive's files it read and for how long.")
    ] = False,
    without_damage: WithoutDamageOption = False,
) -> None:
    """Ask the archive in SQL, read-only."""
    from jobs.archive import query_files
    from streams.archive.catalog import open_reader, paths_of
    from streams.archive.views.published import leave_damage_out

    _check(output, to, explain=explain)
    with closing(open_reader(paths_of(load_settings()))) as con:
        if without_damage:
            leave_damage_out(con)
        if explain:
            printed = Printer(form_of_output(output))
            read = _refusing(con, lambda: query_files.files_read(con, sql))
            printed.rows("files read", [scan._asdict() for scan in read.scans])
            printed.message(f"{read.bytes / 1e6:.2f} MB read in {read.seconds:.2f} s")
        elif to is not None:
            rows = _refusing(con, lambda: query_files.write(con, sql, to, output.value, limit))
            Printer(OutputFormat.TABLE).message(f"{rows} rows in {to}")
        else:
            _print(con, sql, limit, form_of_output(output))


# Typer shows the docstring, and the views are known elsewhere.
query.__doc__ = f"""Ask the archive in SQL, read-only.

Views: {", ".join(VIEW_NAMES)}. `turntide archive dictionary` says what they mean, `DESCRIBE turns` shows columns.
"""
query.epilog = examples(  # type: ignore[attr-defined]
    "turntide query \"SELECT session_id, severity, reason FROM alerts WHERE status = 'firing'\"",
    'turntide query "SELECT app_id, count(*) AS turns FROM turns GROUP BY ALL" --output csv',
    "turntide query \"FROM risk_points WHERE session_id = 's-1' ORDER BY turn\" --output json",
    'turntide query "FROM sessions" --output parquet --to sessions.parquet',
    "turntide query \"SELECT count(*) FROM turns WHERE date = DATE '2026-03-04'\" --explain",
)


def form_of_output(output: QueryFormat) -> OutputFormat:
    """The form of what is printed."""
    return OutputFormat(output.value)


def _check(output: QueryFormat, to: Path | None, *, explain: bool) -> None:
    if output is QueryFormat.PARQUET and (to is None or explain):
        raise ConfigurationError("Parquet is a file: say which with --to FILE, and leave --explain out")
    if to is not None and output is QueryFormat.TABLE:
        raise ConfigurationError("--to writes a file of rows: add --output parquet, json or csv")
    if to is not None and explain:
        raise ConfigurationError("--explain says what a query reads, --to writes its rows: one at a time")


def _print(con: duckdb.DuckDBPyConnection, sql: str, limit: int | None, form: OutputFormat) -> None:
    columns, rows = run(con, sql)
    printed = Printer(form)
    most = limit or (_TABLE_ROWS if form is OutputFormat.TABLE else None)
    printed.table("", columns, rows if most is None else islice(rows, most))
    if most is not None and next(rows, None) is not None:
        printed.message(f"the first {most} rows; --limit shows more")


def run(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Execute, and hand out column names and rows as they are fetched.

    Raises:
        ConfigurationError: The statement is wrong, or would write.
        StoreUnavailable: A file of the archive is damaged.
    """
    result = _refusing(con, lambda: con.execute(sql))
    columns = [column[0] for column in result.description or ()]
    return columns, _fetched(result)


def _fetched(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := _refusing(result, lambda: result.fetchmany(_FETCHED_AT_ONCE)):
        yield from rows


def _refusing(con: duckdb.DuckDBPyConnection, act: Any) -> Any:
    """Do it; the engine's errors become ours, and Ctrl-C, which it tells as an error of its own, what it is."""
    import duckdb

    try:
        return act()
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            con.interrupt()  # else the statement goes on, and closing waits for it
            raise KeyboardInterrupt from None
        raise
    except duckdb.Error as error:
        raise _refused(con, error) from None


def _refused(con: duckdb.DuckDBPyConnection, error: Exception) -> Exception:
    import duckdb

    from models.errors import StoreUnavailable
    from streams.archive.damage import explained

    of_files = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
    if isinstance(error, of_files) and (damage := explained(con)):
        return StoreUnavailable(
            f"the archive cannot be read in full: {damage}. `--without-damage` leaves these days out"
        )
    if not _speaks_of_statement(error):
        return ConfigurationError(
            f"the archive's engine could not compute a row ({type(error).__name__}): its message would repeat what is "
            "in the row. Of casts, `try_cast` gives null instead"
        )
    said = textwrap.indent(str(error).strip(), "  ")
    return ConfigurationError(
        f"the archive's engine says:\n{said}\n"
        '`turntide query "SHOW TABLES"` lists the views, `turntide query "DESCRIBE turns"` the columns of one. '
        "The archive is opened read-only."
    )


def _speaks_of_statement(error: Exception) -> bool:
    """Whether the engine's message is about what was typed: others quote values, and with them what somebody said."""
    import duckdb

    of_statement = (
        duckdb.ParserException,
        duckdb.SyntaxException,
        duckdb.BinderException,
        duckdb.CatalogException,
        duckdb.NotImplementedException,
        duckdb.PermissionException,
        duckdb.TransactionException,
        duckdb.IOException,
        duckdb.OutOfMemoryException,
    )
    return isinstance(error, of_statement) or str(error).startswith(_OF_STATEMENT)
