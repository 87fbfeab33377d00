"""The state of one space of an app's memories: what it consists of, how it is read from and written to its parts.

| part | content | written |
|---|---|---|
| `head` | counters, energy, what was seen, the open request, outcomes of admins' commands | with each change |
| `m0` … | memories, one each, by their slot | when one changes |
| `c` | the candidate: one memory too many, until it is decided which goes | by the conversation it is of |
| `w1` … | ended conversations that wait, in order | when one must wait |

All parts of one batch are written together, so they always fit each other. A space that was erased, or never was,
has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Struct

from models.app.energy import Energy, Work, begins_at
from models.app.memory import MOST_SHORT_IDS, SHORT_ID, KeptMemory, short_id, split_ids
from models.errors import RecoveryFailed
from models.events.app import CommandResult, ConversationEnded
from models.policy import Policy
from models.policy.app import AppPolicy
from models.state.parts import Parts

STATE_VERSION = 1
"""Raised when the layout below changes; an older release then refuses the state instead of misreading it."""


class Asked(Struct, frozen=True, array_like=True, gc=False):
    """A request that is not answered: for the candidate if there is one, else for the first conversation that waits."""

    request: int
    at: datetime


class SpaceHead(Struct, array_like=True):
    """Counters of one space. Sizes are bounded by the policy and the number of partitions."""

    version: int = STATE_VERSION
    app_id: str = ""
    user_id: str = ""
    """Empty for an app's own space."""
    seen: dict[int, tuple[int, bytes]] = {}
    """Partition of `turns.v1` → offset of the last record that ended conversations, and short ids of these."""
    created: int = 0
    """Memories of all time; the newest has this number."""
    compactions: int = 0
    skipped: int = 0
    edited: int = 0
    energy: Energy | None = None
    spent_units: float = 0.0
    uninstalled: bool = False
    requests: int = 0
    """Requests of all time; the newest has this number."""
    asked: Asked | None = None
    waited: int = 0
    """Conversations that had to wait, of all time; the newest has this number."""
    results: list[CommandResult] = []


_decode_head = msgspec.msgpack.Decoder(SpaceHead).decode
_decode_memory = msgspec.msgpack.Decoder(KeptMemory).decode
_decode_ended = msgspec.msgpack.Decoder(ConversationEnded).decode
_encode = msgspec.msgpack.Encoder().encode
_Part = TypeVar("_Part")
_REBUILD = "Run the release that wrote it, or drop the state topic and replay the commands."
_CANDIDATE = "c"


class SpaceState:
    """Working copy of one space, between `load` and `changed_parts`. `models.app.fold.fold` consumes it.

    Attributes:
        head: Counters.
        memories: Slot → memory; read only, `put` and `drop` change it.
        spent: What work cost since it was loaded, in units of energy by kind.
    """

    def __init__(self, parts: Mapping[str, bytes], policy: Policy) -> None:
        self._parts = Parts(parts)
        self._policy: AppPolicy = policy.apps
        self._fresh: ConversationEnded | None = None
        self._waiting = sorted(int(name[1:]) for name in parts if name[0] == "w")
        self.head = _read_head(parts) if parts else SpaceHead()
        self.memories = {
            int(name[1:]): _read(name, parts[name], _decode_memory) for name in sorted(parts) if name[0] == "m"
        }
        self._candidate = _read(_CANDIDATE, parts[_CANDIDATE], _decode_memory) if _CANDIDATE in parts else None
        self.spent: dict[Work, float] = {}

    @classmethod
    def load(cls, parts: Mapping[str, bytes] | None, policy: Policy) -> SpaceState:
        """Working copy of stored parts, or of nothing; `parts` is never changed.

        Raises:
            RecoveryFailed: The head is missing, a part damaged, or the state is of another version.
        """
        return cls(parts or {}, policy)

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from what was loaded; None deletes. Nothing of a space that never was."""
        if self.known:
            self._parts.put("head", _encode(self.head))
        return self._parts.changes()

    @property
    def known(self) -> bool:
        """Whether anything is kept of the space."""
        return bool(self.head.app_id)

    @property
    def written(self) -> tuple[int, int]:
        """Bytes and parts written so far, without the head."""
        return self._parts.written_bytes, self._parts.written_parts

    @property
    def due(self) -> datetime | None:
        """When work that waits can go on, or an answer is overdue; None if nothing waits, or only for another event."""
        if self.head.asked is not None:
            return self.head.asked.at + self._policy.answer_within
        return begins_at(self.head.energy, self._policy.energy) if self.waiting else None

    def erase(self) -> None:
        """Everything goes, with all that was counted; what comes next begins a new space."""
        if self.known:
            # Written and deleted: another worker may have stored a head of what came since this one loaded.
            self._parts.put("head", b"")
        for name in self._parts.names(""):
            self._parts.drop(name)
        self.head, self.memories, self._candidate = SpaceHead(), {}, None
        self._fresh, self._waiting = None, []

    def sees(self, ended: ConversationEnded) -> bool:
        """Whether the end of a conversation is new; from now on it is not.

        After a crash the sessions role repeats what it forwarded, from some record of `turns.v1` on.
        """
        place, seen = ended.source, self.head.seen
        offset, ids = seen.get(place.partition, (-1, b""))
        short = short_id(ended.id)
        if place.offset < offset or (place.offset == offset and short in split_ids(ids)):
            return False
        kept = ids if place.offset == offset else b""
        seen[place.partition] = (place.offset, (kept + short)[-MOST_SHORT_IDS * SHORT_ID :])
        return True

    # --- memories

    @property
    def candidate(self) -> KeptMemory | None:
        """The memory too many, of which no reader knows yet."""
        return self._candidate

    @candidate.setter
    def candidate(self, memory: KeptMemory | None) -> None:
        self._candidate = memory
        if memory is None:
            self._parts.drop(_CANDIDATE)
        else:
            self._parts.put(_CANDIDATE, _encode(memory))

    def put(self, slot: int, memory: KeptMemory) -> None:
        """Write a memory into its slot."""
        self.memories[slot] = memory
        self._parts.put(f"m{slot}", _encode(memory))

    def drop(self, slot: int) -> KeptMemory:
        """Free a slot; gives what was there."""
        self._parts.drop(f"m{slot}")
        return self.memories.pop(slot)

    def free_slot(self) -> int:
        """The lowest that no memory has: so the compacted topic stays small."""
        return next(slot for slot in range(len(self.memories) + 1) if slot not in self.memories)

    def slot_of(self, memory_id: int) -> int | None:
        """Where a memory is; None of one that is not there."""
        return next((slot for slot, memory in self.memories.items() if memory.memory_id == memory_id), None)

    # --- what waits

    @property
    def waiting(self) -> int:
        """Conversations that wait to become a memory, the candidate's among them."""
        return self.queued + (self._candidate is not None)

    @property
    def queued(self) -> int:
        """Conversations that nothing was made of yet."""
        return len(self._waiting) + (self._fresh is not None)

    def wait(self, ended: ConversationEnded) -> None:
        """Put a conversation behind the others. It is written only where `keep_waiting` finds it."""
        self.keep_waiting()
        self._fresh = ended

    def first_waiting(self) -> ConversationEnded | None:
        """The conversation that comes next."""
        return self._read_waiting(self._waiting[0]) if self._waiting else self._fresh

    def next_waiting(self) -> None:
        """It is done with."""
        if self._waiting:
            self._parts.drop(f"w{self._waiting.pop(0)}")
        else:
            self._fresh = None

    def keep_waiting(self) -> None:
        """Write what could not be done at once."""
        if self._fresh is not None:
            self.head.waited += 1
            self._waiting.append(self.head.waited)
            self._parts.put(f"w{self.head.waited}", _encode(self._fresh))
            self._fresh = None

    def stop_waiting(self, is_meant: Callable[[ConversationEnded], bool]) -> int:
        """Forget conversations that wait, and a request for the first if it is one; gives how many."""
        self.keep_waiting()
        meant = [number for number in self._waiting if is_meant(self._read_waiting(number))]
        if self._candidate is None and meant and meant[0] == self._waiting[0]:
            self.head.asked = None
        for number in meant:
            self._parts.drop(f"w{number}")
        self._waiting = [number for number in self._waiting if number not in set(meant)]
        return len(meant)

    def _read_waiting(self, number: int) -> ConversationEnded:
        data = self._parts.get(f"w{number}")
        assert data is not None, "the part was listed"  # noqa: S101
        return _read(f"w{number}", data, _decode_ended)


def _read_head(parts: Mapping[str, bytes]) -> SpaceHead:
    if "head" not in parts:
        raise RecoveryFailed(f"space of memories: part head is missing among {sorted(parts)}. {_REBUILD}")
    head = _read("head", parts["head"], _decode_head)
    if head.version != STATE_VERSION:
        raise RecoveryFailed(
            f"space of memories: part head has version {head.version}, this release reads {STATE_VERSION}. {_REBUILD}"
        )
    return head


def _read(name: str, data: bytes, decode: Callable[[bytes], _Part]) -> _Part:
    try:
        return decode(data)
    except msgspec.MsgspecError as error:
        raise RecoveryFailed(f"space of memories: part {name} is unreadable ({error}). {_REBUILD}") from error
