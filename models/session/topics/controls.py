"""Control events of topics beside the turns: ratings, tags, feedback, summaries, restores (topic memory).

Nothing happens for a topic that is not kept.

Topics between a session and its user's memory: only numbers come to another session, a topic's id, counts, times and
embedding. Its words stay where they were said, and are found by the id; so a session's erasure takes them from
everywhere. What came back takes in the topics that the session began in the meantime and that are about the same, as if
it had been there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.events import FeedbackGiven, TopicAdjusted, TopicControl, TopicRestored, TopicsRecalled, TopicSummarised
from models.events.base import NAME_CHARS
from models.events.topic import TOPIC_DIMS, KeptTopic
from models.policy.topic import TopicPolicy
from models.session.topics.compaction import SENTENCE_CHARS, compact_if_due, pack_history, release_oldest
from models.session.topics.conversation_topics import ConversationTopics, merge, title_of
from models.session.topics.state import Announcer, TopicChange, TopicState, TopicSummary, in_time_order, joined, runs_of
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


def take_news(topics: ConversationTopics) -> list[KeptTopic]:
    """What was said of each topic since this was last asked."""
    store, news = topics.store, list[KeptTopic]()
    for slot, topic in list(store.topics()):
        if topic.message_count <= topic.told_messages:
            continue
        embedding = store.embedding(slot) or b"\0"
        news.append(
            KeptTopic(
                topic_id=topic.topic_id,
                created_at=topic.created_at,
                last_active_at=topic.last_active_at,
                importance=topic.importance,
                messages=topic.message_count - topic.told_messages,
                accesses=max(topic.access_count - topic.told_accesses, 0),
                weight=embedding[0],
                embedding=np.frombuffer(embedding[1:], np.int8).tolist(),
                turns=joined(store.runs(slot), runs_of(store.turns(slot))),
                title=topic.title,
                tags=list(topic.tags),
                summary=summary.text if (summary := store.summary(slot)) else "",
                summarised_by=summary.summarised_by if summary else "",
            )
        )
        store.touch(slot)
        topic.told_messages, topic.told_accesses = topic.message_count, topic.access_count
    return news


def recall(topics: ConversationTopics, kept: Sequence[KeptTopic], now: datetime, emit: Announcer) -> None:
    """Take topics in that the user's memory has, those that are here already aside."""
    store = topics.store
    known = {topic.topic_id for _, topic in store.topics()}
    own = [slot for slot, topic in store.topics() if not topic.told_messages]
    came = [_take(topics, each, now, emit) for each in kept[: topics.policy.recalled] if each.topic_id not in known]
    for slot in own:
        near = {other: cosine for other, cosine in topics.vectors.near(slot).items() if other in came}
        best = max(near, key=near.__getitem__, default=slot)
        if best != slot and near[best] > topics.policy.threshold:
            store.touch(best).access_count += 1  # what began it here
            merge(store, topics.vectors, best, slot, emit)
            compact_if_due(store, best, emit)
    topics.evict_faded(now, emit)


def _take(topics: ConversationTopics, kept: KeptTopic, now: datetime, emit: Announcer) -> int:
    runs = kept.turns[: len(kept.turns) // 2 * 2]  # whoever wrote them
    here = sum(last - first + 1 for first, last in zip(runs[::2], runs[1::2], strict=True))
    slot = topics.store.add(
        TopicState(
            topic_id=kept.topic_id,
            title=kept.title,
            tags=kept.tags,
            created_at=min(kept.created_at, now),
            last_active_at=min(kept.last_active_at, now),
            importance=kept.importance,
            message_count=kept.messages,
            access_count=kept.accesses,
            compact_above=topics.policy.max_messages,
            released=kept.messages,
            recalled=max(kept.messages - here, 0),
            told_messages=kept.messages,
            told_accesses=kept.accesses,
        )
    )
    if kept.weight and len(kept.embedding) == TOPIC_DIMS:
        topics.vectors.take(slot, bytes((kept.weight,)) + np.array(kept.embedding, np.int8).tobytes())
    topics.store.put_runs(slot, runs)
    if kept.summary:
        topics.store.put_summary(slot, TopicSummary(kept.summary, kept.summarised_by))
    emit.topic(TopicChange(slot, "restored", "the user came back"))
    return slot
