"""Parts of the page of measurements, and their Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from jobs.shared.charts import Curve, draw_curves

CONTENDERS = {
    "sessions_role": "sessions role",
    "plain_fold": "the same fold, plain loop, no Kafka",
    "per_event_faust": "the same fold, Faust per event",
    "per_event_faust_guarded": "the same fold, Faust per event, offset kept in the state",
    "quix": "the same fold, Quix Streams, durable",
    "quix_at_least_once": "the same fold, Quix Streams, at least once",
    "quix_exactly_once": "the same fold, Quix Streams, exactly once",
    "bytewax": "the same fold, Bytewax, recovery on",
    "raw_read": "read and decode only",
}
"""Contender → what it is called on the page."""


class PrintedResult:
    """What a measuring command printed, read without trust: what is missing or of another kind is None or empty."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def number(self, *path: str) -> float | None:
        """The number at a path of keys."""
        value = self._at(path)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, *path: str) -> str:
        """The text at a path of keys."""
        value = self._at(path)
        return value if isinstance(value, str) else ""

    def flag(self, *path: str) -> bool:
        """Whether the value at a path of keys is true."""
        return self._at(path) is True

    def texts(self, *path: str) -> list[str]:
        """The texts of a list."""
        value = self._at(path)
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

    def numbers(self, *path: str) -> dict[str, float]:
        """Names with a number each."""
        return {name: number for name in self.names(*path) if (number := self.number(*path, name)) is not None}

    def words(self, *path: str) -> dict[str, str]:
        """Names with a text each."""
        return {name: text for name in self.names(*path) if (text := self.text(*path, name))}

    def pair(self, *path: str) -> tuple[float, float] | None:
        """Two numbers of a list."""
        value = self._at(path)
        if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int | float) for each in value):  # noqa: PLR2004 - a pair
            return float(value[0]), float(value[1])
        return None

    def values(self, *path: str) -> list[float]:
        """The numbers of a list."""
        value = self._at(path)
        return [float(each) for each in value if isinstance(each, int | float)] if isinstance(value, list) else []

    def rows(self, *path: str) -> list[PrintedResult]:
        """The objects of a list."""
        value = self._at(path)
        return [PrintedResult(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []

    def part(self, *path: str) -> PrintedResult | None:
        """The object at a path of keys."""
        value = self._at(path)
        return PrintedResult(value) if isinstance(value, dict) else None

    def names(self, *path: str) -> list[str]:
        """The keys of the object at a path of keys."""
        value = self._at(path)
        return list(value) if isinstance(value, dict) else []

    def _at(self, path: Sequence[str]) -> Any:
        value = self._data
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


class HeldFigure(Struct, frozen=True):
    """A figure and what it is held to.

    Attributes:
        what: Name of the figure.
        value: Measured.
        bound: What it is held to.
        at_least: Whether the bound is a least value; else it is a greatest.
        unit: Of both.
        valid: Whether the measurement may reach its bound at all.
    """

    what: str
    value: float
    bound: float
    at_least: bool = False
    unit: str = ""
    valid: bool = True

    @property
    def reached(self) -> bool:
        """Whether the figure is on the right side of its bound.

        >>> HeldFigure("p99", 80.0, 75.0).reached, HeldFigure("ratio", 6.0, 5.0, at_least=True).reached
        (False, True)
        """
        return self.valid and (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def printed(self) -> dict[str, Any]:
        """As JSON and CSV have it."""
        return {
            "figure": self.what,
            "measured": self.value,
            "limit": self.bound,
            "at_least": self.at_least,
            "unit": self.unit,
            "reached": self.reached,
        }


def held(
    what: str,
    value: float | None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "",
    valid: bool = True,
) -> list[HeldFigure]:
    """A figure with one of the bounds; none if it was not measured or has no bound."""
    bound = at_most if at_least is None else at_least
    if value is None or bound is None:
        return []
    return [HeldFigure(what, value, bound, at_least is not None, unit, valid)]


class PageTable(Struct, frozen=True):
    """Columns and rows of text; columns in which nothing stands are left out when it is written."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class PagePicture(Struct, frozen=True):
    """A file beside the page.

    Attributes:
        file: Its name.
        shows: What can be seen, for those who do not see it.
        draw: Writes it.
    """

    file: str
    shows: str
    draw: Callable[[Path], None]


class PageSection(Struct, frozen=True):
    """One measurement.

    Attributes:
        title: Heading.
        said: Paragraphs: what was measured and how.
        held: Figures with a bound.
        tables: All figures.
        pictures: After the tables.
    """

    title: str
    said: Sequence[str]
    held: Sequence[HeldFigure] = ()
    tables: Sequence[PageTable] = ()
    pictures: Sequence[PagePicture] = ()


def number(value: float | None, unit: str = "") -> str:
    """Three figures that matter, thousands separated; nothing for what was not measured.

    >>> number(12345.6), number(0.0421), number(4.0, "ms"), number(None)
    ('12,346', '0.0421', '4 ms', '')
    """
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three figures
    return f"{text} {unit}".rstrip()


def words(key: str) -> str:
    """A key as words.

    >>> words("alerts_missing")
    'alerts missing'
    """
    return key.replace("_", " ")


Rows = Callable[[PrintedResult], Sequence[tuple[str, PrintedResult]]]
"""Finds the rows of a table: name and figures of each."""


class TableLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """How a table is made of what a command printed, as `sections.toml` has it."""

    first: str
    columns: list[str]
    each: str = ""
    name: str = ""
    unit: str = ""
    part: str = ""
    parts: list[str] = []
    lists: list[str] = []
    entries: list[str] = []
    listed: list[str] = []
    found_by: str = ""

    def table(self, measured: PrintedResult, found_by: Mapping[str, Rows]) -> PageTable:
        """The table; columns in which nothing stands are left out when it is written."""
        rows = found_by[self.found_by](measured) if self.found_by else list(self._rows(measured))
        return number_table(self.first, dict(map(_named, self.columns)), rows)

    def _rows(self, measured: PrintedResult) -> Iterator[tuple[str, PrintedResult]]:
        for row in measured.rows(self.each):
            if part := row.part(self.part) if self.part else row:
                yield row.text(self.name) or number(row.number(self.name), self.unit), part
        for key, name in map(_named, self.parts):
            if part := measured.part(*filter(None, key.split("."))):
                yield name, part
        for key, name in map(_named, self.lists):
            yield from ((name, row) for row in measured.rows(key))
        for name in measured.names(*self.entries[:1]) if self.entries else ():
            yield name, PrintedResult({key: measured.number(key, name) for key in self.entries})
        for key, name in map(_named, self.listed):
            if (value := measured.number(key)) is not None:
                yield name, PrintedResult({"value": value})


class HeldLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """Figures with a bound, as `sections.toml` has them.

    Attributes:
        what: Their name, in which `{name}` stands for the row's.
        value: Path of the figure, with points.
        each: List whose rows have one each; none: the measurement itself.
        name: Key of a row's name.
        only: Only rows of these names; none: all.
    """

    what: str
    value: str
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""
    each: str = ""
    name: str = ""
    only: list[str] = []

    def figures(self, measured: PrintedResult) -> Iterator[HeldFigure]:
        """Those that were measured."""
        for row in measured.rows(self.each) if self.each else [measured]:
            name = row.text(self.name) or number(row.number(self.name))
            if not self.only or name in self.only:
                value = row.number(*self.value.split("."))
                what = self.what.format(name=name)
                yield from held(what, value, at_least=self.at_least, at_most=self.at_most, unit=self.unit)


class SectionLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """How a section is made of what a command printed, as `sections.toml` has it.

    Attributes:
        title: Heading; a key of the measurement in braces stands for its text or number, as in `said`.
        said: What was measured and how.
        tables: In order.
        held: Figures with a bound.
    """

    title: str
    said: str
    tables: list[TableLayout]
    held: list[HeldLayout] = []

    def figures(self, measured: PrintedResult) -> Iterator[HeldFigure]:
        """Figures with a bound, as far as they were measured."""
        for each in self.held:
            yield from each.figures(measured)


def number_table(first: str, columns: Mapping[str, str], rows: Sequence[tuple[str, PrintedResult]]) -> PageTable:
    """A row for each: its name, then the numbers at the keys of `columns`.

    Args:
        first: Heading of the names.
        columns: Key, and behind a space its unit, → heading. Bytes with the unit MiB are shown as such.
        rows: Name and figures.
    """
    return PageTable((first, *columns.values()), [(name, *(_cell(row, key) for key in columns)) for name, row in rows])


def _cell(row: PrintedResult, column: str) -> str:
    key, _, unit = column.partition(" ")
    value = row.number(key)
    if unit == "MiB":
        return number(None if value is None else value / 2**20)
    return number(value, unit)


def _named(written: str) -> tuple[str, str]:
    """Key and heading.

    >>> _named("f1: F1"), _named("recall"), _named("probes: ")
    (('f1', 'F1'), ('recall', 'recall'), ('probes', ''))
    """
    key, colon, heading = written.partition(": ")
    return key, heading if colon else key


def curve_picture(file: str, shows: str, curves: Sequence[Curve], **looks: Any) -> list[PagePicture]:
    """A picture of the curves that have points, drawn by `draw_curves` with these looks; none without any."""
    kept = [curve for curve in curves if curve.points]
    return [PagePicture(file, shows, partial(draw_curves, curves=kept, **looks))] if kept else []


def points(rows: Sequence[PrintedResult], x: str, y: str, scale: float = 1.0) -> list[tuple[float, float]]:
    """Where both numbers were measured."""
    pairs = [(row.number(x), row.number(y)) for row in rows]
    return [(a, b * scale) for a, b in pairs if a is not None and b is not None]


def rounds(measured: PrintedResult) -> str:
    """Over how many runs medians were taken, as a sentence."""
    runs, turns = measured.number("runs"), measured.number("turns")
    if runs is None:
        return ""
    length = f", {number(turns)} turns each" if turns is not None else ""
    return f"Figures are medians of {number(runs)} rounds{length}." if runs > 1 else f"One round only{length}."


def as_markdown(section: PageSection) -> str:
    """A section with its heading."""
    blocks = [f"## {section.title}", *section.said]
    blocks += [table_as_markdown(table) for table in section.tables if table.rows]
    blocks += [f"![{picture.shows}]({picture.file})" for picture in section.pictures]
    return "\n\n".join(blocks)


def held_table(figures: Sequence[HeldFigure]) -> PageTable:
    """What is held to what, and whether it is reached."""
    rows = []
    for figure in figures:
        sign = "≥ " if figure.at_least else "≤ " if figure.bound else ""
        bound = sign + number(figure.bound, figure.unit)
        verdict = "reached" if figure.reached else "**not reached**"
        rows.append((figure.what, bound, number(figure.value, figure.unit), verdict))
    return PageTable(("figure", "held to", "measured", ""), rows)


def table_as_markdown(table: PageTable) -> str:
    r"""A Markdown table; the first column is text, the others are set to the right.

    >>> print(table_as_markdown(PageTable(("what", "n", "empty"), [("a|b", "1", "")])))
    | what | n |
    |---|--:|
    | a\|b | 1 |
    """
    kept = [n for n, _ in enumerate(table.columns) if any(row[n] for row in table.rows)]
    lines = [[table.columns[n] for n in kept], *([row[n] for n in kept] for row in table.rows)]
    written = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]
    rule = "|---|" + "--:|" * (len(kept) - 1)
    return "\n".join([written[0], rule, *written[1:]])
