"""Measurements as tables, verdicts and pictures: printed by the command that makes them, and on the page.

Everything on the page comes from the files; nothing is written by hand, so that the page can be made anew at any time.
A file that is not there leaves its section out, and so does a key its row. `sections.toml` has the layout.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from jobs.lab.bench.machine import envelope, own_environment
from jobs.lab.bench.measuring import Figures, Say
from jobs.lab.bench.page_layout import (
    HeldFigure,
    HeldLayout,
    Measured,
    PagePicture,
    PageTable,
    PictureLayout,
    TableLayout,
    at,
    cell,
    entries_at,
    figure,
    filled_in,
    number,
)
from jobs.lab.bench.page_rows import ROWS
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError

PAGE = "README.md"
BEFORE = "stream-before"
"""An earlier `stream`, for what a turn cost before."""
_OTHER_EMBEDDER = "-minilm"
_HEAD = """# Measurements

Written by `turntide lab bench page` from the JSON files in this folder, each the output of the command named with it.
Ratios are taken within one run on one machine; another machine gives other figures."""


class SectionLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """How a section is made of what a command printed.

    Attributes:
        title: Heading; braces name keys of the measurement, as in `said`.
        said: What was measured and how.
        commands: File without its ending → the usual command that makes it; none: it is not on the page.
        held: Figures with a bound.
        tables: In order.
        pictures: After the tables.
        csv: What its command prints as CSV: the figures with a bound, the tables, or everything.
    """

    title: str
    said: str
    csv: Literal["held", "tables", "everything"] = "everything"
    commands: dict[str, str] = {}
    held: list[HeldLayout] = []
    tables: list[TableLayout] = []
    pictures: list[PictureLayout] = []


class PageSection(Struct, frozen=True):
    """One measurement: heading, paragraphs, figures with a bound, tables and pictures."""

    title: str
    said: Sequence[str]
    held: Sequence[HeldFigure]
    tables: Sequence[PageTable]
    pictures: Sequence[PagePicture]
    csv: str = "everything"

    def as_markdown(self) -> str:
        """The section with its heading."""
        blocks = [f"## {self.title}", *self.said]
        blocks += [table.as_markdown() for table in self.tables if table.rows]
        blocks += [f"![{picture.shows}]({picture.file})" for picture in self.pictures]
        return "\n\n".join(blocks)


_LAYOUTS = msgspec.toml.decode((Path(__file__).parent / "sections.toml").read_bytes(), type=dict[str, SectionLayout])
COMMANDS = {file: command for layout in _LAYOUTS.values() for file, command in layout.commands.items()}
"""File without its ending → the command whose output it holds, unless the file itself names the command."""


def write_page(folder: Path) -> list[HeldFigure]:
    """Write page and pictures into the folder that holds the JSON files.

    Args:
        folder: With at least one of the files that `COMMANDS` names; `stream-before.json` beside the first.

    Returns:
        Every figure that is held to something.

    Raises:
        ConfigurationError: None of the files is there, or one is not JSON.
    """
    found = {name: _load(path) for name in (*COMMANDS, BEFORE) if (path := folder / f"{name}.json").is_file()}
    if not found.keys() & COMMANDS.keys():
        wanted = ", ".join(f"{name}.json" for name in COMMANDS)
        raise ConfigurationError(
            f"{folder} holds none of {wanted}: make one, for instance `turntide lab bench scale --output json > "
            f"{folder / 'scale.json'}`"
        )
    sections = {name: section_of(name, found[name], found.get(BEFORE)) for name in COMMANDS if name in found}
    figures = [figure for section in sections.values() for figure in section.held]
    blocks = [_HEAD]
    if figures:
        blocks += ["## What is held to", held_table(figures).as_markdown()]
    blocks += [f"{section.as_markdown()}\n\n{_made_by(name, found[name])}" for name, section in sections.items()]
    blocks += _machines({name: found[name] for name in sections})
    for section in sections.values():
        for picture in section.pictures:
            picture.draw(folder / picture.file)
    (folder / PAGE).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return figures


def _load(path: Path) -> Measured:
    try:
        return entries_at(json.loads(path.read_text(encoding="utf-8")), "")
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} is not readable JSON ({error}): make it anew or take it away") from error


def section_of(name: str, measured: Measured, before: Measured | None = None) -> PageSection:
    """The section of a measurement.

    Args:
        name: A section of `sections.toml`, or one of `COMMANDS`.
        measured: What that command printed.
        before: An earlier `stream`.
    """
    kind = name.removesuffix(_OTHER_EMBEDDER)
    layout, whole = _LAYOUTS[kind], {**measured, "before": before}
    if kind in ROWS:
        whole |= ROWS[kind](whole)
    held = [figure for each in layout.held for figure in each.figures(whole)]
    return PageSection(
        title=filled_in(layout.title, whole),
        said=[f"{filled_in(layout.said, whole)} {cell(whole, 'also')}".rstrip(), *(at(whole, "notes") or ())],
        held=held,
        tables=[table.table(whole) for table in layout.tables],
        pictures=[picture for each in layout.pictures for picture in each.pictures(whole, held)],
        csv=layout.csv,
    )


def held_table(figures: Sequence[HeldFigure]) -> PageTable:
    """What is held to what, and whether it is reached."""
    rows = []
    for held in figures:
        sign = "≥ " if held.at_least else "≤ " if held.bound else ""
        verdict = "reached" if held.reached else "**not reached**"
        rows.append((held.what, sign + number(held.bound, held.unit), number(held.value, held.unit), verdict))
    return PageTable(("figure", "held to", "measured", ""), rows)


def _made_by(name: str, measured: Measured) -> str:
    command = cell(measured, "command") or COMMANDS[name]
    at_time = cell(measured, "measured_at").replace("T", " ").removesuffix("Z")
    when = f", {at_time} UTC" if at_time else ""
    load = cell(measured, "load_average_at_start")
    return f"Made by `{command}`{when}" + (f", load average {load} before." if load else ".")


def _machines(found: Mapping[str, Measured]) -> list[str]:
    """One table of what differs between the measurements' machines is enough: a column each, equal ones together."""
    machines: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, measured in found.items():
        if described := _machine(measured):
            machines.setdefault(tuple(described.items()), []).append(name)
    if not machines:
        return []
    facts = dict.fromkeys(fact for machine in machines for fact, _ in machine)
    rows = [(fact, *(dict(machine).get(fact, "") for machine in machines)) for fact in facts]
    return ["## Machine", PageTable(("", *map(", ".join, machines.values())), rows).as_markdown()]


def _machine(measured: Measured) -> dict[str, str]:
    memory_bytes = figure(measured, "machine.memory_bytes")
    facts = {
        "CPUs": cell(measured, "machine.cpus"),
        "CPU": cell(measured, "machine.cpu"),
        "memory": number(memory_bytes / 2**30, "GiB") if memory_bytes else "",
        "system": cell(measured, "machine.system"),
        "Python": cell(measured, "machine.python"),
        **entries_at(measured, "machine.versions"),
    }
    return {fact: value for fact, value in facts.items() if value}


def publish(name: str, output: OutputFormat, measure: Callable[[Say], Figures]) -> PageSection:
    """Measure and print: the section that the page has of it, or everything in its envelope.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Gives the figures; is told how to say what is going on.

    Returns:
        The section.
    """
    printed, load_average = Printer(output), os.getloadavg()[0]
    figures = msgspec.to_builtins(measure(printed.message))
    figures |= {"load_average_at_start": load_average, "cpus": os.cpu_count() or 1}
    section = section_of(name, figures)
    held = [figure.printed() for figure in section.held]
    if output is OutputFormat.CSV and section.csv == "held":
        printed.rows("held", held)
    elif output is OutputFormat.TABLE or (output is OutputFormat.CSV and section.csv == "tables"):
        for said in section.said:
            printed.message(said)
        for table in (*section.tables, held_table(section.held)):
            if table.rows:
                printed.table(table.columns[0], table.columns, table.rows)
        printed.message(f"load average before: {load_average:.2f}, {figures['cpus']} CPUs")
    else:
        printed.record(envelope({**figures, "held": held}))
    return section


def publish_on_kafka(
    name: str, output: OutputFormat, measure: Callable[..., Coroutine[Any, Any, Figures]], *sizes: object
) -> PageSection:
    """Measure on a Kafka of its own in a temporary folder, and print.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Called with the environment, the sizes, and `say`.
        sizes: How much is measured.
    """

    def measured(say: Say) -> Figures:
        with own_environment() as environment:
            return asyncio.run(measure(environment, *sizes, say=say))

    return publish(name, output, measured)
