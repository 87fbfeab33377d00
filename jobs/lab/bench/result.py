"""One measurement: its figures, how they are shown and held to limits; printed, serialised, and a part of the page.

Everything on the page comes from the JSON files of one folder; nothing is written by hand, so that the page can be made
anew at any time. A file that is not there leaves its section out, and so does a key its row.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from inspect import iscoroutine
from itertools import chain
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
    cell,
    entries_at,
    figure,
    filled_in,
    number,
)
from jobs.lab.bench.measuring import own_environment
from jobs.lab.envelope import code_digest, envelope
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError

PAGE = "README.md"


class SectionLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """How a section is made of what a command printed.

    Attributes:
        title: Heading: a template (`filled_in`), as `said` is.
        said: What was measured and how, in paragraphs.
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
_SECTIONS = {file: section for section, layout in LAYOUTS.items() for file in layout.commands}
COMMANDS = {file: command for layout in LAYOUTS.values() for file, command in layout.commands.items()}
"""File without its ending → the command whose output it holds, unless the file itself names the command."""


class Result(Struct, frozen=True):
    """One measurement: paragraphs, tables, figures that are held to a limit, and pictures beside the page."""

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


def result_of(name: str, measured: Measured) -> Result:
    """The result that a command printed, by its section or file."""
    kind = _SECTIONS.get(name, name)
    layout, whole = LAYOUTS[kind], dict(measured)
    if kind in DERIVED:
        whole |= DERIVED[kind](whole)
    held = [found for each in layout.held for found in each.figures(whole)]
    return Result(
        title=filled_in(layout.title, whole),
        said=[said for said in filled_in(layout.said, whole).split("\n\n") if said.strip()],
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
        measure: Gives the figures, at once or as a coroutine. Called with the environment, if any, and the size.
        on_kafka: Whether to measure on a Kafka of its own in a temporary folder.
        size: How much is measured.
    """
    printed, load_average = Printer(output), os.getloadavg()[0]
    with own_environment() if on_kafka else nullcontext() as environment:
        found = measure(*([environment] if environment else []), **size)
        figures = msgspec.to_builtins(asyncio.run(found) if iscoroutine(found) else found)
    figures |= {"load_average_at_start": load_average, "cpus": os.cpu_count() or 1}
    result = result_of(name, figures)
    result.print(printed, figures)
    return result


def write_page(folder: Path) -> tuple[list[HeldFigure], list[str]]:
    """Write page and pictures into the folder that holds the JSON files.

    Returns:
        Every figure that is held to a limit, and the files that were measured on other code than this.

    Raises:
        ConfigurationError: None of the files that `COMMANDS` names is there, or one is not JSON.
    """
    found = {name: _load(path) for name in COMMANDS if (path := folder / f"{name}.json").is_file()}
    if not found:
        wanted = ", ".join(f"{name}.json" for name in COMMANDS)
        raise ConfigurationError(
            f"{folder} holds none of {wanted}: make one, for instance `turntide lab bench scale --output json > "
            f"{folder / 'scale.json'}`"
        )
    results = {name: result_of(name, each) for name, each in found.items()}
    figures = [figure for result in results.values() for figure in result.held_to]
    for picture in chain.from_iterable(result.pictures for result in results.values()):
        picture.draw(folder / picture.file)
    values = {"held": held_table(figures), "results": results, "found": found, "machines": _machines(found)}
    template = Path(__file__).with_name("page.md.j2").read_text(encoding="utf-8")
    (folder / PAGE).write_text(filled_in(template, {**values, "commands": COMMANDS}) + "\n", encoding="utf-8")
    now = code_digest()
    return figures, [name for name, each in found.items() if each.get("code") != now]


def _load(path: Path) -> Measured:
    try:
        return entries_at(json.loads(path.read_text(encoding="utf-8")), "")
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} is not readable JSON ({error}): make it anew or take it away") from error


def _machines(found: Mapping[str, Measured]) -> PageTable:
    """The machines, a column each; measurements on equal ones share a column."""
    machines: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, measured in found.items():
        memory_bytes = figure(measured, "machine.memory_bytes")
        described = {
            "CPUs": cell(measured, "machine.cpus"),
            "CPU": cell(measured, "machine.cpu"),
            "memory": number(memory_bytes / 2**30, "GiB") if memory_bytes else "",
            "system": cell(measured, "machine.system"),
            "Python": cell(measured, "machine.python"),
            **entries_at(measured, "machine.versions"),
        }
        if facts := [(fact, value) for fact, value in described.items() if value]:
            machines.setdefault(tuple(facts), []).append(name)
    columns = dict.fromkeys(fact for machine in machines for fact, _ in machine)
    rows = [(fact, *(dict(machine).get(fact, "") for machine in machines)) for fact in columns]
    return PageTable(("", *map(", ".join, machines.values())), rows)
