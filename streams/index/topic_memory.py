"""Vector memory of topics: one point per topic of a session, as the last event of it said (seed 001).

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

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import structlog
from aiokafka.structs import ConsumerRecord

from models.errors import InvalidRecord
from models.events import Role, TopicChanged
from models.events.topics import CONVERSATION_TOPICS
from models.wire.codec import decode_output
from streams.index.session_memory import RememberedTurn, SessionVectorMemory
from streams.ports import Condition, Embedder, PayloadValue, Point, Vectors, VectorStore

log = structlog.get_logger(__name__)

COLLECTION = "topics"
_LISTS = ("tags", "active_turns", "packed_turns")
"""Fields kept as JSON text: a payload holds scalars."""
_LARGEST_OFFSET = 2**53


@dataclass(frozen=True, slots=True)
class RememberedTopic:
    """A topic as its last event has it; the active one with the turns that followed.

    Attributes:
        kept: Whether the session's state still has it.
        turn: Highest turn number of the session at the event.
        event_offset: Of the event's record. Offsets order the events of a session.
        session_topics: Topics of the session after the event.
        similarity: Cosine to the query, -1 to 1; None where there was no query.
    """

    session_id: str
    topic_id: str
    title: str
    summary: str | None
    active: bool
    kept: bool
    cause: str
    detail: str
    turn: int
    message_count: int
    access_count: int
    importance: float
    tags: list[str]
    created_at: datetime
    last_active_at: datetime
    active_turns: list[int]
    packed_turns: list[int]
    released_messages: int
    session_topics: int
    event_offset: int
    similarity: float | None = None


class LoggedChange(NamedTuple):
    """An event with its place in its partition."""

    event: TopicChanged
    offset: int


def latest_changes(records: Iterable[ConsumerRecord]) -> list[LoggedChange]:
    """The last event of each topic among records in log order.

    A record that is no event was written by somebody else: it is logged and passed, it can never be indexed.
    """
    latest: dict[tuple[str, str], LoggedChange] = {}
    for record in records:
        try:
            event = decode_output(CONVERSATION_TOPICS, record.value or b"")
        except InvalidRecord as error:
            log.warning("topic_undecodable", partition=record.partition, offset=record.offset, detail=error.detail)
            continue
        if isinstance(event, TopicChanged):
            latest[event.session_id, event.topic_id] = LoggedChange(event, record.offset)
    return list(latest.values())


def topic_key(session_id: str, topic_id: str) -> str:
    """Readable id of a topic's point. Session ids hold no control characters, so no two topics share one."""
    return f"{session_id}\n{topic_id}"


class SessionTopics(NamedTuple):
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

    async def add_changes(self, changes: Sequence[LoggedChange], vectors: Vectors) -> None:
        """Index a batch; durable on return, and repeating it changes nothing.

        Args:
            changes: Of any sessions, in log order.
            vectors: Embeddings of title and summary, `(n_changes, dim)`.
        """
        if not changes:
            return
        points = [_point(change, vector) for change, vector in zip(changes, vectors, strict=True)]
        await self._store.upsert(COLLECTION, points)
        await self._forget_gone(changes)

    async def forget_before(self, erased: Mapping[str, int]) -> None:
        """Remove topics of sessions that were erased, by the offset of the erasure in `turns.v1`."""
        for session_id, offset in erased.items():
            await self._store.delete(COLLECTION, where={"session_id": session_id}, below=("source_offset", offset))

    async def _forget_gone(self, changes: Sequence[LoggedChange]) -> None:
        newest: dict[str, int] = {}
        for event, _ in changes:
            newest[event.session_id] = max(event.turn, newest.get(event.session_id, 0))
        deletions = (
            self._store.delete(
                COLLECTION, where={"session_id": session_id, "kept": 0}, below=("turn", turn - self._keep_turns + 1)
            )
            for session_id, turn in newest.items()
            if turn >= self._keep_turns
        )
        await asyncio.gather(*deletions)

    # --- reading

    async def topics(self, session_id: str) -> SessionTopics:
        """The session's topics; none for a session without events."""
        newest = await self._latest({"session_id": session_id}, 1)
        if not newest or newest[0].session_topics == 0:
            return SessionTopics([], _LARGEST_OFFSET)
        # Events of topics that were forgotten with their session are older than those of all that it has now.
        kept = await self._latest({"session_id": session_id, "kept": 1}, newest[0].session_topics)
        since = min((topic.event_offset for topic in kept), default=_LARGEST_OFFSET)
        active = next((n for n, topic in enumerate(kept) if topic.active), None)
        if active is not None:
            kept[active] = await self._with_turns_after(kept[active], newest[0].turn)
        return SessionTopics(sorted(kept, key=lambda topic: topic.last_active_at, reverse=True), since)

    async def gone(self, session_id: str, found: SessionTopics, limit: int) -> list[RememberedTopic]:
        """Topics that the session had, the latest change first.

        Args:
            session_id: The session.
            found: What it has now.
            limit: How many at most.
        """
        kept = {topic.topic_id for topic in found.kept}
        newest = await self._latest({"session_id": session_id}, limit + len(kept))
        return [_as_gone(topic) for topic in newest if topic.topic_id not in kept][:limit]

    async def topic(self, session_id: str, topic_id: str | None = None) -> RememberedTopic | None:
        """One topic, kept or not, or the active one; None if there is none."""
        found = await self.topics(session_id)
        for topic in found.kept:
            if topic.active if topic_id is None else topic.topic_id == topic_id:
                return topic
        if topic_id is None:
            return None
        gone = await self._latest({"session_id": session_id, "topic_id": topic_id}, 1)
        return _as_gone(gone[0]) if gone else None

    async def find_similar(
        self, query: str, session_id: str, top_k: int = 5, *, include_gone: bool = False
    ) -> list[RememberedTopic]:
        """Topics of the session most like the query by title and summary, best first; none for one without words."""
        vectors = await asyncio.to_thread(self._embedder.embed, [query])
        found = await self.topics(session_id)
        if not vectors.any():
            return []
        where: dict[str, Condition] = {"session_id": session_id}
        if not include_gone:
            where |= {"kept": 1, "event_offset": (found.since, _LARGEST_OFFSET)}
        hits = await self._store.search(COLLECTION, vectors[0], where=where, top_k=top_k)
        kept = {topic.topic_id: topic for topic in found.kept}
        return [
            replace(kept.get(str(hit.payload["topic_id"])) or _as_gone(_remembered(hit.payload)), similarity=hit.score)
            for hit in hits
        ]

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

    async def _latest(self, where: Mapping[str, Condition], limit: int) -> list[RememberedTopic]:
        payloads = await self._store.latest(COLLECTION, where=where, by="event_offset", limit=limit)
        return [_remembered(payload) for payload in payloads]


def _point(change: LoggedChange, vector: Vectors) -> Point:
    event = change.event
    payload: dict[str, PayloadValue] = {
        "session_id": event.session_id,
        "user_id": event.user_id,
        "app_id": event.app_id,
        "topic_id": event.topic_id,
        "title": event.title,
        "summary": event.summary,
        "active": int(event.active),
        "kept": int(event.kept),
        "cause": event.cause,
        "detail": event.detail,
        "turn": event.turn,
        "message_count": event.message_count,
        "access_count": event.access_count,
        "importance": event.importance,
        "created_at": event.created_at.isoformat(),
        "last_active_at": event.last_active_at.isoformat(),
        "released_messages": event.released_messages,
        "session_topics": event.session_topics,
        "event_offset": change.offset,
        "source_offset": event.source.offset,
    }
    payload |= {field: msgspec.json.encode(getattr(event, field)).decode() for field in _LISTS}
    return Point(topic_key(event.session_id, event.topic_id), vector, payload)


def _remembered(payload: Mapping[str, PayloadValue]) -> RememberedTopic:
    lists = {field: msgspec.json.decode(str(payload[field])) for field in _LISTS}
    flags = {field: bool(payload[field]) for field in ("active", "kept")}
    return msgspec.convert({**payload, **lists, **flags}, RememberedTopic)


def _as_gone(topic: RememberedTopic) -> RememberedTopic:
    return replace(topic, active=False, kept=False)
