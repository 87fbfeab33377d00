"""Page of measurements, made of the results that stand as JSON in one folder.

Everything on the page comes from the files; nothing is written by hand, so that the page can be made anew at any time.
A file that is not there leaves its section out, and so does a key its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from jobs.lab.bench.layout import HeldFigure, Measured, PageTable, cell, entries_at, figure, number
from jobs.lab.bench.result import LAYOUTS, held_table, result_of
from models.errors import ConfigurationError

PAGE = "README.md"
BEFORE = "stream-before"
"""An earlier `stream`, for the column of costs before."""
COMMANDS = {file: command for layout in LAYOUTS.values() for file, command in layout.commands.items()}
"""File without its ending → the command whose output it holds, unless the file itself names the command."""
_HEAD = """# Measurements

Written by `turntide lab bench page` from the JSON files in this folder, each the output of the command named with it.
Ratios are taken within one run on one machine; another machine gives other figures."""


def write_page(folder: Path) -> list[HeldFigure]:
    """Write page and pictures into the folder that holds the JSON files.

    Args:
        folder: With at least one of the files that `COMMANDS` names; `stream-before.json` beside the first.

    Returns:
        Every figure that is held to a limit.

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
    results = {name: result_of(name, found[name], found.get(BEFORE)) for name in COMMANDS if name in found}
    figures = [figure for result in results.values() for figure in result.held_to]
    blocks = [_HEAD]
    if figures:
        blocks += ["## What is held to", held_table(figures).as_markdown()]
    for name, result in results.items():
        result.draw(folder)
        blocks.append(f"{result.as_markdown()}\n\n{_made_by(name, found[name])}")
    blocks += _machines({name: found[name] for name in results})
    (folder / PAGE).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return figures


def _load(path: Path) -> Measured:
    try:
        return entries_at(json.loads(path.read_text(encoding="utf-8")), "")
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} is not readable JSON ({error}): make it anew or take it away") from error


def _made_by(name: str, measured: Measured) -> str:
    command = cell(measured, "command") or COMMANDS[name]
    at_time = cell(measured, "measured_at").replace("T", " ").removesuffix("Z")
    when = f", {at_time} UTC" if at_time else ""
    load = cell(measured, "load_average_at_start")
    return f"Made by `{command}`{when}" + (f", load average {load} before." if load else ".")


def _machines(found: Mapping[str, Measured]) -> list[str]:
    """One table of the machines, a column each; measurements on equal ones share a column."""
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
