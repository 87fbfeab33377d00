"""Drivers of entities: their state, the parts that a store would have, their log's places and clock, what came out."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from models.events import Position
from models.events.registry import EntityKind
from models.partition.commands import FOLDS
from models.policy import Policy
from models.state.entity import DueEntity
from models.wire.arrival import Command

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
Entities = dict[str, dict[str, bytes]]


def keep_parts(stored: dict[str, bytes], changed: Mapping[str, bytes | None]) -> None:
    """Keep what a fold changed of an entity; a part without a value goes."""
    for part, value in changed.items():
        stored.pop(part, None)
        if value is not None:
            stored[part] = value


def keep_entities(entities: Entities, changed: Mapping[str, Mapping[str, bytes | None]]) -> None:
    """The same for each entity of a result; one without a part goes."""
    for entity, parts in changed.items():
        keep_parts(entities.setdefault(entity, {}), parts)
        if not entities[entity]:
            del entities[entity]


class EntityDriver:
    """One entity with its state, what is stored of it, and everything that its fold put out."""

    state: Any
    stored: dict[str, bytes]

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.stored = {}
        self.outputs: list[Any] = []
        self.offset = 0
        self.now = NOON

    def load(self) -> Any:
        """The state as it is stored."""
        raise NotImplementedError

    def store(self) -> None:
        """Write changed parts, forget the working copy and read it back."""
        keep_parts(self.stored, self.state.changed_parts())
        self.state = self.load()

    def of(self, kind: type[Any]) -> list[Any]:
        """Outputs of a kind."""
        return [output for output in self.outputs if isinstance(output, kind)]


class MemoryDriver(EntityDriver):
    """A user, space or project: each command has the next offset of one log."""

    def __init__(self, kind: EntityKind, standing_of: type[Any], policy: Policy, key: str, **ids: str) -> None:
        super().__init__(policy)
        self.key = key
        self.ids = ids
        self._folding = FOLDS[kind.name]
        self._standing_of = standing_of
        self.state = self.load()

    def put(self, event: Any) -> list[Any]:
        """Fold one event; gives its outputs."""
        command = Command(event, Position("commands", 5, self.offset), self.now)
        outputs, done = list[Any](), False
        while not done:
            step, done = self._folding.take(self.state, command, self.policy)
            outputs += step
        self.offset += 1
        self.outputs += outputs
        return outputs

    def wait(self, **time: float) -> list[Any]:
        """Time passes, then the worker says that work may be due."""
        self.now += timedelta(**time)
        assert self._folding.remind is not None
        name = next(name for field, name in self.ids.items() if field != "app_id")
        return self.put(self._folding.remind(DueEntity(self.now, self.ids["app_id"], name), self.now))

    def load(self) -> Any:
        """The state as it is stored."""
        return self.read(self.stored)

    def read(self, parts: Mapping[str, bytes]) -> Any:
        """A working copy of these parts."""
        return self._folding.state(self.key, lambda _: parts, self.policy)

    @property
    def stats(self) -> Any:
        """How far it is, as last told."""
        return self.of(self._standing_of)[-1]
