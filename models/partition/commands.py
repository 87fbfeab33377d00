"""The fold of one partition of `commands.v1`: its users, its spaces of memories and its projects, in log order.

`streams` calls it with the records of a micro-batch, replay with all records of a log; how the records are cut into
calls, and where a partition is recovered in between, changes nothing about what comes out.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pkgutil import resolve_name
from typing import Any, Final

import msgspec

from models.app.energy import Energy, SharedEnergy
from models.app.state import SpaceState
from models.entities import APP, ERASURES, REGISTRY
from models.errors import RecoveryFailed
from models.events import ProjectTurnAdded, UserTurnAdded
from models.events.registry import EntityKind
from models.partition.log_fold import PARTITION_ENTITY, LogFold, Parts, folded_offset
from models.policy import Policy
from models.state.entity import EVENT_HEAD_BYTES, CountParts, DueEntity, EntityState, Folding
from models.wire.arrival import Command


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


FOLDS: Final[dict[str, Folding]] = {kind.name: resolve_name(kind.folding) for kind in REGISTRY.kinds if kind.folding}
"""Kind of entity → how it is folded."""


_ENERGY: Final = "energy"
"""Part of the partition itself: the level of the budget of all its spaces."""


class MemoryPartitionFold(LogFold[Command]):
    """Folds commands of one partition, each into the entity that its key names.

    Args:
        entities: Live view of the partition's state: entity → part → bytes.
        policy: The rules.
        seconds: A clock to measure with how long spaces take; what is folded does not depend on it.

    Attributes:
        progress: Kind of entity → what its entities amount to, and in which of them something is due.
        shared: The budget of energy of all spaces together.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy, *, seconds: Callable[[], float] = float) -> None:
        super().__init__(entities, policy)
        self._offset = folded_offset(entities)
        self._seconds = seconds
        self.progress = {kind: EntityProgress(kind, each.state, entities, policy) for kind, each in FOLDS.items()}
        self._space_seconds = 0.0
        self._spent: dict[str, float] = {}
        level = entities.get(PARTITION_ENTITY, {}).get(_ENERGY)
        known = None if level is None else msgspec.msgpack.decode(level, type=Energy)
        self.shared = SharedEnergy(policy.apps.energy, known)

    @property
    def offset(self) -> int:
        """Offset of the last command folded in, −1 at first: what lies at or below it changes nothing."""
        return self._offset

    def take_spent(self) -> tuple[float, dict[str, float]]:
        """Seconds that spaces took since this was last asked, and units of energy by kind of work."""
        taken = self._space_seconds, self._spent
        self._space_seconds, self._spent = 0.0, {}
        return taken

    def _is_erasure(self, arrival: Command) -> bool:
        return isinstance(arrival.event, ERASURES)

    def _fold_one(self, arrival: Command) -> bool:
        event = arrival.event
        done = all(self._fold_into(kind, arrival) for kind in REGISTRY.kinds_of[type(event)])
        self._turns += isinstance(event, UserTurnAdded | ProjectTurnAdded)
        self._erased += self._is_erasure(arrival)
        self._touched = True
        if done:
            self._offset = arrival.position.offset
        return done

    def _fold_into(self, kind: EntityKind, arrival: Command) -> bool:
        """Fold a command into the entity of a kind that it changes; whether that was all."""
        state = self._state(kind.name, kind.key(arrival.event))
        begun, before = self._seconds(), state.written_bytes
        outputs, done = FOLDS[kind.name].take(state, arrival, self._policy)
        self._outputs += outputs
        self._state_bytes += EVENT_HEAD_BYTES + state.written_bytes - before
        if kind is APP:
            self._space_seconds += self._seconds() - begun
        return done

    def _state(self, kind: str, key: str) -> EntityState[Any]:
        states = self._states[kind]
        state = states.get(key)
        if state is None:
            state = states[key] = FOLDS[kind].state(key, self._entities.get, self._policy)
            self._state_bytes += state.touched_bytes
            if isinstance(state, SpaceState):
                state.shared = self.shared
        return state

    def _begin(self) -> None:
        super()._begin()
        self._states: dict[str, dict[str, EntityState[Any]]] = {kind: {} for kind in FOLDS}

    def _changed_bytes(self) -> int:
        return self._state_bytes

    def _take_changes(self) -> dict[str, dict[str, bytes | None]]:
        changed: dict[str, dict[str, bytes | None]] = {}
        for kind, states in self._states.items():
            for key, state in states.items():
                changed.update(state.changed())
                self.progress[kind].note(key, state)
                for work, units in state.spent.items():
                    self._spent[work] = self._spent.get(work, 0.0) + units
        changed[PARTITION_ENTITY] = {"clock": msgspec.msgpack.encode([self._offset])}
        if self.shared.energy is not None:
            changed[PARTITION_ENTITY][_ENERGY] = msgspec.msgpack.encode(self.shared.energy)
        return changed
