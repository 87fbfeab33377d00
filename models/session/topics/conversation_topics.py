"""Topic memory of one session: LRU topics with packing and half-life decay. Read `ConversationTopics.add`.

| what | rule |
|---|---|
| a user's message | joins the nearest topic above the threshold, else starts one; without a vector the active one |
| any other message | joins the active topic; without one it starts one, which the first user message then joins |
| a late message | joins like any other, by arrival; inside the topic, messages are in order of time |
| more than 12 unpacked messages | all but the last 4 are packed, and the summary includes them |
| a user returns to a topic | its whole packed history is unpacked |
| more than 20 topics | those whose priority is below 0.05 are evicted, the lowest first; never the active one |
| more than 40 topics | the one with the lowest priority is evicted, as fresh topics have not faded |

**No thrashing.** While a topic stays active its history stays packed. Unpacked, it may grow by as many messages as a
compaction packs (12 - 4) before it is compacted again; so at least eight messages of a topic come between two
unpackings of it, in any order of messages.

**Time** is event time: the partition's clock, which never goes back. A message dated a year ago takes its place in the
topic and does not change the topic's age.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from models.events import Role, TopicCause
from models.policy.topic import TopicPolicy
from models.session.topics.compaction import compact_if_due, release_oldest, take_into_summary, unpack_history
from models.session.topics.matching import TopicVectors
from models.session.topics.state import Announcer, TopicChange, TopicState
from models.session.topics.store import TopicStore
from models.state.buffer import BufferedTurn, encode_turn
from models.state.decay import priority
from models.state.parts import Parts
from models.text.summary import Passage


class CountedMessage(Struct, frozen=True, gc=False):
    """A counted turn as input of topic memory.

    Attributes:
        turn: The turn.
        encoded: The encoded turn.
        vector: Quantised, `(256,)`; None without one.
        importance: The caller's value, 0-1; None without one.
        now: The partition's event time.
    """

    turn: BufferedTurn
    encoded: bytes
    vector: NDArray[np.float32] | None
    importance: float | None
    now: datetime


class ConversationTopics:
    """Working copy of a session's topics over its parts; `flush` before the parts are read."""

    def __init__(self, parts: Parts, policy: TopicPolicy, risky: tuple[str, ...] = ()) -> None:
        self.store = TopicStore(parts, policy, risky)
        self.policy = policy
        self.vectors = TopicVectors(self.store)

    @property
    def active(self) -> int | None:
        """Slot of the active topic; None before the first."""
        return None if self.store.index.active < 0 else self.store.index.active

    def flush(self) -> None:
        """Write changes into the parts."""
        self.store.flush()

    # --- a message

    def add(self, message: CountedMessage, new_id: Callable[[], str], emit: Announcer) -> None:
        """Add a message to its topic, then compact and evict topics that are due."""
        store, active = self.store, self.active
        user = message.turn.role is Role.USER
        slot = self._match(message.vector) if user else active
        if slot is None:
            slot = self._start(message, new_id)
            cause: TopicCause | None = "started"
        else:
            cause = None if slot == active else "returned"
            topic = store.touch(slot)
            if user:
                topic.access_count += 1
            if cause is not None and topic.packed:
                cause = "unpacked"
                unpack_history(store, slot, emit)
        self._put(slot, message, learn=user)
        if cause is not None:
            self._become_active(slot, emit)
            emit.topic(TopicChange(slot, cause))
        compact_if_due(store, slot, emit)
        if cause == "started":
            self.evict_faded(message.now, emit)

    def _match(self, vector: NDArray[np.float32] | None) -> int | None:
        active = self.active
        if active is None or vector is None or not self.vectors.has(active):
            return active
        cosines = self.vectors.cosines(vector)
        cosines[active] += self.policy.active_bonus
        best = max(cosines, key=cosines.__getitem__)
        return best if cosines[best] > self.policy.threshold else None

    def _start(self, message: CountedMessage, new_id: Callable[[], str]) -> int:
        turn = message.turn
        return self.store.add(
            TopicState(
                topic_id=new_id(),
                title=title_of(turn.content, self.policy.title_chars),
                created_at=turn.timestamp,
                last_active_at=turn.timestamp,
                importance=self.policy.importance,
                compact_above=self.policy.max_messages,
            )
        )

    def _put(self, slot: int, message: CountedMessage, *, learn: bool) -> None:
        topic, turn = self.store.touch(slot), message.turn
        topic.title = topic.title or title_of(turn.content, self.policy.title_chars)
        encoded = message.encoded
        if len(turn.content) > self.policy.message_chars:
            encoded = encode_turn(structs.replace(turn, content=self._cut(turn.content)))
        self.store.put_message(slot, turn.turn, encoded)
        topic.message_count += 1
        topic.last_active_at = max(topic.last_active_at, turn.timestamp)
        if message.importance is not None:
            topic.importance = message.importance
        if learn and message.vector is not None:
            self.vectors.learn(slot, message.vector)

    def replace_text(self, turn: int, content: str) -> None:
        """Correct the text of a message if it is not packed; packed text stays."""
        for slot, topic in list(self.store.topics()):
            said = (
                [each for each in self.store.latest_messages(slot) if each.turn == turn] if turn in topic.slots else []
            )
            for each in said:
                self.store.put_message(slot, turn, encode_turn(structs.replace(each, content=self._cut(content))))

    def _cut(self, content: str) -> str:
        chars = self.policy.message_chars
        return content if len(content) <= chars else content[: chars - 1] + "…"

    def _become_active(self, slot: int, emit: Announcer) -> None:
        before = self.active
        self.store.activate(slot)
        if before is not None:
            emit.topic(TopicChange(before, "left"))

    # --- decay

    def evict_faded(self, now: datetime, emit: Announcer) -> None:
        """Above `max_topics` evict faded topics, and above `most_topics` those of the lowest priority."""
        policy, index = self.policy, self.store.index
        if len(index.slots) <= policy.max_topics:
            return
        ranked = sorted(
            (self._priority(topic, now), topic.last_active_at, slot)
            for slot, topic in self.store.topics()
            if slot != index.active
        )
        for worth, _, slot in ranked:
            if worth < policy.min_priority:
                self._evict(slot, f"faded: priority below {policy.min_priority:g}", emit)
            elif len(index.slots) > policy.most_topics:
                self._evict(slot, f"more than {policy.most_topics} topics", emit)

    def _priority(self, topic: TopicState, now: datetime) -> float:
        return priority(topic.importance, now - topic.last_active_at, topic.access_count, self.policy)

    def _evict(self, slot: int, why: str, emit: Announcer) -> None:
        emit.topic(TopicChange(slot, "evicted", why, kept=False))
        self.store.remove(slot)
        self.vectors.forget(slot)

    # --- ending and finding

    def close(self, emit: Announcer) -> None:
        """End the session: send an event of the active topic, as no event names its latest messages."""
        if self.active is not None:
            emit.topic(TopicChange(self.active, "closed"))

    def find(self, topic_id: str | None) -> int | None:
        """Slot of a stored topic, or of the active one."""
        if topic_id is None:
            return self.active
        return next((slot for slot, topic in self.store.topics() if topic.topic_id == topic_id), None)

    def holding(self, turn: int) -> int | None:
        """Slot of the topic that contains a turn, packed or not."""
        return next((slot for slot in self.store.index.slots if turn in self.store.turns(slot)), None)


def title_of(content: str, chars: int) -> str:
    """The first characters, on one line.

    >>> title_of("A  boat with sails", 9)
    'A boat wi'
    """
    return " ".join(content[: 4 * chars].split())[:chars]


def merge(store: TopicStore, vectors: TopicVectors, slot: int, other: int, emit: Announcer) -> None:
    """Merge another topic into one: its messages, history, summary, counts, tags and embedding."""
    topic, gone = store.touch(slot), store.touch(other)
    if store.index.active == other:
        store.activate(slot)
    emit.topic(TopicChange(other, "merged", f"into {topic.topic_id}", kept=False))
    for message in store.latest_messages(other):
        store.put_message(slot, message.turn, encode_turn(message))
    for block in list(gone.blocks):
        store.move_block(other, block, slot)
    taken = store.summary(other)
    if taken is not None:
        take_into_summary(store, slot, [Passage(taken.text)])
    _add_up(topic, gone, store.policy)
    store.put_runs(slot, store.runs(other))
    vectors.merge(slot, other)
    release_oldest(store, slot)
    store.remove(other)
    emit.topic(TopicChange(slot, "merged", f"with {gone.topic_id}"))


def _add_up(topic: TopicState, gone: TopicState, policy: TopicPolicy) -> None:
    topic.created_at = min(topic.created_at, gone.created_at)
    topic.last_active_at = max(topic.last_active_at, gone.last_active_at)
    topic.importance = max(topic.importance, gone.importance)
    topic.message_count += gone.message_count
    topic.access_count += gone.access_count
    topic.title = topic.title or gone.title
    topic.released += gone.released
    topic.tags = list(dict.fromkeys([*topic.tags, *gone.tags]))[: policy.tags]
    # Unpacked messages are packed again: kept at hand, they would grow with every merge and never be compacted.
    topic.compact_above = policy.max_messages
