"""Joining topics that have grown alike (seed 001, future enhancements: topic merging)."""

from __future__ import annotations

from models.policy.topic import TopicPolicy
from models.session.topics.changes import Announcer, TopicChange
from models.session.topics.compaction import release_oldest, take_into_summary
from models.session.topics.matching import TopicVectors
from models.session.topics.state import Topic
from models.session.topics.store import TopicStore
from models.state.buffer import encode_turn
from models.text.summary import Passage


def alike(store: TopicStore, vectors: TopicVectors, slot: int) -> int | None:
    """The topic nearest to one, if the two have grown alike; a `merge_similarity` of 1 never says so."""
    if store.policy.merge_similarity >= 1:
        return None
    near = vectors.near(slot)
    other = max(near, key=near.__getitem__, default=slot)
    return other if other != slot and near[other] >= store.policy.merge_similarity else None


def merge(store: TopicStore, vectors: TopicVectors, slot: int, other: int, tell: Announcer) -> None:
    """Let a topic take another in: its messages, history, summary, counts, tags and embedding."""
    topic, gone = store.touch(slot), store.touch(other)
    if store.index.active == other:
        store.activate(slot)
    tell.topic(TopicChange(other, "merged", f"into {topic.topic_id}", kept=False))
    for message in store.latest_messages(other):
        store.put_message(slot, message.turn, encode_turn(message))
    for block in list(gone.blocks):
        store.move_block(other, block, slot)
    taken = store.summary(other)
    if taken is not None:
        take_into_summary(store, slot, [Passage(taken.text)])
    _add_up(topic, gone, store.policy)
    vectors.merge(slot, other)
    release_oldest(store, slot)
    store.remove(other)
    tell.topic(TopicChange(slot, "merged", f"with {gone.topic_id}"))


def _add_up(topic: Topic, gone: Topic, policy: TopicPolicy) -> None:
    topic.created_at = min(topic.created_at, gone.created_at)
    topic.last_active_at = max(topic.last_active_at, gone.last_active_at)
    topic.importance = max(topic.importance, gone.importance)
    topic.message_count += gone.message_count
    topic.access_count += gone.access_count
    topic.released += gone.released
    topic.tags = list(dict.fromkeys([*topic.tags, *gone.tags]))[: policy.tags]
    # Unpacked messages are packed again: kept at hand, they would grow with every merge and never be compacted.
    topic.compact_above = policy.max_messages
