"""Layer 1, the immediate buffer: exact content of the last turns (risk memory).

One part per turn, so that a new turn writes itself and not its neighbours. Kept are the `buffer_turns` highest turn
numbers, and besides them any turn whose segment is still open, so that nothing is dropped before it is summarised.

Exact turns of a whole session, for a language model that makes a memory of it (app memory, Memory Creation).

A part for each segment, written once: of the last turns as many as `apps.asked_tokens` allow. They are kept while the
session is open, and only where a model is asked. So they are there at its end whatever an index or an archive holds by
then, a replay sees the same, and they go with the state of an erased session.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct

from models.events import JudgedTurn, Role
from models.policy.app import AppPolicy
from models.state.parts import Parts
from models.text.words import estimate_tokens, latest_that_fit

ASKED_CHARS = 40_000
"""Of all turns that a judge sees of a conversation: with them it must fit into a record."""


class BufferedTurn(Struct, frozen=True, array_like=True, gc=False):
    """One turn as it was said."""

    turn: int
    role: Role
    content: str
    timestamp: datetime
    risk: float | None


encode_turn = msgspec.msgpack.Encoder().encode
decode_turn = msgspec.msgpack.Decoder(BufferedTurn).decode


class TurnBuffer:
    """The last turns. `slots` maps turn number to part number and is kept in the head; changed in place."""

    def __init__(self, slots: dict[int, int], parts: Parts) -> None:
        self.slots = slots
        self._parts = parts

    def insert(self, turn: int, encoded: bytes, capacity: int, open_turns: Collection[int]) -> None:
        """Add an encoded turn at its place; the lowest beyond `capacity` makes room unless its segment is open."""
        slots = self.slots
        slot = self._make_room(turn, capacity, open_turns)
        slots[turn] = slot
        self._parts.put(f"b{slot}", encoded)

    def read(self, turn: int) -> BufferedTurn:
        """A buffered turn; `turn` must be in `slots`."""
        data = self._parts.get(f"b{self.slots[turn]}")
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return decode_turn(data)

    def replace_text(self, turn: int, content: str) -> None:
        """Put the text of a turn right, if it is buffered."""
        if turn in self.slots:
            said = msgspec.structs.replace(self.read(turn), content=content)
            self._parts.put(f"b{self.slots[turn]}", encode_turn(said))

    def judged(self, turn_chars: int) -> list[JudgedTurn]:
        """The turns as a judge reads them, in order: each cut to `turn_chars`, the last `ASKED_CHARS` of all."""
        turns = map(self.read, sorted(self.slots))
        cut = [JudgedTurn(turn.turn, turn.role, turn.content[:turn_chars]) for turn in turns]
        return latest_that_fit(cut, ASKED_CHARS, lambda turn: len(turn.content))

    def _make_room(self, arriving: int, capacity: int, open_turns: Collection[int]) -> int:
        slots = self.slots
        if len(slots) < capacity:
            return self._free_slot()
        first = min(slots)
        if len(slots) == capacity and first < arriving and first not in open_turns:
            return slots.pop(first)
        surplus = len(slots) + 1 - capacity
        lowest = sorted([*slots, arriving])[:surplus]
        freed = [slots.pop(turn) for turn in lowest if turn not in open_turns and turn in slots]
        for slot in freed[1:]:
            self._parts.drop(f"b{slot}")
        return freed[0] if freed else self._free_slot()

    def _free_slot(self) -> int:
        used = self.slots.values()
        count = len(used)
        if max(used, default=-1) < count:  # no gap, as in every session until it is full
            return count
        return min(set(range(count)).difference(used))


PREFIX = "x"


class ExactTurn(NamedTuple):
    """A turn as it was said, a long one cut."""

    turn: int
    role: Role
    content: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[ExactTurn]).decode


class ExactTurns:
    """The turns, in parts of a session's state; changed in place."""

    def __init__(self, parts: Parts, policy: AppPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def add(self, turns: Sequence[BufferedTurn]) -> None:
        """Keep a segment's turns, ordered by number; the oldest segments go once the later ones fill the budget."""
        cut = [ExactTurn(turn.turn, turn.role, self._cut(turn.content)) for turn in turns]
        self._put(f"{PREFIX}{cut[0].turn}", self._fitting(cut))
        left = self._policy.asked_tokens
        for name in reversed(self._names()):
            if left <= 0:
                self._parts.drop(name)
            left -= sum(estimate_tokens(turn.content) for turn in self._read(name))

    def replace_text(self, turn: int, content: str) -> None:
        """Put the text of a turn right, if it is kept."""
        for name in self._names():
            turns = self._read(name)
            if any(kept.turn == turn for kept in turns):
                right = [kept._replace(content=self._cut(content)) if kept.turn == turn else kept for kept in turns]
                self._put(name, right)

    def all(self) -> list[ExactTurn]:
        """In order of turn, as many as fit."""
        return self._fitting(sorted(turn for name in self._names() for turn in self._read(name)))

    def _cut(self, content: str) -> str:
        return content[: self._policy.asked_turn_chars]

    def _fitting(self, turns: Sequence[ExactTurn]) -> list[ExactTurn]:
        return latest_that_fit(turns, self._policy.asked_tokens, lambda turn: estimate_tokens(turn.content))

    def _names(self) -> list[str]:
        return sorted(self._parts.names(PREFIX), key=lambda name: int(name[len(PREFIX) :]))

    def _read(self, name: str) -> list[ExactTurn]:
        data = self._parts.get(name)
        return [] if data is None else _decode(data)

    def _put(self, name: str, turns: Sequence[ExactTurn]) -> None:
        self._parts.put(name, _encode(turns))
