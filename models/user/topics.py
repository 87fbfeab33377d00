"""Topics of a user between sessions, which live by the topics' own half-life (topic memory, §3).

A session that ends tells of its topics, and the next one that the user speaks in gets those that have not faded:
numbers, and words only where it is the session that said them. A topic that an erased session had a part in is
forgotten.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct, structs

from models.events.topic import KeptTopic
from models.policy.topic import TopicPolicy
from models.state.decay import priority
from models.state.entity import decoder, digest_of, encode
from models.state.parts import Parts

_PREFIX: Final = "k:"
_SESSIONS: Final = 64
"""Sessions of a topic that are known. The share of an earlier one in the embedding is below a thousandth."""
_NO_WORDS: Final[dict[str, Any]] = {"title": "", "tags": [], "summary": "", "summarised_by": ""}
_WITH_TURNS: Final = 8
"""The latest of them, whose turns are known: a session that goes on under its id finds them again."""


class UserTopic(Struct, array_like=True):
    """A topic; fields as in `models.events.topic.KeptTopic`, of all sessions together."""

    kept: KeptTopic
    """With the words of the latest session."""
    sessions: dict[str, list[int]] = {}
    """Digest of a session's id → the topic's turns in it, the latest last."""


_decode = decoder(UserTopic)


class UserTopics:
    """Topics of one user over the parts of its state."""

    def __init__(self, parts: Parts, policy: TopicPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def keep(self, session_id: str, news: list[KeptTopic], now: datetime) -> None:
        """Add what a session tells; beyond the policy's `most_topics` those of the lowest priority go."""
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
        """Topics for a session, the highest priority first; what has faded is forgotten."""
        living, here = [], digest_of(session_id)
        for worth, topic in self._ranked(now):
            if worth < self._policy.min_priority:
                self._parts.drop(_PREFIX + topic.kept.topic_id)
            else:
                words = {} if [*topic.sessions][-1] == here else _NO_WORDS
                living.append(structs.replace(topic.kept, turns=topic.sessions.get(here, []), **words))
        return living[: self._policy.recalled]

    def erase(self, session_id: str) -> None:
        """Forget topics that a session had a part in: their embedding is made of what it said, too."""
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
