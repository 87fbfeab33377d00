"""The fold of one partition of `commands.v1`: its users, in log order.

`streams` calls it with the records of a micro-batch, replay with all records of a log; how the records are cut into
calls, and where a partition is recovered in between, changes nothing about what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from models.arrival import Command
from models.bounds import CHUNK_STATE_BYTES
from models.events import OutputEvent, UserTurnAdded, user_key
from models.partition import PARTITION_ENTITY, PartitionFolded, Parts
from models.policy import Policy
from models.user import fold
from models.user_bounds import record_bytes, touched_bytes
from models.user_state import UserState


class _Clock(Struct, array_like=True):
    offset: int


def commands_offset(entities: Mapping[str, Parts]) -> int:
    """Offset of the last command folded into a partition's state, −1 for an empty one."""
    clock = entities.get(PARTITION_ENTITY, {}).get("clock")
    return msgspec.msgpack.decode(clock, type=_Clock).offset if clock else -1


class MemoryPartitionFold:
    """Folds commands of one partition over the state in `entities`, which the caller updates with each result.

    Args:
        entities: Live view of the partition's state: entity → part → bytes.
        policy: The rules.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        self._entities = entities
        self._policy = policy
        self._offset = commands_offset(entities)
        self._begin()

    @property
    def offset(self) -> int:
        """Offset of the last command folded in, −1 at first: what lies at or below it changes nothing."""
        return self._offset

    def fold(self, arrivals: Sequence[Command]) -> Iterator[PartitionFolded]:
        """Fold commands in order, yielding results of bounded size.

        The caller must make each result durable and visible in `entities` before it asks for the next. After an error
        on the way, drop this object and make a new one.
        """
        for command in arrivals:
            if command.position.offset <= self._offset:
                continue
            self._fold_one(command)
            if self._changed_bytes > CHUNK_STATE_BYTES:
                yield self._result()
        if self._touched:
            yield self._result()

    def _fold_one(self, command: Command) -> None:
        event = command.event
        key = user_key(event.app_id, event.user_id)
        state = self._users.get(key)
        if state is None:
            state = self._users[key] = UserState.load(self._entities.get(key), self._policy)
            self._changed_bytes += touched_bytes(key)
        bytes_before, parts_before = state.written
        self._outputs += fold(state, event, command.position, self._policy)
        bytes_after, parts_after = state.written
        self._changed_bytes += bytes_after - bytes_before + (parts_after - parts_before) * record_bytes(key)
        self._turns += isinstance(event, UserTurnAdded)
        self._offset = command.position.offset
        self._touched = True

    def _begin(self) -> None:
        self._users: dict[str, UserState] = {}
        self._outputs: list[OutputEvent] = []
        self._turns = 0
        self._touched = False
        self._changed_bytes: int = 0

    def _result(self) -> PartitionFolded:
        changed: dict[str, dict[str, bytes | None]] = {key: state.changed_parts() for key, state in self._users.items()}
        changed[PARTITION_ENTITY] = {"clock": msgspec.msgpack.encode(_Clock(self._offset))}
        result = PartitionFolded(self._offset, changed, self._outputs, self._turns)
        self._begin()
        return result
