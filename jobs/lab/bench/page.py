"""The page of measurements: what the measuring commands printed as JSON, as tables, verdicts and pictures.

Everything on the page comes from the files; nothing is written by hand, so that the page can be made anew at any time.
A file that is not there leaves its section out, and so does a key its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from jobs.lab.bench import sections_of_memories, sections_of_roles
from jobs.lab.bench.page_parts import (
    HeldFigure,
    PageSection,
    PageTable,
    PrintedResult,
    SectionLayout,
    as_markdown,
    held_table,
    number,
    table_as_markdown,
)
from models.errors import ConfigurationError

PAGE = "README.md"
COMMANDS = {
    "stream": "turntide bench stream --output json",
    "recovery": "turntide bench recovery --output json",
    "scale": "turntide bench scale --output json",
    "roles": "turntide bench roles --output json",
    "memory": "turntide bench memory --output json",
    "kills": "turntide bench kills --output json",
    "chaos": "turntide chaos --runs 20 --output json",
    "topics": "turntide bench topics --output json",
    "eval-topics": "turntide eval topics --output json",
    "eval-topics-minilm": "turntide eval topics --embedder minilm --output json",
    "retrieve": "turntide bench retrieve --end-to-end --output json",
    "archive": "turntide bench archive --output json",
    "memories": "turntide bench memories --output json",
    "project": "turntide bench project --output json",
    "eval-retrieval": "turntide eval retrieval --data locomo10.json --output json",
    "eval-retrieval-minilm": "turntide eval retrieval --data locomo10.json --embedder minilm --output json",
    "eval-tiers": "turntide eval tiers --data locomo10.json --output json",
    "eval-tiers-minilm": "turntide eval tiers --data locomo10.json --embedder minilm --output json",
    "eval-facts": "turntide eval facts --output json",
    "eval-extraction": "turntide eval extraction --output json",
    "escalation": "turntide backtest --data public.jsonl --scorer rules --scorer left-out --no-sessions --output json",
}
"""File without its ending → the command whose output it holds, unless the file itself names the command."""
BEFORE = "stream-before"
"""An earlier `stream`, for what a turn cost before."""
_LAYOUTS = msgspec.toml.decode((Path(__file__).parent / "sections.toml").read_bytes(), type=dict[str, SectionLayout])
_HELD = {**sections_of_roles.HELD, **sections_of_memories.HELD}
_PICTURES = {**sections_of_roles.PICTURES, **sections_of_memories.PICTURES}
_OTHER_EMBEDDER = "-minilm"
_NAMED = ("embedder", "turns", "turn_bytes", "memories", "users")
"""What a section's title and words can name."""
_HEAD = """# Measurements

Written by `turntide bench page` from the JSON files in this folder, each the output of the command named with it.
Ratios are taken within one run on one machine; another machine gives other figures."""


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
            f"{folder} holds none of {wanted}: make one, for instance `turntide bench scale --output json > "
            f"{folder / 'scale.json'}`"
        )
    sections = {name: section_of(name, found[name], found.get(BEFORE)) for name in COMMANDS if name in found}
    figures = [figure for section in sections.values() for figure in section.held]
    blocks = [_HEAD]
    if figures:
        blocks += ["## What is held to", table_as_markdown(held_table(figures))]
    blocks += [f"{as_markdown(section)}\n\n{_made_by(name, found[name])}" for name, section in sections.items()]
    blocks += _machines({name: found[name] for name in sections})
    for section in sections.values():
        for picture in section.pictures:
            picture.draw(folder / picture.file)
    (folder / PAGE).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return figures


def _load(path: Path) -> PrintedResult:
    try:
        return PrintedResult(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} is not readable JSON ({error}): make it anew or take it away") from error


def section_of(name: str, measured: PrintedResult, before: PrintedResult | None = None) -> PageSection:
    """The section of a measurement.

    Args:
        name: One of `COMMANDS`.
        measured: What that command printed.
        before: An earlier `stream`.
    """
    match name:
        case "stream":
            return sections_of_roles.stream_section(measured, before)
        case "escalation":
            return sections_of_memories.escalation_section(measured)
    kind = name.removesuffix(_OTHER_EMBEDDER)
    layout = _LAYOUTS[kind]
    named = {key: measured.text(key) or number(measured.number(key)) for key in _NAMED}
    same, others = sections_of_roles.also_said(kind, measured)
    return PageSection(
        title=layout.title.format(**named),
        said=[f"{layout.said.format(**named)} {same}".rstrip(), *others, *measured.texts("notes")],
        held=[*layout.figures(measured), *(_HELD[kind](measured) if kind in _HELD else [])],
        tables=[table.table(measured, sections_of_roles.FOUND_BY) for table in layout.tables],
        pictures=_PICTURES[kind](measured) if kind in _PICTURES else [],
    )


def _made_by(name: str, measured: PrintedResult) -> str:
    command = measured.text("command") or COMMANDS[name]
    at = measured.text("measured_at").replace("T", " ").removesuffix("Z")
    when = f", {at} UTC" if at else ""
    load = measured.number("load_average_at_start")
    busy = f", load average {number(load)} before" if load is not None else ""
    return f"Made by `{command}`{when}{busy}."


def _machines(found: Mapping[str, PrintedResult]) -> list[str]:
    """One table of what differs between the measurements' machines is enough: a column each, equal ones together."""
    machines: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, measured in found.items():
        if described := _machine(measured):
            machines.setdefault(tuple(described.items()), []).append(name)
    if not machines:
        return []
    facts = dict.fromkeys(fact for machine in machines for fact, _ in machine)
    rows = [(fact, *(dict(machine).get(fact, "") for machine in machines)) for fact in facts]
    columns = ("", *(", ".join(names) for names in machines.values()))
    return ["## Machine", table_as_markdown(PageTable(columns, rows))]


def _machine(measured: PrintedResult) -> dict[str, str]:
    memory_bytes = measured.number("machine", "memory_bytes")
    facts = {
        "CPUs": number(measured.number("machine", "cpus")),
        "CPU": measured.text("machine", "cpu"),
        "memory": number(memory_bytes / 2**30, "GiB") if memory_bytes else "",
        "system": measured.text("machine", "system"),
        "Python": measured.text("machine", "python"),
        **measured.words("machine", "versions"),
    }
    return {fact: value for fact, value in facts.items() if value}
