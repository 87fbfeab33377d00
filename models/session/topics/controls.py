"""Control events of topics beside the turns: ratings, tags, feedback, summaries, restores (topic memory).

Nothing happens for a topic that is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.events import FeedbackGiven, TopicAdjusted, TopicControl, TopicRestored, TopicsRecalled, TopicSummarised
from models.events.base import NAME_CHARS
from models.policy.topic import TopicPolicy
from models.session.topics.compaction import SENTENCE_CHARS, pack_history, release_oldest
from models.session.topics.conversation_topics import ConversationTopics, title_of
from models.session.topics.recall import recall
from models.session.topics.state import Announcer, TopicChange, TopicState, TopicSummary, in_time_order
from models.state.buffer import BufferedTurn, encode_turn
from models.text.summary import EXTRACTIVE


class Moment(Struct, frozen=True, gc=False):
    """When a control event is taken.

    Attributes:
        now: The partition's event time.
        last_turn: Highest turn number of the session.
        vector: Quantised embedding of a restored topic's title and summary, `(256,)`, or None.
    """

    now: datetime
    last_turn: int
    vector: NDArray[np.float32] | None = None


def take_control(topics: ConversationTopics, event: TopicControl, moment: Moment, emit: Announcer) -> None:
    """Do what a control event says."""
    match event:
        case TopicAdjusted():
            _adjust(topics, event, emit)
        case FeedbackGiven():
            _learn(topics, event, emit)
        case TopicSummarised():
            _replace_summary(topics, event, emit)
        case TopicRestored():
            _restore(topics, event, moment, emit)
        case TopicsRecalled():
            recall(topics, event.topics, moment.now, emit)


def _adjust(topics: ConversationTopics, event: TopicAdjusted, emit: Announcer) -> None:
    """Take an importance and tags from outside."""
    slot = topics.find(event.topic_id)
    if slot is None:
        return
    topic = topics.store.touch(slot)
    if event.importance is not None:
        topic.importance = event.importance
    if event.tags is not None:
        topic.tags = _tags(event.tags, topics.policy)
    emit.topic(TopicChange(slot, "adjusted"))


def _learn(topics: ConversationTopics, event: FeedbackGiven, emit: Announcer) -> None:
    """Move the importance of a topic: `i += rate * |value| * (target - i)`, with target 1 for praise, else 0."""
    if event.topic_id is None and event.turn is not None:
        slot = topics.holding(event.turn)
    else:
        slot = topics.find(event.topic_id)
    if slot is None:
        return
    topic = topics.store.touch(slot)
    target = 1.0 if event.value > 0 else 0.0
    topic.importance += topics.policy.feedback_rate * abs(event.value) * (target - topic.importance)
    emit.topic(TopicChange(slot, "learnt"))


def _replace_summary(topics: ConversationTopics, event: TopicSummarised, emit: Announcer) -> None:
    """Take a slower summariser's text; the next compaction updates it."""
    slot = topics.find(event.topic_id)
    if slot is None or topics.store.summary(slot) is None:
        return
    if event.packed is not None and event.packed < topics.store.topic(slot).away:
        return  # the summary says more by now, and that was asked for, too
    topics.store.touch(slot)
    text = event.summary[: _summary_chars(topics.policy)]
    topics.store.put_summary(slot, TopicSummary(text, event.summarised_by[:NAME_CHARS]))
    emit.topic(TopicChange(slot, "summarised"))


def _restore(topics: ConversationTopics, event: TopicRestored, moment: Moment, emit: Announcer) -> None:
    """Take an evicted topic back from the archive, as one that was just accessed.

    Of its messages those that the session has counted and no kept topic holds, each once; nothing without any.
    """
    messages = _restored_messages(topics, event, moment)
    if topics.find(event.topic_id) is not None or not messages:
        return
    store, policy = topics.store, topics.policy
    slot = store.add(
        TopicState(
            topic_id=event.topic_id,
            title=title_of(event.title, policy.title_chars),
            created_at=min(event.created_at.astimezone(UTC), moment.now),
            last_active_at=moment.now,
            importance=event.importance,
            access_count=event.access_count + 1,
            message_count=len(messages),
            compact_above=policy.max_messages,
            tags=_tags(event.tags, policy),
        )
    )
    for message in messages[-policy.keep_messages :]:
        store.put_message(slot, message.turn, encode_turn(message))
    pack_history(store, slot, messages[: -policy.keep_messages], emit)
    release_oldest(store, slot)
    if event.summary:
        store.put_summary(slot, TopicSummary(event.summary[: _summary_chars(policy)], EXTRACTIVE))
    if moment.vector is not None:
        topics.vectors.learn(slot, moment.vector)
    if topics.active is None:
        store.activate(slot)
    emit.topic(TopicChange(slot, "restored"))
    topics.evict_faded(moment.now, emit)


def _restored_messages(topics: ConversationTopics, event: TopicRestored, moment: Moment) -> list[BufferedTurn]:
    held = {turn for slot in topics.store.index.slots for turn in topics.store.turns(slot)}
    chars = topics.policy.message_chars
    by_turn = {
        m.turn: BufferedTurn(m.turn, m.role, m.content[:chars], m.timestamp, None)
        for m in event.messages
        if m.turn not in held and m.turn <= moment.last_turn
    }
    return in_time_order(by_turn.values())


def _summary_chars(policy: TopicPolicy) -> int:
    return policy.summary_sentences * (SENTENCE_CHARS + 1)


def _tags(tags: Sequence[str], policy: TopicPolicy) -> list[str]:
    clean = dict.fromkeys(tag.strip()[: policy.tag_chars] for tag in tags)
    clean.pop("", None)
    return list(clean)[: policy.tags]
