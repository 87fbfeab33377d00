"""`turntide query`: SQL over the archive, also while it is being written."""

import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import duckdb
import msgspec
import typer

from jobs.cli import with_examples
from jobs.shared.output import FilesOption, OutputFormat, Printer, WithoutDamageOption, harmless
from models.errors import ConfigurationError, StoreUnavailable
from streams.archive.catalog import METADATA, confine, literal, open_reader, paths_of
from streams.archive.damage import explained
from streams.archive.place import LakePaths
from streams.archive.rows import opened_value
from streams.archive.views.definitions import VIEW_NAMES
from streams.archive.views.published import leave_damage_out
from streams.encryption.tokens import MARK
from streams.settings import load_settings

_TABLE_ROWS = 100
_FETCHED_AT_ONCE = 1_000
_OF_STATEMENT = ("Invalid Input Error: Cannot execute statement", "Invalid Input Error: No snapshot found")


QueryFormat = Literal["table", "json", "csv", "parquet"]
"""Forms of a query's rows."""


@with_examples(
    "turntide query \"SELECT session_id, severity, reason FROM alerts WHERE status = 'firing'\"",
    'turntide query "SELECT app_id, count(*) AS turns FROM turns GROUP BY ALL" --output csv',
    "turntide query \"FROM turn_risks WHERE app_id = 'shop' AND session_id = 's-1' ORDER BY turn\" --output json",
    'turntide query "FROM sessions" --output parquet --to sessions.parquet',
    "turntide query \"SELECT count(*) FROM turns WHERE date = DATE '2026-03-04'\" --explain",
    "turntide query --files \"FROM turns SEMI JOIN 'sessions.csv' USING (app_id, session_id)\"",
)
def query(
    sql: Annotated[str, typer.Argument(help="A statement in DuckDB's SQL.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help=f"Maximum number of rows. Default for tables: {_TABLE_ROWS}."),
    ] = None,
    output: Annotated[QueryFormat, typer.Option("--output", help="How the rows are printed.")] = "table",
    to: Annotated[
        Path | None, typer.Option("--to", help="Write all rows to this file, as parquet, json or csv.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Run the query, and print the archive's files that it read, and the time.")
    ] = False,
    without_damage: WithoutDamageOption = False,
    files: FilesOption = False,
) -> None:
    """Ask the archive in SQL, read-only."""
    _check(output, to, explain=explain)
    writable = [] if to is None else [beginning_of(to)]
    with closing(open_for(paths_of(load_settings()), *writable, without_damage=without_damage, files=files)) as con:
        if explain:
            printed = Printer(OutputFormat(output))
            read = _refusing(con, lambda: files_read(con, sql))
            printed.rows("files read", [scan._asdict() for scan in read.scans])
            printed.message(f"{read.bytes / 1e6:.2f} MB read in {read.seconds:.2f} s")
        elif to is not None:
            rows = _refusing(con, lambda: write(con, sql, to, output, limit))
            Printer(OutputFormat.TABLE).message(f"{rows} rows in {to}")
        else:
            _print(con, sql, limit, OutputFormat(output))


# Typer shows the docstring, and the views are known elsewhere.
query.__doc__ = f"""Query the archive in SQL, read-only.

Views: {", ".join(VIEW_NAMES)}. `turntide archive dictionary` explains them, `DESCRIBE turns` lists columns.
"""


def open_for(paths: LakePaths, *writable: Path, without_damage: bool, files: bool) -> duckdb.DuckDBPyConnection:
    """A reader for somebody's statements.

    Args:
        paths: The archive.
        writable: Files that it may write.
        without_damage: Leave days with damaged files out.
        files: Let statements read and write other files than the archive's.
    """
    con = open_reader(paths)
    if without_damage:
        leave_damage_out(con)
    if not files:
        confine(con, paths, *writable)
    return con


def _check(output: QueryFormat, to: Path | None, *, explain: bool) -> None:
    if output == "parquet" and (to is None or explain):
        raise ConfigurationError("--output parquet needs --to FILE, and excludes --explain")
    if to is not None and output == "table":
        raise ConfigurationError("--to writes rows to a file: add --output parquet, json or csv")
    if to is not None and explain:
        raise ConfigurationError("--explain shows what a query reads, --to writes its rows: use one of them")


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
    result = _refusing(con, lambda: con.execute(_read_only(con, sql)))
    columns = [column[0] for column in result.description or ()]
    return columns, _fetched(result)


def _read_only(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statements, none of which writes a file where the connection is confined to the archive's own."""
    (confined,) = con.execute("SELECT NOT current_setting('enable_external_access')").fetchall()[0]
    writing = (duckdb.StatementType.COPY, duckdb.StatementType.EXPORT)
    if confined and any(statement.type in writing for statement in con.extract_statements(sql)):
        raise ConfigurationError(
            "this query is read-only: --to FILE writes its rows, and --files lets statements use other files"
        )
    return sql


def _fetched(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := _refusing(result, lambda: result.fetchmany(_FETCHED_AT_ONCE)):
        yield from opened_value(rows)


def _refusing(con: duckdb.DuckDBPyConnection, act: Any) -> Any:
    """Do it; the engine's errors become ours, and Ctrl-C, which it tells as an error of its own, what it is."""
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
    of_files = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
    if isinstance(error, of_files) and (damage := explained(con)):
        return StoreUnavailable(
            f"the archive cannot be read in full: {damage}. `--without-damage` leaves these days out"
        )
    if not _speaks_of_statement(error):
        return ConfigurationError(
            f"the archive's engine could not compute a row ({type(error).__name__}); its message is hidden, since it "
            "may quote the row. For a failing cast, `try_cast` returns null instead"
        )
    said = textwrap.indent(str(error).strip(), "  ")
    return ConfigurationError(
        f"the archive's engine reports:\n{said}\n"
        '`turntide query "SHOW TABLES"` lists the views, `turntide query "DESCRIBE turns"` the columns of one. '
        "The archive is opened read-only; other files can be used only with --files."
    )


def _speaks_of_statement(error: Exception) -> bool:
    """Whether the engine's message is about what was typed: others quote values, and with them what somebody said."""
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


# ruff: noqa: S608 - the statement is the analyst's own, on a connection that cannot write the archive


_OPTIONS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false",
    "csv": "FORMAT csv, HEADER, USE_TMP_FILE false",
    "json": "FORMAT json, ARRAY, USE_TMP_FILE false",
}


class Scan(NamedTuple):
    """One scan of one table."""

    table: str
    files_read: int
    of_files: int
    filters: str
    """What was known before the files were opened, and kept some of them shut."""


class Read(NamedTuple):
    """Reads of a statement."""

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


def beginning_of(path: Path) -> Path:
    """The file that rows are written to before it takes its name, in the same folder."""
    return path.absolute().with_name(f".{path.name}.{os.getpid()}")


def write(con: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str, limit: int | None) -> int:
    """Write at most `limit` rows of a SELECT to a parquet, csv or json file; returns how many.

    The file is there whole or as it was.

    Raises:
        ConfigurationError: The file's folder does not exist or cannot be written.
        duckdb.Error: The statement cannot be run.
    """
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigurationError(f"cannot write {path}: its folder is missing or not writable")
    beginning = beginning_of(path)
    bound = "" if limit is None else f" LIMIT {limit:d}"
    asked = _texts_by(con, f"({sql.strip().rstrip(';')}\n)", "opened", _opened, f"contains({{0}}, '{MARK}')")
    if form == "csv":
        asked = _texts_by(con, asked, "harmless", harmless)
    try:
        written: Any = con.execute(
            f"COPY (SELECT * FROM {asked}{bound}) TO {literal(str(beginning))} ({_OPTIONS[form]})"
        ).fetchone()
        beginning.replace(path)
    finally:
        beginning.unlink(missing_ok=True)
    return int(written[0])


def _opened(text: str) -> str:
    return str(opened_value(text))


def _texts_by(
    con: duckdb.DuckDBPyConnection, asked: str, name: str, make: Callable[[str], str], condition: str | None = None
) -> str:
    """What is asked, its texts made anew: opened where they are encrypted, or as CSV takes them."""
    con.create_function(name, make, side_effects=False)
    wanted = f"{name}({{0}})" if condition is None else f"CASE WHEN {condition} THEN {name}({{0}}) ELSE {{0}} END"
    described = con.execute(f"DESCRIBE SELECT * FROM {asked}").fetchall()
    texts = ['"' + name.replace('"', '""') + '"' for name, kind, *_ in described if kind == "VARCHAR"]
    replaced = ", ".join(f"{wanted.format(text)} AS {text}" for text in texts)
    return f"(SELECT * REPLACE ({replaced}) FROM {asked})" if texts else asked
