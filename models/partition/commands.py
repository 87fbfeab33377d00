"""The fold of one partition of `commands.v1`: its users, its spaces of memories and its projects, in log order.

`streams` calls it with the records of a micro-batch, replay with all records of a log; how the records are cut into
calls, and where a partition is recovered in between, changes nothing about what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from models.app import fold as app
from models.app.bounds import space_event_bytes, space_touched_bytes
from models.app.due import SpaceStandings
from models.app.energy import Work
from models.app.state import SpaceState
from models.entities import entity_key
from models.events import (
    ConversationEnded,
    OutputEvent,
    ProjectCommand,
    ProjectForwarded,
    ProjectTurnAdded,
    SpaceCommand,
    UserTurnAdded,
)
from models.events.erase import ProjectErasure, SpaceErasure, UserErasure
from models.partition.sessions import ERASED_PART, PARTITION_ENTITY, PartitionFolded, Parts
from models.policy import Policy
from models.project import fold as project
from models.project.bounds import project_event_bytes, project_touched_bytes
from models.project.due import ProjectStandings
from models.project.state import ProjectState
from models.session.bounds import CHUNK_STATE_BYTES
from models.user import fold as user
from models.user.bounds import record_bytes, touched_bytes
from models.user.progress import UserStandings
from models.user.state import UserState
from models.wire.arrival import Command

_Erasure = UserErasure | SpaceErasure | ProjectErasure


class Entity(Protocol):
    """The state of a user or a space, between two writes."""

    @property
    def written(self) -> tuple[int, int]:
        """Bytes and parts written so far, without the head."""
        ...

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from what was loaded; None deletes. Empty where nothing is kept and nothing was."""
        ...


class _Clock(Struct, array_like=True):
    offset: int


def commands_offset(entities: Mapping[str, Parts]) -> int:
    """Offset of the last command folded into a partition's state, −1 for an empty one."""
    clock = entities.get(PARTITION_ENTITY, {}).get("clock")
    return msgspec.msgpack.decode(clock, type=_Clock).offset if clock else -1


def _no_clock() -> float:
    return 0.0


class MemoryPartitionFold:
    """Folds commands of one partition over the state in `entities`, which the caller updates with each result.

    Args:
        entities: Live view of the partition's state: entity → part → bytes.
        policy: The rules.
        seconds: A clock to measure with how long spaces take; what is folded does not depend on it.

    Attributes:
        standings: Which spaces there are, and for which something is due.
        projects: Likewise for projects.
        users: How much of users waits to become episodes.
    """

    def __init__(
        self, entities: Mapping[str, Parts], policy: Policy, *, seconds: Callable[[], float] = _no_clock
    ) -> None:
        self._entities = entities
        self._policy = policy
        self._offset = commands_offset(entities)
        self._seconds = seconds
        self.standings = SpaceStandings(entities, policy)
        self.projects = ProjectStandings(entities, policy)
        self.users = UserStandings(entities)
        self._space_seconds = 0.0
        self._spent: dict[Work, float] = {}
        self._begin()

    @property
    def offset(self) -> int:
        """Offset of the last command folded in, −1 at first: what lies at or below it changes nothing."""
        return self._offset

    def take_spent(self) -> tuple[float, dict[Work, float]]:
        """Seconds that spaces took since this was last asked, and units of energy by kind of work."""
        taken = self._space_seconds, self._spent
        self._space_seconds, self._spent = 0.0, {}
        return taken

    def fold(self, arrivals: Sequence[Command]) -> Iterator[PartitionFolded]:
        """Fold commands in order, yielding results of bounded size.

        The caller must make each result durable and visible in `entities` before it asks for the next. After an error
        on the way, drop this object and make a new one.
        """
        for command in arrivals:
            if command.position.offset <= self._offset:
                continue
            if self._touched and isinstance(command.event, _Erasure) != bool(self._erased):
                yield self._result(self._offset)
            while not self._fold_one(command):
                yield self._result(command.position.offset)
            if self._changed_bytes > CHUNK_STATE_BYTES:
                yield self._result(self._offset)
        if self._touched:
            yield self._result(self._offset)

    def _fold_one(self, command: Command) -> bool:
        """Fold a command, or a step of it; whether it is done."""
        event, done = command.event, True
        key = entity_key(event)
        if isinstance(event, SpaceCommand | ConversationEnded):
            begun = self._seconds()
            space = self._space(key)
            before = space.written
            self._outputs += app.fold(space, event, command.position, command.appended_at, self._policy)
            self._changed_bytes += space_event_bytes() + _growth(key, space, before)
            self._space_seconds += self._seconds() - begun
        elif isinstance(event, ProjectCommand | ProjectForwarded):
            memory = self._project(key)
            written = memory.written_bytes
            outputs, done = project.fold_step(memory, event, command.position, command.appended_at, self._policy)
            self._outputs += outputs
            self._changed_bytes += project_event_bytes() + memory.written_bytes - written
        else:
            known = self._user(key)
            before = known.written
            self._outputs += user.fold(known, event, command.position, self._policy)
            self._changed_bytes += _growth(key, known, before)
        self._turns += isinstance(event, UserTurnAdded | ProjectTurnAdded)
        self._erased += isinstance(event, _Erasure)
        self._touched = True
        if done:
            self._offset = command.position.offset
        return done

    def _user(self, key: str) -> UserState:
        state = self._users.get(key)
        if state is None:
            state = self._users[key] = UserState.load(self._entities.get(key), self._policy)
            self._changed_bytes += touched_bytes(key)
        return state

    def _space(self, key: str) -> SpaceState:
        state = self._spaces.get(key)
        if state is None:
            parts = self._entities.get(key)
            state = self._spaces[key] = SpaceState.load(parts, self._policy)
            self._changed_bytes += space_touched_bytes(key, parts)
        return state

    def _project(self, key: str) -> ProjectState:
        state = self._projects.get(key)
        if state is None:
            state = self._projects[key] = ProjectState.load(key, self._entities.get, self._policy)
            self._changed_bytes += project_touched_bytes(key, state.head_bytes)
        return state

    def _begin(self) -> None:
        self._users: dict[str, UserState] = {}
        self._spaces: dict[str, SpaceState] = {}
        self._projects: dict[str, ProjectState] = {}
        self._outputs: list[OutputEvent] = []
        self._turns = 0
        self._erased = 0
        self._touched = False
        self._changed_bytes: int = 0

    def _result(self, offset: int) -> PartitionFolded:
        """What is to be stored, as of a command that is done or, in steps, not done: the clock stands at a done one.

        So a crash between two steps brings the command again. In the changelog the step is of that command already:
        what a replaced worker still writes of the commands before it is stale (`streams/state/changelog.py`).
        """
        states: dict[str, Entity] = {**self._users, **self._spaces}
        changed = {key: parts for key, state in states.items() if (parts := state.changed_parts())}
        for key, user_state in self._users.items():
            self.users.note(key, user_state.head)
        for key, memory in self._projects.items():
            changed.update(memory.changed())
            self.projects.note(key, memory)
        changed[PARTITION_ENTITY] = {"clock": msgspec.msgpack.encode(_Clock(self._offset))}
        if self._erased:
            changed[PARTITION_ENTITY][ERASED_PART] = msgspec.msgpack.encode(self._offset)
        for key, space in self._spaces.items():
            self.standings.note(key, space)
            for kind, units in space.spent.items():
                self._spent[kind] = self._spent.get(kind, 0.0) + units
        result = PartitionFolded(offset, changed, self._outputs, self._turns, self._erased)
        self._begin()
        return result


def _growth(key: str, state: Entity, before: tuple[int, int]) -> int:
    """What a fold added to the write."""
    bytes_after, parts_after = state.written
    return bytes_after - before[0] + (parts_after - before[1]) * record_bytes(key)
