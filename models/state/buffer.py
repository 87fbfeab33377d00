"""Layer 1, the immediate buffer: exact content of the last turns (risk memory).

One part per turn, so that a new turn writes itself and not its neighbours. Kept are the `buffer_turns` highest turn
numbers, and besides them any turn whose segment is still open, so that nothing is dropped before it is summarised.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec
from msgspec import Struct

from models.events import JudgedTurn, Role
from models.state.parts import Parts
from models.text.words import latest_that_fit

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
