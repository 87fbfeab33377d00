"""Loss check of a saved project: what would be gone if what was taken in of it were saved in its place. Pure.

| of an item | is lost |
|---|---|
| it is not there | all of it: the policy has no room, or another says the same |
| a text or a list is shorter | what the policy cuts off |
| a time, a number, a state differs | nothing: it follows from the rest |
| what leads to a memory that the files do not have | nothing |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from models.events.project_items import ProjectMemory
from models.project.saved import SavedProject

_KINDS = ("memories", "episodes", "conversations", "chunks", "pending")


def losses(given: SavedProject, kept: SavedProject) -> list[str]:
    """How many items of each kind are there in part or not at all; messages at hand are one kind.

    Args:
        given: As it was read.
        kept: As it would be written.
    """
    known = {memory.id for memory in given.memories}
    found: dict[str, int] = {}
    for name in _KINDS:
        there = {each.id: each for each in getattr(kept, name)}
        found[name] = sum(_shorter(_closed(each, known), there.get(each.id)) for each in getattr(given, name))
    found["messages"] = sum(
        _shorter(said, next((each for each in kept.messages.get(name, []) if each.turn == said.turn), None))
        for name, messages in given.messages.items()
        for said in messages
    )
    return [f"{count} {name}" for name, count in found.items() if count]


def _closed(item: Struct, known: set[str]) -> Struct:
    """The item without what leads nowhere."""
    if not isinstance(item, ProjectMemory):
        return item
    return msgspec.structs.replace(
        item,
        relationships=[each for each in item.relationships if each.target_id in known],
        closed_by=item.closed_by if item.closed_by in known else "",
    )


def _shorter(given: Any, kept: Any) -> bool:
    if isinstance(given, Struct):
        return kept is None or _shorter(msgspec.structs.asdict(given), msgspec.structs.asdict(kept))
    if isinstance(given, Mapping):
        return any(_shorter(value, kept[name]) for name, value in given.items())
    if isinstance(given, list):
        return len(kept) < len(given) or any(map(_shorter, given, kept))
    return isinstance(given, str) and len(kept or "") < len(given)
