"""Time of matching a message against twenty topics."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time

from msgspec.structs import replace

from jobs.lab.bench.figures import BenchFailed
from jobs.lab.bench.topics_walk import TWENTY, LongSession, messages_of, store
from models.policy import Policy
from models.session.topics.changes import TopicChange
from models.session.topics.conversation_topics import ConversationTopics, Message
from models.session.topics.matching import TopicVectors
from models.session.topics.state import Damage
from models.state.parts import Parts


class _Nobody:
    """Is told and does nothing."""

    def topic(self, change: TopicChange) -> None:
        """Topics that begin are no news here."""

    def damage(self, damage: Damage) -> None:
        """Nothing is packed here."""


def match_ms(sessions: Sequence[LongSession], policy: Policy) -> list[float]:
    """CPU milliseconds to find the nearest of twenty topics, which are read from their parts each time.

    Raises:
        BenchFailed: There are not twenty-one user messages.
    """
    said = [message for session in sessions for message in messages_of(session) if message.vector is not None]
    if len(said) <= TWENTY:
        raise BenchFailed(f"{len(said)} user messages are too few to match against {TWENTY} topics: give more files")
    stored = _twenty_topics(said[:TWENTY], policy)
    return [_nearest_ms(stored, message, policy) for message in said[TWENTY:]]


def _twenty_topics(messages: Sequence[Message], policy: Policy) -> dict[str, bytes]:
    """State with a topic for each message."""
    apart = replace(policy.topics, similarity_threshold=1.0, active_bonus=0.0, merge_similarity=1.0)
    stored: dict[str, bytes] = {}
    for number, message in enumerate(messages):
        parts = Parts(stored)
        topics = ConversationTopics(parts, apart)
        _begin(topics, message, number)
        topics.flush()
        store(stored, parts.changes())
    return stored


def _begin(topics: ConversationTopics, message: Message, number: int) -> None:
    topics.add(message, lambda: f"topic-{number}", _Nobody())


def _nearest_ms(stored: dict[str, bytes], message: Message, policy: Policy) -> float:
    vector = message.vector
    assert vector is not None, "only messages with a vector are matched"  # noqa: S101
    topics = ConversationTopics(Parts(stored), policy.topics)
    began = thread_time()
    cosines = TopicVectors(topics.store).cosines(vector)
    max(cosines, key=cosines.__getitem__)
    return (thread_time() - began) * 1000
