"""Read access to a session's topics (topic memory, API methods). Nothing here changes anything.

Reading is not an access: the half-life of a topic follows what is said in it, not who looks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from models.session.topics.conversation_topics import ConversationTopics
from models.session.topics.decay import MemoryType, half_life, memory_type
from models.session.topics.state import in_time_order
from models.state.buffer import BufferedTurn

_ZERO = timedelta(0)


class TopicStats(TypedDict):
    """The source's statistics of one topic, under the source's names."""

    topic_id: str
    topic_title: str
    active_messages: int
    compressed_messages: int
    total_messages: int
    """Ever; those that were released to the archive are among them."""
    has_summary: bool
    importance_score: float
    access_count: int
    memory_type: MemoryType
    half_life_days: float
    age_seconds: float
    inactive_seconds: float


class ChatMessage(TypedDict):
    """A message as language models take it."""

    role: str
    content: str


class TimedMessage(ChatMessage):
    """A message of a history; Unix time in seconds."""

    timestamp: float


def list_topics(topics: ConversationTopics, now: datetime) -> list[TopicStats]:
    """Statistics of every topic that is kept, the latest active first."""
    found = sorted(topics.store.topics(), key=lambda each: each[1].last_active_at, reverse=True)
    return [_stats(topics, slot, now) for slot, _ in found]


def get_topic_stats(topics: ConversationTopics, now: datetime, topic_id: str | None = None) -> TopicStats | None:
    """Statistics of a topic, or of the active one; None if it is not kept."""
    slot = topics.find(topic_id)
    return None if slot is None else _stats(topics, slot, now)


def get_topic_context(topics: ConversationTopics, topic_id: str | None = None) -> list[ChatMessage]:
    """The summary and the messages at hand of a topic, or of the active one, as chat messages, oldest first."""
    slot = topics.find(topic_id)
    if slot is None:
        return []
    summary = topics.store.summary(slot)
    said = [ChatMessage(role=m.role.value, content=m.content) for m in topics.store.active_messages(slot)]
    return said if summary is None else [summary_message(summary.text), *said]


def get_full_topic_history(
    topics: ConversationTopics, topic_id: str | None = None, *, include_packed: bool = True
) -> list[TimedMessage]:
    """Every message of a topic, or of the active one, in order of time; what was released is in the archive.

    Args:
        topics: Of the session.
        topic_id: None for the active topic.
        include_packed: Whether the packed history is read too; of a damaged one, what is whole.
    """
    slot = topics.find(topic_id)
    if slot is None:
        return []
    store = topics.store
    messages = store.active_messages(slot)
    if include_packed:
        messages += [m for block in store.topic(slot).packed for m in store.read_block(slot, block)[0]]
    return [_timed(message) for message in in_time_order(messages)]


def summary_message(summary: str) -> ChatMessage:
    """A summary as the source gives it to a model."""
    return ChatMessage(role="system", content=f"Topic summary: {summary}")


def _timed(message: BufferedTurn) -> TimedMessage:
    return TimedMessage(role=message.role.value, content=message.content, timestamp=message.timestamp.timestamp())


def _stats(topics: ConversationTopics, slot: int, now: datetime) -> TopicStats:
    topic, policy = topics.store.topic(slot), topics.policy
    return TopicStats(
        topic_id=topic.topic_id,
        topic_title=topic.title,
        active_messages=topic.active_messages,
        compressed_messages=topic.packed_messages,
        total_messages=topic.message_count,
        has_summary=topics.store.summary(slot) is not None,
        importance_score=topic.importance,
        access_count=topic.access_count,
        memory_type=memory_type(topic.access_count, policy),
        half_life_days=half_life(topic.access_count, policy) / timedelta(days=1),
        age_seconds=max(now - topic.created_at, _ZERO).total_seconds(),
        inactive_seconds=max(now - topic.last_active_at, _ZERO).total_seconds(),
    )
