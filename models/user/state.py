"""The state of one user's memory: what it consists of, how it is read from and written to its parts.

| part | content | written |
|---|---|---|
| `head` | counters, what was seen, requests without an answer, the present runs of turns | with every input |
| `t0` … | turns at hand, one each, in a ring; no bytes where the turn was erased | by its turn |
| `f:<category>/<digest of the key>` | facts (`memory.facts`) | when one changes |
| `r` | the latest retractions (`memory.facts`) | with each |

All parts of one batch are written together, so they always fit each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from models.errors import RecoveryFailed
from models.events import Role, SessionTurns
from models.policy import Policy
from models.policy.user import UserPolicy
from models.state.parts import Parts
from models.user.facts import Facts

STATE_VERSION = 2
"""Raised when the layout below changes; an older release then refuses the state instead of misreading it."""
_RING = 2_048
"""More than any policy keeps (`UserPolicy.most_turns`); fixed, so that another policy finds the same places."""


class UserHead(Struct, array_like=True):
    """Counters of one user. Sizes are bounded by the policy and the number of partitions."""

    version: int = STATE_VERSION
    app_id: str = ""
    user_id: str = ""
    seen: dict[int, int] = {}
    """Partition of `turns.v1` → offset of the last of its turns that is in; what comes again is told by it."""
    turn_count: int = 0
    """Turns of all sessions; the newest has this number."""
    requested: int = 0
    """Turns up to this number are in an episode, or one was asked for."""
    waiting: list[tuple[int, int]] = []
    """First and last turn of the episodes asked for, the oldest first."""
    low: int = 1
    """Lowest turn that is in the ring."""
    episodes: int = 0
    facts: int = 0
    """Active ones."""

    @property
    def compressed(self) -> int:
        """Turns up to this number are in episodes."""
        return self.waiting[0][0] - 1 if self.waiting else self.requested


class TurnPlace(Struct, frozen=True, array_like=True, gc=False):
    """Which turn it is; what else a part holds of it is left undecoded."""

    session_id: str
    turn: int


class UserTurn(TurnPlace, frozen=True, array_like=True, gc=False):
    """A turn at hand."""

    role: Role
    content: str
    timestamp: datetime


_decode_head = msgspec.msgpack.Decoder(UserHead).decode
_decode_place = msgspec.msgpack.Decoder(TurnPlace).decode
_decode_turn = msgspec.msgpack.Decoder(UserTurn).decode
_encode = msgspec.msgpack.Encoder().encode
_REBUILD = "Run the release that wrote it, or drop the state topic and replay the commands."


class UserState:
    """Working copy of one user, between `load` and `changed_parts`. `models.user.fold.fold` consumes it.

    Attributes:
        head: Counters.
        facts: The upper tier.
    """

    def __init__(self, parts: Mapping[str, bytes], head: UserHead, policy: Policy) -> None:
        self.head = head
        self._parts = Parts(parts)
        self._policy: UserPolicy = policy.users
        self.facts = Facts(self._parts, policy.users.facts)

    @classmethod
    def load(cls, parts: Mapping[str, bytes] | None, policy: Policy) -> UserState:
        """Working copy of stored parts, or of nothing; `parts` is never changed.

        Raises:
            RecoveryFailed: The head is missing, damaged or of another state version.
        """
        return cls(parts or {}, read_head(parts) if parts else UserHead(), policy)

    @property
    def known(self) -> bool:
        """Whether anything is kept of the user."""
        return bool(self.head.app_id)

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from what was loaded; None deletes. Of a user who is not known none is written."""
        if self.known:
            self._parts.put("head", _encode(self.head))
        return self._parts.changes()

    @property
    def written(self) -> tuple[int, int]:
        """Bytes and parts written so far, without the head."""
        return self._parts.written_bytes, self._parts.written_parts

    def add(self, turn: UserTurn) -> None:
        """Put a turn behind the others."""
        self.head.turn_count += 1
        content = turn.content[: self._policy.turn_chars]
        kept = turn if len(content) == len(turn.content) else msgspec.structs.replace(turn, content=content)
        self._parts.put(self._part(self.head.turn_count), _encode(kept))

    def turns(self, first: int, last: int) -> list[UserTurn]:
        """Turns of the ring by the user's numbers, both ends inside, without those that were erased."""
        return [_decode_turn(data) for data in self._places(first, last) if data]

    def sessions(self, first: int, last: int) -> set[str]:
        """Sessions of the turns of the ring by the user's numbers, both ends inside."""
        return {_decode_place(data).session_id for data in self._places(first, last) if data}

    def at_hand(self) -> list[SessionTurns]:
        """The short-term tier: what is in no episode and not asked for, and at least the last `keep_turns`."""
        head = self.head
        first = min(head.requested, head.turn_count - self._policy.keep_turns) + 1
        return runs([_decode_place(data) for data in self._places(first, head.turn_count) if data])

    def release(self) -> None:
        """Let go of turns that an episode has and that are not among the last."""
        head = self.head
        keep_from = max(1, min(head.compressed, head.turn_count - self._policy.keep_turns) + 1)
        for number in range(head.low, keep_from):
            self._parts.drop(self._part(number))
        head.low = max(head.low, keep_from)

    def erase(self) -> None:
        """Let go of everything: what comes next begins a new user."""
        # Written and deleted: another worker may have stored a head of what came since this one loaded.
        self._parts.put("head", b"")
        for name in self._parts.names(""):
            self._parts.drop(name)
        self.head = UserHead()

    def erase_turns(self, session_id: str) -> None:
        """Leave the places of a session's turns empty: the others keep their numbers, and episodes their ranges."""
        for number in range(self.head.low, self.head.turn_count + 1):
            data = self._data(number)
            if data and _decode_place(data).session_id == session_id:
                self._parts.put(self._part(number), b"")

    def _places(self, first: int, last: int) -> Iterator[bytes]:
        return (self._data(number) for number in range(max(first, self.head.low), last + 1))

    def _data(self, number: int) -> bytes:
        data = self._parts.get(self._part(number))
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return data

    def _part(self, number: int) -> str:
        """Numbers in the ring are a run no longer than it, so no two share a place."""
        return f"t{number % _RING}"


def runs(turns: Sequence[TurnPlace]) -> list[SessionTurns]:
    """Turns by session, in their order: what one session says in a row is one entry."""
    found: list[SessionTurns] = []
    for turn in turns:
        if found and found[-1].session_id == turn.session_id:
            found[-1].turns.append(turn.turn)
        else:
            found.append(SessionTurns(turn.session_id, [turn.turn]))
    return found


def read_head(parts: Mapping[str, bytes]) -> UserHead:
    """Counters of a user's stored parts.

    Raises:
        RecoveryFailed: The head is missing, damaged or of another state version.
    """
    try:
        head = _decode_head(parts["head"])
    except KeyError:
        raise RecoveryFailed(f"user state: part head is missing among {sorted(parts)}. {_REBUILD}") from None
    except msgspec.MsgspecError as error:
        raise RecoveryFailed(f"user state: part head is unreadable ({error}). {_REBUILD}") from error
    if head.version != STATE_VERSION:
        raise RecoveryFailed(
            f"user state: part head has version {head.version}, this release reads {STATE_VERSION}. {_REBUILD}"
        )
    return head
