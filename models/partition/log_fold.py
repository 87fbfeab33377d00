"""Fold of a partition of any log: results of bounded size, the partition's own state, places in the log."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from models.events import OutputEvent, Position
from models.policy import Policy
from models.session.bounds import CHUNK_STATE_BYTES

PARTITION_ENTITY = ""
"""State of the partition itself is kept beside its sessions under this name (no key of a session is empty)."""
ERASED_PART = "erased"
"""Of the partition's own state: offset of the last erasure. A store that finds it changed gives up what was deleted."""
Parts = Mapping[str, bytes]


class PartitionFolded(Struct):
    """What a run of arrivals amounts to.

    Attributes:
        offset: Source offset of the last arrival folded in.
        changed: Entity → part → bytes, None to delete.
        outputs: In the order of their causes.
        turns: Arrivals that were turns.
        erased: Arrivals that were erasures: what they removed must not stay in a store's files.
    """

    offset: int
    changed: dict[str, dict[str, bytes | None]]
    outputs: list[OutputEvent]
    turns: int
    erased: int = 0


def folded_offset(entities: Mapping[str, Parts]) -> int:
    """Source offset of the last arrival folded into a partition's state, −1 for an empty one."""
    clock = entities.get(PARTITION_ENTITY, {}).get("clock")
    return int(msgspec.msgpack.decode(clock)[-1]) if clock else -1


_Arrival = TypeVar("_Arrival", bound="Placed")


class Placed(Protocol):
    """Anything with a place in the log."""

    @property
    def position(self) -> Position:
        """The record that carried it."""
        ...


class LogFold(ABC, Generic[_Arrival]):
    """Folds the arrivals of one partition over its state; what a partition of any log does.

    Args:
        entities: Live view of the partition's state, which the caller updates with each result.
        policy: The rules.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        self._entities = entities
        self._policy = policy
        self._begin()

    @property
    @abstractmethod
    def offset(self) -> int:
        """Source offset of the last arrival folded in, −1 at first: what lies at or below it changes nothing."""

    @abstractmethod
    def _is_erasure(self, arrival: _Arrival) -> bool:
        """Whether it removes something that must not stay in a store's files."""

    @abstractmethod
    def _fold_one(self, arrival: _Arrival) -> bool:
        """Fold one arrival, or a step of it; whether it is done."""

    @abstractmethod
    def _changed_bytes(self) -> int:
        """What was changed since the last result, never too low."""

    @abstractmethod
    def _take_changes(self) -> dict[str, dict[str, bytes | None]]:
        """Entity → part → bytes, None to delete; what the partition itself keeps among them."""

    def fold(self, arrivals: Sequence[_Arrival]) -> Iterator[PartitionFolded]:
        """Fold arrivals in order, yielding results of bounded size.

        The caller must make each result durable and visible in `entities` before it asks for the next. After an error
        on the way, drop this object and make a new one.
        """
        for arrival in arrivals:
            if arrival.position.offset <= self.offset:
                continue
            if self._touched and self._is_erasure(arrival) != bool(self._erased):
                yield self._result(self.offset)
            while not self._fold_one(arrival):
                yield self._result(arrival.position.offset)
            if self._changed_bytes() > CHUNK_STATE_BYTES:
                yield self._result(self.offset)
        if self._touched:
            yield self._result(self.offset)

    def _begin(self) -> None:
        self._outputs: list[OutputEvent] = []
        self._turns = 0
        self._erased = 0
        self._touched = False
        self._state_bytes = 0

    def _result(self, offset: int) -> PartitionFolded:
        """What is to be stored, as of an arrival that is done or, in steps, not done: the clock stands at a done one.

        So a crash between two steps brings the arrival again. In the changelog the step is of that arrival already:
        what a replaced worker still writes of those before it is stale (`streams/state/changelog.py`).
        """
        changed = self._take_changes()
        if self._erased:
            changed[PARTITION_ENTITY][ERASED_PART] = msgspec.msgpack.encode(self.offset)
        result = PartitionFolded(offset, changed, self._outputs, self._turns, self._erased)
        self._begin()
        return result
