"""Progress index of a partition: what its entities of one kind amount to, and in which of them something is due."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from models.errors import RecoveryFailed
from models.policy import Policy
from models.state.entity import CountParts, DueEntity, EntityState

Parts = Mapping[str, bytes]


class EntityProgress:
    """Follows the entities of one kind of a partition from write to write.

    Args:
        kind: Name of the kind: keys of its entities begin with it.
        state: What says how a head is read, and what it amounts to.
        entities: The partition's state.
        policy: When something is due.

    Attributes:
        totals: Gauge → sum over all entities.
    """

    def __init__(self, kind: str, state: type[EntityState[Any]], entities: Mapping[str, Parts], policy: Policy) -> None:
        self.totals = dict.fromkeys(state.gauges, 0)
        self._state = state
        self._policy = policy
        self._known: dict[str, tuple[int, ...]] = {}
        self._due: dict[str, DueEntity] = {}
        for key, parts in entities.items():
            # What lies below an entity has a longer key.
            if parts and key.startswith(f"{kind}:") and key.count("/") <= 1:
                with suppress(RecoveryFailed):  # one entity's damaged state is its own matter, when it is folded
                    self._note(key, state.read_head(parts), _count_in(parts))

    def note(self, key: str, state: EntityState[Any]) -> None:
        """An entity was written."""
        self._note(key, state.head, state.parts.count)

    def due(self, now: datetime) -> list[DueEntity]:
        """Where something is due by now, the longest due first."""
        return sorted(due for due in self._due.values() if due.at <= now)

    def _note(self, key: str, head: Any, count: CountParts) -> None:
        known = bool(head.app_id)
        before, after = self._known.pop(key, ()), self._state.figures(head, count) if known else ()
        for sign, figures in ((-1, before), (1, after)):
            for gauge, figure in zip(self.totals, figures, strict=False):
                self.totals[gauge] += sign * figure
        if any(after):
            self._known[key] = after
        self._due.pop(key, None)
        due = self._state.next_due(head, count, self._policy) if known else None
        if due is not None:
            self._due[key] = due


def _count_in(parts: Parts) -> CountParts:
    return lambda prefix: sum(name.startswith(prefix) for name in parts)
