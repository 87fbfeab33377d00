"""Topics between a session and its user's memory: what a closing session tells of them, and how they come back.

Only numbers come to another session: a topic's id, counts, times and embedding. Its words stay where they were said,
and are found by the id; so a session's erasure takes them from everywhere. What came back takes in the topics that the
session began in the meantime and that are about the same, as if it had been there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from models.events.topic import TOPIC_DIMS, KeptTopic
from models.session.topics.compaction import compact_if_due
from models.session.topics.conversation_topics import ConversationTopics, merge
from models.session.topics.state import Announcer, TopicChange, TopicState, TopicSummary, joined, runs_of


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
