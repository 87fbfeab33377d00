"""`turntide archive shell`: SQL over the archive, statement by statement, read-only."""

import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.resources import files
from itertools import islice
from typing import Annotated

import duckdb
import typer

from jobs.archive.dictionary import entries
from jobs.archive.query import open_for, run
from jobs.cli import with_examples
from jobs.shared.output import FilesOption, OutputFormat, OutputOption, Printer, WithoutDamageOption
from models.errors import TurntideError
from streams.archive.catalog import paths_of
from streams.settings import load_settings

_EXIT_FAILED = 1
_ROWS = 100
_PROMPT, _MORE = "turntide> ", "     ...> "
_LEAVE = {".quit", ".exit", "quit", "exit"}
"""As other shells have it."""
HELP = files("jobs.archive").joinpath("shell.txt").read_text(encoding="utf-8").rstrip()


@with_examples(
    "turntide archive shell",
    'turntide archive shell --command "SELECT count(*) FROM turns; SELECT count(*) FROM sessions"',
    "turntide archive shell --output csv < questions.sql",
)
def shell(
    *,
    command: Annotated[str | None, typer.Option("--command", help="Run these statements and exit.")] = None,
    output: OutputOption = OutputFormat.TABLE,
    without_damage: WithoutDamageOption = False,
    files: FilesOption = False,
) -> None:
    """Open the archive in DuckDB, read-only, at a prompt; also reads statements from standard input."""
    with closing(open_for(paths_of(load_settings()), without_damage=without_damage, files=files)) as con:
        session = Session(con, Printer(output))
        if command is not None:
            session.run_all(iter([command]))
        elif not sys.stdin.isatty():
            session.run_all(iter(sys.stdin))
        else:
            session.converse()
    if session.failed:
        raise typer.Exit(_EXIT_FAILED)


class Session:
    """Runs what is typed."""

    def __init__(self, con: duckdb.DuckDBPyConnection, output: Printer) -> None:
        self._con = con
        self._output = output
        self.failed = False
        """Whether a statement that nobody sees fail did."""

    def converse(self) -> None:
        """Ask for statements until `.quit`, `exit` or Ctrl-D."""
        with suppress(ImportError):
            import readline  # noqa: F401 - line editing and history for input()
        self._output.message("the archive, read-only; .help lists the commands")
        typed = ""
        while True:
            try:
                line = input(_MORE if typed else _PROMPT)
            except EOFError:
                return
            except KeyboardInterrupt:
                typed = ""
                self._output.message("")
                continue
            if not typed and line.strip() in _LEAVE:
                return
            typed = self.take(typed, line)

    def run_all(self, lines: Iterator[str]) -> None:
        """Run what the lines hold, to the first that fails; the last statement needs no semicolon."""
        typed = ""
        for line in lines:
            if not typed and line.strip() in _LEAVE:
                return
            typed = self.take(typed, line)
            if self.failed:
                return
        if typed.strip():
            self._statement(typed)

    def take(self, typed: str, line: str) -> str:
        """Run what a further line completes; returns what still waits for its end."""
        if not typed.strip() and line.startswith("."):
            self._dotted(line.split())
            return ""
        statements, rest = split(f"{typed}\n{line}" if typed else line)
        for statement in statements:
            if not self._statement(statement):
                return ""
        return rest if rest.strip() else ""

    def _statement(self, sql: str) -> bool:
        try:
            columns, rows = run(self._con, sql)
            most = _ROWS if self._output.form is OutputFormat.TABLE else None
            self._output.table("", columns, islice(rows, most))
            if most is not None and next(rows, None) is not None:
                self._output.message(f"the first {most} rows")
        except TurntideError as error:
            self._output.error(error)
            self.failed = True
            return False
        except KeyboardInterrupt:
            self._con.interrupt()
            self._output.message("cancelled")
            return False
        return True

    def _dotted(self, words: list[str]) -> None:
        try:
            match words:
                case [".tables"]:
                    shown = [{"view": entry["view"], "purpose": entry["purpose"]} for entry in entries(None)]
                    self._output.rows("views", shown)
                case [".schema", view]:
                    self._output.rows(view, entries(view)[0]["columns"])
                case [".help"]:
                    self._output.message(HELP)
                case _:
                    self._output.message(f"no such command: {words[0]}. .help lists the commands")
        except TurntideError as error:
            self._output.error(error)


def split(text: str) -> tuple[list[str], str]:
    """The complete statements of a text, and what is left: a semicolon in quotes or comments ends none.

    >>> split("SELECT ';'; SELECT 2 -- more;")
    (["SELECT ';'"], ' SELECT 2 -- more;')
    """
    data = text.encode()
    ends = [at for at, _kind in duckdb.tokenize(text) if data[at : at + 1] == b";"]
    starts = [0, *(end + 1 for end in ends)]
    found = [data[start:end].decode() for start, end in zip(starts, ends, strict=False)]
    return [statement for statement in found if statement.strip()], data[starts[-1] :].decode()
