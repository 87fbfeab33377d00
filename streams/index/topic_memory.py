"""Vector memory of topics: one point per topic of a session, as the last event of it said.

The events of `conversation-topics.v1` say which turns a topic holds; the words are in the turns' own collection
(`session_memory`), so nothing is kept twice.

| what | rule |
|---|---|
| an event again, or an older one after a crash | replaces the point; the log's last event of a topic wins |
| turns above the last event's number | belong to the active topic: the session's state has told of no change since |
| a topic that was evicted or merged away | is found by its id, or when asked for; not in lists |
| … and left more than `keep_turns` turns ago | goes: not one of its turns is in the store any more |
| a topic of a session that was forgotten meanwhile | as if evicted; the session's new topics have the later events |
| a turn that the store no longer has | is missing in the history; the archive has it |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

from models.events import Role, TopicChanged
from streams.index.collections import TOPICS, RememberedTopic, RememberedTurn
from streams.index.session_memory import SessionVectorMemory, forget_before, forget_older
from streams.ports import Condition, Embedder, Vectors, VectorStore

_LARGEST_OFFSET = 2**53


class IndexedTopics(NamedTuple):
    """What is known of one session.

    Attributes:
        kept: Topics that the session's state has, the latest active first.
        since: Lowest offset of their events; what lies below and is not kept is gone.
    """

    kept: list[RememberedTopic]
    since: int


class TopicMemory:
    """Topics of all sessions in one collection; every look-up is filtered to one session.

    Args:
        store: Where points live. It needs no ensuring: the first batch makes the collection.
        embedder: Embeds queries; must be the one whose vectors are added.
        turns: The turns that topics consist of.
        keep_turns: Policy `memory.stored_vectors`: newest turn numbers of each session that `turns` keeps.
        forgotten_after: Policy `session.closed_retention`. A turn this much older than the active topic is of a life
            of the session that was forgotten.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        turns: SessionVectorMemory,
        *,
        keep_turns: int = 1_000,
        forgotten_after: timedelta = timedelta(days=1),
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._turns = turns
        self._keep_turns = keep_turns
        self._forgotten_after = forgotten_after

    # --- writing

    async def add_changes(self, changes: Sequence[tuple[TopicChanged, int]], vectors: Vectors) -> None:
        """Index changes in log order, with vectors `(n_changes, dim)`; durable, and repeating it changes nothing."""
        if not changes:
            return
        await TOPICS.write(self._store, changes, vectors)
        await forget_older(self._store, TOPICS, [event for event, _ in changes], self._keep_turns, {"kept": 0})

    async def forget_before(self, erased: Mapping[str, int]) -> None:
        """Remove topics of sessions that were erased, by the offset of the erasure in `turns.v1`."""
        await forget_before(self._store, TOPICS, erased, "source_offset")

    # --- reading

    async def topics(self, session_id: str) -> IndexedTopics:
        """The session's topics; none for a session without events."""
        newest = await TOPICS.latest(self._store, {"session_id": session_id}, 1)
        if not newest or newest[0].session_topics == 0:
            return IndexedTopics([], _LARGEST_OFFSET)
        # Events of topics that were forgotten with their session are older than those of all that it has now.
        kept = await TOPICS.latest(self._store, {"session_id": session_id, "kept": 1}, newest[0].session_topics)
        since = min((topic.event_offset for topic in kept), default=_LARGEST_OFFSET)
        active = next((n for n, topic in enumerate(kept) if topic.active), None)
        if active is not None:
            kept[active] = await self._with_turns_after(kept[active], newest[0].turn)
        return IndexedTopics(sorted(kept, key=lambda topic: topic.last_active_at, reverse=True), since)

    async def gone(self, session_id: str, found: IndexedTopics, limit: int) -> list[RememberedTopic]:
        """Topics that the session had beside those found, the latest change first."""
        kept = {topic.topic_id for topic in found.kept}
        newest = await TOPICS.latest(self._store, {"session_id": session_id}, limit + len(kept))
        return [_as_gone(topic) for topic in newest if topic.topic_id not in kept][:limit]

    async def topic(self, session_id: str, topic_id: str | None = None) -> RememberedTopic | None:
        """One topic, kept or not, or the active one; None if there is none."""
        found = await self.topics(session_id)
        for topic in found.kept:
            if topic.active if topic_id is None else topic.topic_id == topic_id:
                return topic
        if topic_id is None:
            return None
        gone = await TOPICS.latest(self._store, {"session_id": session_id, "topic_id": topic_id}, 1)
        return _as_gone(gone[0]) if gone else None

    async def find_similar(
        self, query: str, session_id: str, top_k: int = 5, *, include_gone: bool = False
    ) -> list[RememberedTopic]:
        """Topics of the session most like the query by title and summary, best first; none for one without words."""
        found = await self.topics(session_id)
        where: dict[str, Condition] = {"session_id": session_id}
        if not include_gone:
            where |= {"kept": 1, "event_offset": (found.since, _LARGEST_OFFSET)}
        kept = {topic.topic_id: topic for topic in found.kept}
        near = await TOPICS.nearest(self._store, self._embedder, query, where, top_k)
        return [replace(kept.get(topic.topic_id) or _as_gone(topic), similarity=score) for topic, score in near]

    async def messages(self, topic: RememberedTopic, *, include_packed: bool) -> list[RememberedTurn]:
        """The topic's messages that the store has, in order of time."""
        numbers = [*topic.active_turns, *(topic.packed_turns if include_packed else ())]
        found = await self._turns.turns_numbered(topic.session_id, numbers)
        return sorted(found, key=lambda turn: (turn.timestamp, turn.turn))

    async def _with_turns_after(self, topic: RememberedTopic, turn: int) -> RememberedTopic:
        """The active topic with the turns that no event has named."""
        earliest = topic.created_at - self._forgotten_after
        after = [said for said in await self._turns.turns_after(topic.session_id, turn) if said.timestamp > earliest]
        if not after:
            return topic
        return replace(
            topic,
            active_turns=[*topic.active_turns, *(said.turn for said in after)],
            message_count=topic.message_count + len(after),
            access_count=topic.access_count + sum(said.role == Role.USER for said in after),
            last_active_at=max(topic.last_active_at, *(said.timestamp for said in after)),
        )


def _as_gone(topic: RememberedTopic) -> RememberedTopic:
    return replace(topic, active=False, kept=False)
