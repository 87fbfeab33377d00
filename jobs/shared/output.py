"""Printing of results, errors and progress by commands: a table for people, JSON or CSV for programs.

Results go to standard output, everything said beside them to standard error, so that a pipe gets the result alone.
Control characters of what conversations contain are shown, not sent: a turn must not steer somebody's terminal.

Options that several commands share, each declared once.
"""

import base64
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import chain, pairwise
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""
_WIDE_COLUMNS = 1_000
"""A pipe has no width: rows are not folded there."""

_VISIBLE = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""C0 as the symbols Unicode has for them, C1 as the replacement character."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet runs."""
_VISIBLE_ON_SEVERAL_LINES = {code: shown for code, shown in _VISIBLE.items() if code not in {0x09, 0x0A}}


class OutputFormat(StrEnum):
    """Forms of a result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Printer:
    """Prints results to `stream` (none: standard output) in one form, and messages `beside` (none: standard error)."""

    def __init__(self, form: OutputFormat, *, stream: TextIO | None = None, beside: TextIO | None = None) -> None:
        self.form = form
        self._stream = stream or sys.stdout
        self._beside = beside or sys.stderr

    def rows(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print rows with the keys of the first one: a table, a JSON array of objects, or CSV with a header.

        For no rows, `[]` with JSON and nothing otherwise.
        """
        remaining = iter(rows)
        first = next(remaining, None)
        columns = list(first) if first is not None else []
        everything = chain([first], remaining) if first is not None else iter(())
        self.table(title, columns, ([row.get(column) for column in columns] for row in everything))

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print rows by position. JSON and CSV are written as the rows come; columns of one name are numbered."""
        names = _distinct(columns)
        if self.form is OutputFormat.JSON:
            self._json_rows(names, rows)
        elif names and self.form is OutputFormat.CSV:
            writer = csv.writer(self._stream, lineterminator="\n")
            writer.writerow([harmless(name) for name in names])
            cells = ([harmless(each) if isinstance(each, str) else _cell(each) for each in row] for row in rows)
            writer.writerows(cells)
        elif names:
            shown = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, header_style="bold")
            for name in names:
                shown.add_column(Text(name.translate(_VISIBLE)), overflow="fold")
            for row in rows:
                shown.add_row(*(Text(_cell(value).translate(_VISIBLE)) for value in row))
            self._console().print(shown)

    def record(self, fields: Mapping[str, Any]) -> None:
        """Print one thing with named fields: `name value` lines, a JSON object, or CSV of one row."""
        if self.form is OutputFormat.JSON:
            self._write(_encode(dict(fields)))
        elif self.form is OutputFormat.CSV:
            self.table("", list(fields), [list(fields.values())])
        else:
            shown = Table.grid(padding=(0, 2))
            shown.add_column(style="bold")
            shown.add_column(overflow="fold")
            for name, value in fields.items():
                shown.add_row(Text(name.translate(_VISIBLE)), Text(_cell(value).translate(_VISIBLE)))
            self._console().print(shown)

    def text(self, text: str) -> None:
        """Print lines that are part of the result, for people: they are not folded, so that they can be copied."""
        if self.form is OutputFormat.TABLE:
            self._write(text.translate(_VISIBLE_ON_SEVERAL_LINES))

    def message(self, text: str) -> None:
        """Say something beside the result; not with JSON, whose readers find everything in it."""
        if self.form is not OutputFormat.JSON:
            self._beside.write(text.translate(_VISIBLE_ON_SEVERAL_LINES) + "\n")

    def error(self, error: Exception) -> None:
        """Say what went wrong, on standard error: a line, or with JSON `{"error": {"type", "message"}}`."""
        if self.form is OutputFormat.JSON:
            described = {"error": {"type": type(error).__name__, "message": str(error)}}
            self._beside.write(_encode(described) + "\n")
        else:
            self._beside.write(f"error: {error}".translate(_VISIBLE_ON_SEVERAL_LINES) + "\n")

    def _json_rows(self, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        objects: Iterator[str] = (_encode(dict(zip(names, row, strict=True))) for row in rows)
        first = next(objects, None)
        if first is None:
            self._write("[]")
            return
        self._stream.write("[" + first)
        for shown in objects:
            self._stream.write(",\n" + shown)
        self._write("]")

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")

    def _console(self) -> Console:
        width = None if self._stream.isatty() else _WIDE_COLUMNS
        return Console(file=self._stream, width=width, highlight=False, markup=False, emoji=False)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on standard error, where that is a terminal; call what it gives with what is done, and of how much."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, runs: bar.update(task, completed=done, total=runs)


@contextmanager
def status_line(label: str, *, shown: bool = True) -> Iterator[Callable[[str], None]]:
    """A line on stderr while something is waited for; call what it gives with what is under way."""
    if not shown:
        yield lambda _text: None
        return
    with Console(stderr=True).status(label) as status:
        yield lambda text: status.update(f"{label}: {text}")


def harmless(text: str) -> str:
    r"""Text as a cell of CSV: no spreadsheet runs it as a formula, no terminal takes a command from it.

    >>> harmless("=1+1"), harmless("a-b"), harmless("\x1b[2J")
    ("'=1+1", 'a-b', '␛[2J')
    """
    shown = text.translate(_VISIBLE_ON_SEVERAL_LINES)
    return f"'{shown}" if text.startswith(_FORMULA) else shown


def form_of(arguments: Sequence[str]) -> OutputFormat:
    """The form that a command line asks for, for errors that arise before the command has read its options.

    >>> form_of(["archive", "status", "--output", "json"]).value, form_of(["archive", "status"]).value
    ('json', 'table')
    """
    asked = [value for option, value in pairwise(arguments) if option == "--output"]
    asked += [argument.partition("=")[2] for argument in arguments if argument.startswith("--output=")]
    return next((form for form in OutputFormat if form.value in asked), OutputFormat.TABLE)


def _distinct(columns: Sequence[str]) -> list[str]:
    """Names with `_2`, `_3` … where one comes again.

    >>> _distinct(["a", "b", "a"])
    ['a', 'b', 'a_2']
    """
    names: list[str] = []
    for column in columns:
        name, count = column, 1
        while name in names:
            count += 1
            name = f"{column}_{count}"
        names.append(name)
    return names


def _encode(value: Any) -> str:
    return msgspec.json.encode(_plain(value), enc_hook=str).decode()


def _plain(value: Any) -> Any:
    """Keys of mappings as text, and times in UTC with a Z, whatever zone a database gave them."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _cell(value: Any) -> str:
    """One value as text; nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return str(_plain(value))
    if isinstance(value, Mapping | list | tuple):
        return _encode(value)
    return str(value)


OutputOption = Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
UrlOption = Annotated[
    str | None, typer.Option("--url", help="Address of the role index or api. Default: from the settings.")
]
TokenOption = Annotated[
    str, typer.Option("--token-env", help="Environment variable that holds a token of http.tokens; may be unset.")
]
TOKEN_VARIABLE = "TURNTIDE_TOKEN"  # noqa: S105 - the name of a variable
AppArgument = Annotated[str, typer.Argument(metavar="APP", help="Id of the app.")]
ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="Id of the project.")]
WithoutDamageOption = Annotated[
    bool, typer.Option("--without-damage", help="Leave out the days whose files are damaged.")
]
FilesOption = Annotated[
    bool, typer.Option("--files", help="Let statements read and write other files than the archive's.")
]
