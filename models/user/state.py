"""The state of one user's memory: its content, and how it is read from and written to its parts.

| part | content | written |
|---|---|---|
| `head` | counters, offsets of consumed turns, open requests, the current runs of turns | with every input |
| `t0` … | recent turns, one each, in a ring; empty if the turn was erased | by its turn |
| `f:<category>/<digest of the key>` | facts (`memory.facts`) | when one changes |
| `r` | the latest retractions (`memory.facts`) | with each |
| `k:<topic>` | topics between sessions (`UserTopics`) | when a session with it ends |

All parts of one batch are written together, so they are always consistent.

Topics of a user between sessions decay by the topics' own half-life (topic memory, §3).

A session that ends reports its topics, and the user's next session gets those that have not faded: numbers, and text
only if it is the session that the text is from. A topic with turns of an erased session is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from models.events import CommandResult, Role, SessionTurns
from models.events.topic import KeptTopic
from models.events.user import MemoryMode
from models.policy import Policy
from models.policy.topic import TopicPolicy
from models.state.decay import priority
from models.state.entity import CountParts, EntityState, Read, decoder, digest_of, encode
from models.state.parts import Parts
from models.text.language import ENGLISH
from models.user.fact import LAYOUT
from models.user.facts import Facts

_PREFIX: Final = "k:"
_SESSIONS: Final = 64
"""Most sessions stored per topic. The share of an earlier one in the embedding is below a thousandth."""
_NO_WORDS: Final[dict[str, Any]] = {"title": "", "tags": [], "summary": "", "summarised_by": ""}
_WITH_TURNS: Final = 8
"""Latest sessions stored with their turns: a session that continues under its id finds them again."""


class UserTopic(Struct, array_like=True):
    """A topic over all sessions; fields as in `models.events.topic.KeptTopic`."""

    kept: KeptTopic
    """The topic with the text of the latest session."""
    sessions: dict[str, list[int]] = {}
    """Digest of a session's id → the topic's turns in it, the latest last."""


_decode = decoder(UserTopic)


class UserTopics:
    """Topics of one user over the parts of its state."""

    def __init__(self, parts: Parts, policy: TopicPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def keep(self, session_id: str, news: list[KeptTopic], now: datetime) -> None:
        """Add the topics of a session; beyond the policy's `most_topics` those of the lowest priority are removed."""
        here = digest_of(session_id)
        for new in news:
            data = self._parts.get(_PREFIX + new.topic_id)
            known = UserTopic(structs.replace(new, messages=0, accesses=0)) if data is None else _decode(data)
            sessions = {each: turns for each, turns in known.sessions.items() if each != here} | {here: new.turns}
            latest = list(sessions)
            kept = structs.replace(
                new,
                created_at=min(new.created_at, known.kept.created_at),
                last_active_at=max(new.last_active_at, known.kept.last_active_at),
                messages=new.messages + known.kept.messages,
                accesses=new.accesses + known.kept.accesses,
                turns=[],
            )
            with_turns = set(latest[-_WITH_TURNS:])
            named = {each: sessions[each] if each in with_turns else [] for each in latest[-_SESSIONS:]}
            self._parts.put(_PREFIX + new.topic_id, encode(UserTopic(kept, named)))
        for _, topic in self._ranked(now)[self._policy.most_topics :]:
            self._parts.drop(_PREFIX + topic.kept.topic_id)

    def living(self, session_id: str, now: datetime) -> list[KeptTopic]:
        """Topics for a session, the highest priority first; faded ones are removed."""
        living, here = [], digest_of(session_id)
        for worth, topic in self._ranked(now):
            if worth < self._policy.min_priority:
                self._parts.drop(_PREFIX + topic.kept.topic_id)
            else:
                words = {} if [*topic.sessions][-1] == here else _NO_WORDS
                living.append(structs.replace(topic.kept, turns=topic.sessions.get(here, []), **words))
        return living[: self._policy.recalled]

    def erase(self, session_id: str) -> None:
        """Remove topics with turns of a session: their embedding contains its text, too."""
        gone = digest_of(session_id)
        for name in self._parts.names(_PREFIX):
            if gone in _decode(self._parts.get(name) or b"").sessions:
                self._parts.drop(name)

    def _ranked(self, now: datetime) -> list[tuple[float, UserTopic]]:
        found = [_decode(self._parts.get(name) or b"") for name in sorted(self._parts.names(_PREFIX))]
        ranked = [
            (priority(each.kept.importance, now - each.kept.last_active_at, each.kept.accesses, self._policy), each)
            for each in found
        ]
        return sorted(ranked, key=lambda topic: -topic[0])


_RING = 2_048
"""More than any policy keeps (`UserPolicy.most_turns`); fixed, so that another policy finds the same slots."""


class UserHead(Struct, array_like=True):
    """Counters of one user. Sizes are bounded by the policy and the number of partitions."""

    version: int = LAYOUT.version
    app_id: str = ""
    user_id: str = ""
    seen: dict[int, int] = {}
    """Partition of `turns.v1` → offset of its last consumed turn; it identifies repeated turns."""
    turn_count: int = 0
    """Turns of all sessions; the newest has this number."""
    requested: int = 0
    """Turns up to this number are in an episode or in a requested one."""
    waiting: list[tuple[int, int]] = []
    """First and last turn of the requested episodes, the oldest first."""
    low: int = 1
    """Lowest turn in the ring."""
    episodes: int = 0
    facts: int = 0
    """Number of active facts."""
    results: list[CommandResult] = []
    """Results of the last commands."""
    mode: MemoryMode = MemoryMode.ACTIVE
    recalled_in: list[str] = []
    """Sessions that got the user's topics and have not ended, the latest last."""
    told: dict[int, tuple[int, list[str]]] = {}
    """Partition of `turns.v1` → offset of the last record that closed sessions of the user, and its event ids."""
    language: str = ENGLISH
    """Language of the user's last turn."""
    unsupported_turns: int = 0
    """User turns without fact extraction, as no rule and no model supports their language."""
    since: int = -1
    erased_offset: int = -1
    """Offset of the last record that erased a session: earlier requests may contain its text."""

    @property
    def compressed(self) -> int:
        """Turns up to this number are in episodes."""
        return self.waiting[0][0] - 1 if self.waiting else self.requested


class TurnPlace(Struct, frozen=True, array_like=True, gc=False):
    """Identity of a turn; the other fields of its part are not decoded."""

    session_id: str
    turn: int


class UserTurn(TurnPlace, frozen=True, array_like=True, gc=False):
    """A recent turn."""

    role: Role
    content: str
    timestamp: datetime


_decode_place, _decode_turn = decoder(TurnPlace), decoder(UserTurn)


class UserState(EntityState[UserHead]):
    """Working copy of one user. `models.user.fold.fold` consumes it.

    Attributes:
        facts: The upper tier.
        topics: Topics of the user's sessions.
    """

    layout = LAYOUT
    head_type = UserHead
    gauges = ("compaction_backlog_turns",)

    def __init__(self, key: str, read: Read, policy: Policy) -> None:
        super().__init__(key, read, policy)
        self._policy = policy.users
        self.facts = Facts(self.parts, policy.users.facts)
        self.topics = UserTopics(self.parts, policy.topics)

    @staticmethod
    def figures(head: UserHead, count: CountParts) -> tuple[int, ...]:  # noqa: ARG004 - the head says it
        """Turns of requested episodes that are not made yet: the lag of compaction."""
        return (head.requested - head.compressed,)

    def add(self, turn: UserTurn) -> None:
        """Append a turn."""
        self.head.turn_count += 1
        content = turn.content[: self._policy.turn_chars]
        kept = turn if len(content) == len(turn.content) else msgspec.structs.replace(turn, content=content)
        self.parts.put(self._part(self.head.turn_count), encode(kept))

    def turns(self, first: int, last: int) -> list[UserTurn]:
        """Turns of the ring by the user's numbers, both ends included, without erased ones."""
        return [_decode_turn(data) for data in self._places(first, last) if data]

    def sessions(self, first: int, last: int) -> set[str]:
        """Sessions of the turns of the ring by the user's numbers, both ends included."""
        return {_decode_place(data).session_id for data in self._places(first, last) if data}

    def replace_text(self, session_id: str, turn: int, content: str) -> None:
        """Correct the text of a turn, if it is in the ring."""
        for number in range(self.head.low, self.head.turn_count + 1):
            data = self._data(number)
            if data and _decode_place(data) == TurnPlace(session_id, turn):
                text = content[: self._policy.turn_chars]
                self.parts.put(self._part(number), encode(msgspec.structs.replace(_decode_turn(data), content=text)))

    def at_hand(self) -> list[SessionTurns]:
        """The short-term tier: turns in no episode, made or requested, and at least the last `keep_turns`."""
        head = self.head
        first = min(head.requested, head.turn_count - self._policy.keep_turns) + 1
        return runs([_decode_place(data) for data in self._places(first, head.turn_count) if data])

    def release(self) -> None:
        """Remove turns that are in an episode and not among the last `keep_turns`."""
        head = self.head
        keep_from = max(1, min(head.compressed, head.turn_count - self._policy.keep_turns) + 1)
        for number in range(head.low, keep_from):
            self.parts.drop(self._part(number))
        head.low = max(head.low, keep_from)

    def erase_turns(self, session_id: str) -> None:
        """Empty the slots of a session's turns: other turns keep their numbers, and episodes their ranges."""
        for number in range(self.head.low, self.head.turn_count + 1):
            data = self._data(number)
            if data and _decode_place(data).session_id == session_id:
                self.parts.put(self._part(number), b"")

    def _places(self, first: int, last: int) -> list[bytes]:
        numbers = range(max(first, self.head.low), last + 1)
        return [self.parts.get(f"t{number % _RING}") or b"" for number in numbers]

    def _data(self, number: int) -> bytes:
        data = self.parts.get(self._part(number))
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return data

    def _part(self, number: int) -> str:
        """Name of a turn's part: numbers in the ring are consecutive and at most its size, so no two share a slot."""
        return f"t{number % _RING}"


def runs(turns: Sequence[TurnPlace]) -> list[SessionTurns]:
    """Turns grouped by session, in their order: consecutive turns of one session are one entry."""
    found: list[SessionTurns] = []
    for turn in turns:
        if found and found[-1].session_id == turn.session_id:
            found[-1].turns.append(turn.turn)
        else:
            found.append(SessionTurns(turn.session_id, [turn.turn]))
    return found
