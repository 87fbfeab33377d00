"""Which spaces of memories a partition has: how many hold anything, and when what waits in them is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from models.app.state import SpaceState
from models.partition.sessions import Parts
from models.policy import Policy

_PREFIX = "app:"
"""Of the keys of spaces (`models.events.app.space_key`)."""


class DueSpace(NamedTuple):
    """A space in which something is due. They sort by time."""

    at: datetime
    app_id: str
    user_id: str
    """Empty for an app's own space."""
    awaits_answer: bool = False
    """Whether it is an answer that is overdue, rather than energy that is back."""


class _Standing(Struct, frozen=True, gc=False):
    has_memories: bool
    waiting: int


_EMPTY = _Standing(has_memories=False, waiting=0)


class SpaceStandings:
    """Follows the spaces of a partition from write to write.

    Args:
        entities: The partition's state.
        policy: When what waits is due.

    Attributes:
        spaces: There are so many …
        with_memories: … so many of them hold a memory …
        waiting: … and so many conversations wait in them.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        self.spaces = self.with_memories = self.waiting = 0
        self._known: dict[str, _Standing] = {}
        self._due: dict[str, DueSpace] = {}
        for key, parts in entities.items():
            if key.startswith(_PREFIX) and parts:
                self._count(key, _of_parts(parts))
                if self._known[key].waiting:
                    self._watch(key, SpaceState.load(parts, policy))

    def note(self, key: str, space: SpaceState) -> None:
        """A space was written."""
        standing = _Standing(bool(space.memories), space.waiting)
        self._count(key, standing if space.known else None)
        self._watch(key, space)

    def due(self, now: datetime) -> list[DueSpace]:
        """Where something is due by now, the longest due first."""
        return sorted(space for space in self._due.values() if space.at <= now)

    def _count(self, key: str, standing: _Standing | None) -> None:
        known = self._known.pop(key, None)
        before, after = known or _EMPTY, standing or _EMPTY
        self.spaces += (standing is not None) - (known is not None)
        self.with_memories += after.has_memories - before.has_memories
        self.waiting += after.waiting - before.waiting
        if standing is not None:
            self._known[key] = standing

    def _watch(self, key: str, space: SpaceState) -> None:
        self._due.pop(key, None)
        if space.due is not None:
            head = space.head
            self._due[key] = DueSpace(space.due, head.app_id, head.user_id, head.asked is not None)


def _of_parts(parts: Parts) -> _Standing:
    """Of a space that is not loaded."""
    return _Standing(any(name[0] == "m" for name in parts), sum(name[0] in "wc" for name in parts))
