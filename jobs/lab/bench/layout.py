"""Layout of a section of the measurements page, as `sections.toml` has it: held figures, tables and pictures.

A path is one or more keys with points between them. What is missing at a path, or of another kind, is left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from jinja2 import ChainableUndefined, Environment
from msgspec import Struct

from jobs.shared.pictures import Bar, Curve, Limit, Series, draw_bars, draw_curves, draw_grouped_bars

Measured = Mapping[str, Any]
"""Output of a measuring command, or a part of it."""
_MIB = " MiB"


def at(measured: Any, path: str) -> Any:
    """The value at a path; the whole at an empty one.

    >>> at({"a": {"b": 1}}, "a.b"), at({"a": 1}, "a.b"), at({"a": 1}, "")
    (1, None, {'a': 1})
    """
    for key in filter(None, path.split(".")):
        measured = measured.get(key) if isinstance(measured, Mapping) else None
    return measured


def figure(measured: Any, path: str) -> float | None:
    """The number at a path; with ` MiB` behind the path, of bytes."""
    value = at(measured, path.removesuffix(_MIB))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value / 2**20 if path.endswith(_MIB) else float(value)


def rows_at(measured: Any, path: str) -> list[Measured]:
    """The objects of the list at a path."""
    value = at(measured, path)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []


def entries_at(measured: Any, path: str) -> dict[str, Any]:
    """The entries of the object at a path."""
    value = at(measured, path)
    return dict(value) if isinstance(value, Mapping) else {}


def number(value: float | None, unit: str = "") -> str:
    """A number with three significant figures and thousands separated; empty for None.

    >>> number(12345.6), number(0.0421), number(4.0, "ms"), number(None)
    ('12,346', '0.0421', '4 ms', '')
    """
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three figures
    return f"{text} {unit}".rstrip()


def cell(measured: Any, path: str = "", unit: str = "") -> str:
    """The text or number at a path, as a table shows it."""
    value = at(measured, path)
    return value if isinstance(value, str) else number(figure(measured, path), unit)


_TEXTS = Environment(finalize=cell, undefined=ChainableUndefined)  # noqa: S701 - Markdown, not HTML


def filled_in(text: str, measured: Measured, **more: str) -> str:
    """A Jinja template filled with keys of the measurement, numbers as `number` writes them."""
    return _TEXTS.from_string(text).render(measured, **more).strip()


class HeldFigure(Struct, frozen=True):
    """A figure and its limit, a greatest or a least one; `valid` says whether the measurement may reach it at all."""

    what: str
    value: float
    bound: float
    at_least: bool = False
    unit: str = ""
    valid: bool = True

    @property
    def reached(self) -> bool:
        """True if the figure is on the right side of its limit.

        >>> HeldFigure("p99", 80.0, 75.0).reached, HeldFigure("ratio", 6.0, 5.0, at_least=True).reached
        (False, True)
        """
        return self.valid and (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def printed(self) -> dict[str, Any]:
        """As JSON and CSV have it."""
        shown = {"measured": self.value, "limit": self.bound, "at_least": self.at_least, "unit": self.unit}
        return {"figure": self.what, **shown, "reached": self.reached}


class PageTable(Struct, frozen=True):
    """Columns and rows of text; empty columns are left out when it is written."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_markdown(self) -> str:
        r"""A Markdown table; the first column is text, the others are set to the right.

        >>> print(PageTable(("what", "n", "empty"), [("a|b", "1", "")]).as_markdown())
        | what | n |
        |---|--:|
        | a\|b | 1 |
        """
        kept = [n for n, _ in enumerate(self.columns) if any(row[n] for row in self.rows)]
        lines = [[line[n].replace("|", r"\|") for n in kept] for line in (self.columns, *self.rows)]
        written = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([written[0], "|---|" + "--:|" * (len(kept) - 1), *written[1:]])


class PagePicture(Struct, frozen=True):
    """A file beside the page: its name, its text for those who do not see it, and the function that writes it."""

    file: str
    shows: str
    draw: Callable[[Path], None]


class HeldLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """Figures with a limit.

    Attributes:
        what: Their name: a template (`filled_in`), in which `name` is the row's.
        value: Path of the figure.
        at_least: The limit, or the path of it.
        at_most: Likewise.
        unit: Of figure and limit.
        each: List whose rows have one each; none: the measurement itself.
        name: Key of a row's name.
        only: Only rows of these names; none: all.
        valid: Path of a flag: without it the limit is not reached; none: it may be reached.
    """

    what: str
    value: str
    at_least: float | str | None = None
    at_most: float | str | None = None
    unit: str = ""
    each: str = ""
    name: str = ""
    only: list[str] = []
    valid: str = ""

    def figures(self, measured: Measured) -> Iterator[HeldFigure]:
        """Those that were measured."""
        at_least = self.at_least is not None
        wanted = self.at_least if at_least else self.at_most
        bound = figure(measured, wanted) if isinstance(wanted, str) else wanted
        for row in rows_at(measured, self.each) if self.each else [measured]:
            name, value = cell(row, self.name), figure(row, self.value)
            if value is not None and bound is not None and (not self.only or name in self.only):
                valid = not self.valid or at(measured, self.valid) is True
                what = filled_in(self.what, measured, name=name)
                yield HeldFigure(what, value, bound, at_least, self.unit, valid)


class TableLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """A table: a column of names, then those of `columns`.

    Columns and rows are written "key: heading"; a key without a heading is its own. A column's key may have a unit
    behind a space.

    Attributes:
        first: Heading of the names.
        rows: Paths. An object is a row, a number one whose column is `value`, a list has a row for each of its objects,
            and a path that ends in `.*` one for each entry.
        name: Key by which the rows of a list are named, with `unit`; none: all by the heading of the list.
        part: Of each object of a list the part that is shown; none: the whole.
        entries: Mappings; a row is a key of the first one, a column a mapping.
    """

    first: str
    columns: list[str]
    rows: list[str] = []
    name: str = ""
    unit: str = ""
    part: str = ""
    entries: list[str] = []

    def table(self, measured: Measured) -> PageTable:
        """The table of what was measured."""
        rows = list(self._rows(measured))
        columns = [_with_unit(*_named(written)) for written in self.columns]
        cells = [[name, *(cell(row, key, unit) for key, unit, _ in columns)] for name, row in rows]
        return PageTable([self.first, *(heading for _, _, heading in columns)], cells)

    def _rows(self, measured: Measured) -> Iterator[tuple[str, Measured]]:
        for path, heading in map(_named, self.rows):
            if path.endswith(".*"):
                yield from entries_at(measured, path[:-2]).items()
            if isinstance(row := at(measured, path), Mapping):
                yield heading, row
            elif (value := figure(measured, path)) is not None:
                yield heading, {"value": value}
            for row in rows_at(measured, path):
                if isinstance(part := at(row, self.part), Mapping):
                    yield cell(row, self.name, self.unit) if self.name else heading, part
        for name in entries_at(measured, self.entries[0]) if self.entries else ():
            yield name, {key: entries_at(measured, key).get(name) for key in self.entries}


class PictureLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """A picture of the rows at `each`; `file` and `title` are templates (`filled_in`).

    Attributes:
        kind: Bars of one value, bars in groups of one row, or curves over `x`.
        file: Name of the file.
        shows: Text for those who do not see it.
        title: Above it.
        x_label: Of the axis.
        y_label: Likewise; only curves have one.
        each: List of rows.
        name: Key of a row's name, for bars.
        x: Key of the first coordinate, for curves.
        y: Key of each series: its heading.
        by: Key whose values have a curve each; the heading is a template, in which `by` stands for it.
        held: Name of the figure that limits a bar: a template, in which `name` is the bar's.
        limit: Limit of curves, as a multiple of the first value.
        log_x: Whether the axis is logarithmic.
        log_y: Likewise.
        label_points: Whether values stand at their points.
    """

    kind: Literal["bars", "grouped", "curves"]
    file: str
    shows: str
    title: str
    x_label: str
    each: str
    y: list[str]
    y_label: str = ""
    name: str = "name"
    x: str = ""
    by: str = ""
    held: str = ""
    limit: float | None = None
    log_x: bool = False
    log_y: bool = False
    label_points: bool = True

    def pictures(self, measured: Measured, held: Sequence[HeldFigure]) -> Iterator[PagePicture]:
        """The picture; none if there is nothing to see on it."""
        rows = rows_at(measured, self.each)
        looks: dict[str, Any] = {"title": filled_in(self.title, measured), "x_label": self.x_label}
        if self.kind == "curves":
            draw: Callable[..., None] = draw_curves
            shown: Sequence[Any] = list(self._curves(rows))
            looks |= {"y_label": self.y_label, "curves": shown, "log_x": self.log_x, "log_y": self.log_y}
            looks["label_points"] = self.label_points
            if self.limit is not None and shown:
                bound = self.limit * shown[0].points[0][1]
                looks["limit"] = Limit(bound, f"held to ≤ {self.limit:g} × the first")
        elif self.kind == "bars":
            draw, shown = draw_bars, list(self._bars(rows, held))
            looks["bars"] = shown
        else:
            draw, shown = draw_grouped_bars, list(self._series(rows))
            looks |= {"series": shown, "rows": [cell(row, self.name) for row in rows]}
        if shown:
            yield PagePicture(filled_in(self.file, measured), self.shows, partial(draw, **looks))

    def _curves(self, rows: Sequence[Measured]) -> Iterator[Curve]:
        for by in dict.fromkeys(cell(row, self.by) if self.by else "" for row in rows):
            of = [row for row in rows if not self.by or cell(row, self.by) == by]
            for key, heading in map(_named, self.y):
                pairs = [(figure(row, self.x), figure(row, key)) for row in of]
                points = [(x, y) for x, y in pairs if x is not None and y is not None and (y > 0 or not self.log_y)]
                if points:
                    yield Curve(filled_in(heading, {}, by=by), points)

    def _bars(self, rows: Sequence[Measured], held: Sequence[HeldFigure]) -> Iterator[Bar]:
        bounds = {each.what: Limit(each.bound, f"held to ≤ {each.bound:g}") for each in held}
        for row in rows:
            if (value := figure(row, self.y[0])) is not None:
                name = cell(row, self.name)
                yield Bar(
                    name, value, bounds.get(filled_in(self.held, {}, name=name)), ours=row.get("ours") is not False
                )

    def _series(self, rows: Sequence[Measured]) -> Iterator[Series]:
        for key, heading in map(_named, self.y):
            values = [figure(row, key) for row in rows]
            if any(values):
                yield Series(heading, values)


def _named(written: str) -> tuple[str, str]:
    """Key and heading.

    >>> _named("f1: F1"), _named("recall"), _named("probes: ")
    (('f1', 'F1'), ('recall', 'recall'), ('probes', ''))
    """
    key, colon, heading = written.partition(": ")
    return key, heading if colon else key


def _with_unit(key: str, heading: str) -> tuple[str, str, str]:
    """Key, unit and heading of a column."""
    return (key, "", heading) if key.endswith(_MIB) else (*key.partition(" ")[::2], heading)
