"""One measurement: its figures, how they are shown and held to limits; printed, serialised, and a part of the page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from inspect import iscoroutine
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from jobs.lab.bench.derived import DERIVED
from jobs.lab.bench.layout import (
    HeldFigure,
    HeldLayout,
    Measured,
    PagePicture,
    PageTable,
    PictureLayout,
    TableLayout,
    at,
    cell,
    filled_in,
    number,
)
from jobs.lab.bench.machine import envelope, own_environment
from jobs.shared.output import OutputFormat, Printer

_OTHER_EMBEDDER = "-minilm"


class SectionLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """How a section is made of what a command printed.

    Attributes:
        title: Heading; braces name keys of the measurement, as in `said`.
        said: What was measured and how.
        commands: File without its ending → the usual command that makes it; none: it is not on the page.
        held: Figures with a limit.
        tables: In order.
        pictures: After the tables.
        csv: Output of its command as CSV: the held figures, the tables, or everything.
    """

    title: str
    said: str
    csv: Literal["held", "tables", "everything"] = "everything"
    commands: dict[str, str] = {}
    held: list[HeldLayout] = []
    tables: list[TableLayout] = []
    pictures: list[PictureLayout] = []


LAYOUTS = msgspec.toml.decode((Path(__file__).parent / "sections.toml").read_bytes(), type=dict[str, SectionLayout])
"""Section → its layout."""


class Result(Struct, frozen=True):
    """One measurement: rows in tables, figures that are held to a limit, and pictures.

    Attributes:
        title: Heading.
        said: Paragraphs.
        rows: Tables.
        held_to: Figures with a limit.
        pictures: Files beside the page.
        csv: As the layout has it.
    """

    title: str
    said: Sequence[str]
    rows: Sequence[PageTable]
    held_to: Sequence[HeldFigure]
    pictures: Sequence[PagePicture]
    csv: str = "everything"

    def as_markdown(self) -> str:
        """Its part of the page, with the heading."""
        blocks = [f"## {self.title}", *self.said]
        blocks += [table.as_markdown() for table in self.rows if table.rows]
        blocks += [f"![{picture.shows}]({picture.file})" for picture in self.pictures]
        return "\n\n".join(blocks)

    def draw(self, folder: Path) -> None:
        """Write its pictures into a folder."""
        for picture in self.pictures:
            picture.draw(folder / picture.file)

    def print(self, printed: Printer, figures: Measured) -> None:
        """Print it: tables for people, or the figures in their envelope; as CSV, what the layout chooses."""
        held, form = [each.printed() for each in self.held_to], printed.form
        if form is OutputFormat.CSV and self.csv == "held":
            printed.rows("held", held)
        elif form is OutputFormat.TABLE or (form is OutputFormat.CSV and self.csv == "tables"):
            for said in self.said:
                printed.message(said)
            for table in (*self.rows, held_table(self.held_to)):
                if table.rows:
                    printed.table(table.columns[0], table.columns, table.rows)
            printed.message(f"load average before: {figures['load_average_at_start']:.2f}, {figures['cpus']} CPUs")
        else:
            printed.record(envelope({**figures, "held": held}))


def result_of(name: str, measured: Measured, before: Measured | None = None) -> Result:
    """The result that a command printed.

    Args:
        name: A section of `sections.toml`, or a file of its `commands`.
        measured: The command's output.
        before: An earlier `stream`.
    """
    kind = name.removesuffix(_OTHER_EMBEDDER)
    layout, whole = LAYOUTS[kind], {**measured, "before": before}
    if kind in DERIVED:
        whole |= DERIVED[kind](whole)
    held = [figure for each in layout.held for figure in each.figures(whole)]
    return Result(
        title=filled_in(layout.title, whole),
        said=[f"{filled_in(layout.said, whole)} {cell(whole, 'also')}".rstrip(), *(at(whole, "notes") or ())],
        rows=[table.table(whole) for table in layout.tables],
        held_to=held,
        pictures=[picture for each in layout.pictures for picture in each.pictures(whole, held)],
        csv=layout.csv,
    )


def held_table(figures: Sequence[HeldFigure]) -> PageTable:
    """Figures, their limits, and whether they are reached."""
    rows = []
    for held in figures:
        sign = "≥ " if held.at_least else "≤ " if held.bound else ""
        verdict = "reached" if held.reached else "**not reached**"
        rows.append((held.what, sign + number(held.bound, held.unit), number(held.value, held.unit), verdict))
    return PageTable(("figure", "held to", "measured", ""), rows)


def publish(
    name: str, output: OutputFormat, measure: Callable[..., Any], *, on_kafka: bool = False, **size: object
) -> Result:
    """Measure and print.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Gives the figures, at once or as a coroutine. Called with the environment, if there is one, `say` and
            the size by name.
        on_kafka: Whether to measure on a Kafka of its own in a temporary folder.
        size: How much is measured.
    """
    printed, load_average = Printer(output), os.getloadavg()[0]
    with own_environment() if on_kafka else nullcontext() as environment:
        found = measure(*([environment] if environment else []), say=printed.message, **size)
        figures = msgspec.to_builtins(asyncio.run(found) if iscoroutine(found) else found)
    figures |= {"load_average_at_start": load_average, "cpus": os.cpu_count() or 1}
    result = result_of(name, figures)
    result.print(printed, figures)
    return result
