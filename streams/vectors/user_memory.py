"""Memory of users: episodes found by likeness, facts by exact filter, and how far each memory is (seed 002).

| what | rule |
|---|---|
| an event again | replaces the points it wrote; the log's last event of a fact counts |
| a fact's earlier values | points of their own, by the value and the times between which it was true |
| an episode's embedding | the event's, if this embedder made it and its length is 1; else made anew from the summary |
| another app's user of the same id | another user; a look-up that names no app sees them all |
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import hypot
from typing import TypeVar

import msgspec
import numpy as np
import structlog
from aiokafka.structs import ConsumerRecord

from models.codec import decode_output
from models.envelope import key_of
from models.errors import InvalidRecord
from models.events import EpisodeCompressed, FactCategory, FactChanged, OutputEvent, UserMemoryChanged
from models.retrieval.lexical import date_words, document_vector
from models.topics import Topic
from models.user_events import SessionTurns, TurnRef
from streams.embed.episodes import episode_vectors
from streams.ports import Condition, Embedder, PayloadValue, Point, Vectors, VectorStore
from streams.vectors.session_memory import COLLECTION as TURNS
from streams.vectors.session_memory import turn_key

log = structlog.get_logger(__name__)

EPISODES = "episodes"
FACTS = "facts"
USERS = "users"
_MOST_FACTS = 1_000
_MOST_PAST = 10_000
_MOST_APPS = 1_000
_PERMILLE = 1_000
_LENGTH_TOLERANCE = 0.01
"""Embeddings in events are rounded."""
_Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
_Event = TypeVar("_Event", bound=OutputEvent)


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """A fact of a user, active or past; fields as in `models.user_events.FactChanged`."""

    app_id: str
    user_id: str
    category: str
    key: str
    value: str
    confidence: float
    importance: float
    active: bool
    valid_from: datetime
    valid_until: datetime | None
    session_id: str
    turn: int
    extracted_by: str


@dataclass(frozen=True, slots=True)
class RememberedEpisode:
    """Turns of a user that became a summary; fields as in `models.user_events.EpisodeCompressed`.

    Attributes:
        distance: Cosine distance to the query, 0-2; None where there was no query.
    """

    app_id: str
    user_id: str
    episode: int
    first_turn: int
    last_turn: int
    turn_range: str
    summary: str
    summarised_by: str
    key_topics: list[str]
    started_at: datetime
    ended_at: datetime
    turns: list[TurnRef]
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class RememberedUser:
    """How far a user's memory is; fields as in `models.user_events.UserMemoryChanged`."""

    app_id: str
    user_id: str
    turn_count: int
    compressed_turns: int
    short_term: list[TurnRef]
    facts: int
    episodes: int
    seen: dict[str, int]


def latest_of(topic: Topic, records: Iterable[ConsumerRecord], *kinds: type[_Event]) -> list[tuple[_Event, int]]:
    """The last event of these kinds for each key, among records in log order, with the offset of its record.

    A record that is no event of the topic was written by somebody else: it is logged and passed.
    """
    latest: dict[bytes | None, tuple[_Event, int]] = {}
    for record in records:
        try:
            event = decode_output(topic, record.value or b"")
        except InvalidRecord as error:
            log.warning("event_undecodable", topic=topic.name, partition=record.partition, offset=record.offset)
            log.debug("event_undecodable_detail", detail=error.detail)
            continue
        if isinstance(event, kinds):
            latest[record.key] = (event, record.offset)
    return list(latest.values())


async def episode_rows(
    store: VectorStore, turns: str, embedder: Embedder, episodes: Sequence[tuple[Sequence[SessionTurns], str]]
) -> Vectors:
    """Vectors of episodes, `(n_episodes, dim)`, of their turns that are in a collection, else of their summary.

    Args:
        store: Where turns are.
        turns: Their collection.
        embedder: Embeds.
        episodes: Of each its turns and its summary.
    """
    texts = []
    for runs, summary in episodes:
        keys = [turn_key(run.session_id, turn) for run in runs for turn in run.turns]
        said = [str(payload["content"]) for payload in (await store.read(turns, keys, where={})).values()]
        texts.append(said if any(text.strip() for text in said) else [summary])
    return await asyncio.to_thread(episode_vectors, embedder, texts)


class UserMemory:
    """Episodes, facts and standing of all users, in a collection each; every look-up names a user.

    Args:
        store: Where points live. It needs no ensuring: the first batch makes the collections.
        embedder: Embeds queries and what comes without an embedding of its own.
    """

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    # --- writing

    async def add_episodes(self, events: Sequence[tuple[EpisodeCompressed, int]]) -> None:
        """Index episodes; durable on return, and repeating it changes nothing."""
        if not events:
            return
        vectors = await self._vectors([event for event, _ in events])
        points = [_episode_point(event, offset, row) for (event, offset), row in zip(events, vectors, strict=True)]
        await self._store.upsert(EPISODES, points)

    async def add_facts(self, events: Sequence[tuple[FactChanged, int]]) -> None:
        """Index facts with their earlier values; durable on return, and repeating it changes nothing."""
        if events:
            blank = np.zeros(self._embedder.dim, dtype=np.float32)
            await self._store.upsert(FACTS, [point for event in events for point in _fact_points(*event, blank)])

    async def add_standings(self, events: Sequence[tuple[UserMemoryChanged, int]]) -> None:
        """Note how far users are. Call it after their facts: who waits for it will read them."""
        if events:
            blank = np.zeros(self._embedder.dim, dtype=np.float32)
            await self._store.upsert(USERS, [_user_point(event, offset, blank) for event, offset in events])

    async def _vectors(self, events: Sequence[EpisodeCompressed]) -> list[Vectors]:
        ready = [self._ready(event) for event in events]
        missing = [(event.turns, event.summary) for event, row in zip(events, ready, strict=True) if row is None]
        made = iter(await episode_rows(self._store, TURNS, self._embedder, missing) if missing else ())
        return [next(made) if row is None else row for row in ready]

    def _ready(self, event: EpisodeCompressed) -> Vectors | None:
        """The event's own vector. Anybody may write commands: one that no store would take must not stop the index."""
        if event.embedded_by != self._embedder.name or len(event.embedding) != self._embedder.dim:
            return None
        if not abs(hypot(*event.embedding) - 1) < _LENGTH_TOLERANCE:
            return None
        return np.asarray(event.embedding, dtype=np.float32)

    # --- reading

    async def facts(
        self,
        app_id: str | None,
        user_id: str,
        *,
        min_importance: float = 0.0,
        category: FactCategory | None = None,
        include_past: bool = False,
    ) -> list[RememberedFact]:
        """Facts by exact filter (seed 002, stage 1): active ones first, by importance, the highest first."""
        where = _of(app_id, user_id)
        if not include_past:
            where["active"] = 1
        if min_importance > 0:
            where["importance_permille"] = (-(-round(min_importance * 1_000_000) // _PERMILLE), _PERMILLE)
        if category is not None:
            where["category"] = category.value
        limit = _MOST_PAST if include_past else _MOST_FACTS
        found = [_fact(p) for p in await self._store.latest(FACTS, where=where, by="event_offset", limit=limit)]
        return sorted(found, key=lambda fact: (not fact.active, -fact.importance, fact.key, fact.valid_from))

    async def episodes(self, app_id: str | None, user_id: str, *, limit: int) -> list[RememberedEpisode]:
        """The latest first."""
        found = await self._store.latest(EPISODES, where=_of(app_id, user_id), by="turn", limit=limit)
        return [remembered_episode(payload) for payload in found]

    async def find_episodes(
        self, app_id: str | None, user_id: str, query: str, *, max_distance: float, top_k: int
    ) -> list[RememberedEpisode]:
        """Episodes by likeness of their summary (seed 002, stage 2), nearest first; none for a query without words."""
        vectors = await asyncio.to_thread(self._embedder.embed, [query])
        if not vectors.any():
            return []
        hits = await self._store.search(EPISODES, vectors[0], where=_of(app_id, user_id), top_k=top_k)
        return [
            replace(remembered_episode(hit.payload), distance=1.0 - hit.score)
            for hit in hits
            if 1.0 - hit.score < max_distance
        ]

    async def standing(self, app_id: str | None, user_id: str) -> RememberedUser | None:
        """As last indexed; of several apps' users the one that spoke last. None for a user nothing is known of."""
        limit = _MOST_APPS if app_id is None else 1
        found = await self._store.latest(USERS, where=_of(app_id, user_id), by="event_offset", limit=limit)
        # Offsets of different partitions say nothing of who came first.
        latest = max(found, key=lambda payload: int(payload.get("event_time_ms") or 0), default=None)
        return None if latest is None else _user(latest)


def _of(app_id: str | None, user_id: str) -> dict[str, Condition]:
    return {"user_id": user_id} if app_id is None else {"user_id": user_id, "app_id": app_id}


def _key(event: OutputEvent) -> str:
    return (key_of(event) or b"").decode()


def _flat(runs: Sequence[SessionTurns]) -> list[TurnRef]:
    return [TurnRef(run.session_id, turn) for run in runs for turn in run.turns]


def _episode_point(event: EpisodeCompressed, offset: int, vector: _Vector) -> Point:
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "session_id": event.session_id,
        "turn": event.first_turn,
        "event_offset": offset,
        "episode": event.episode,
        "first_turn": event.first_turn,
        "last_turn": event.last_turn,
        "turn_range": event.turn_range,
        "summary": event.summary,
        "summarised_by": event.summarised_by,
        "key_topics": msgspec.json.encode(event.key_topics).decode(),
        "turns": msgspec.json.encode(event.turns).decode(),
        "started_at": event.started_at.isoformat(),
        "ended_at": event.ended_at.isoformat(),
    }
    words = episode_words(event.summary, event.key_topics, event.started_at)
    return Point(_key(event), vector, payload, document_vector(words))


def episode_words(summary: str, key_topics: Sequence[str], started_at: datetime) -> str:
    """What an episode is found by, beside its meaning."""
    return " ".join([summary, *key_topics, date_words(started_at)])


def remembered_episode(payload: Mapping[str, PayloadValue]) -> RememberedEpisode:
    """An episode from what the store has of it."""
    lists = {
        "key_topics": msgspec.json.decode(str(payload["key_topics"])),
        "turns": _flat(msgspec.json.decode(str(payload["turns"]), type=list[SessionTurns])),
    }
    return msgspec.convert({**payload, **lists}, RememberedEpisode)


def _fact_points(event: FactChanged, offset: int, blank: _Vector) -> Iterable[Point]:
    key = _key(event)
    common: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "session_id": event.session_id,
        "turn": event.turn,
        "event_offset": offset,
        "category": event.category.value,
        "key": event.key,
        "importance": event.importance,
        "importance_permille": round(event.importance * 1_000_000) // _PERMILLE,
        "extracted_by": event.extracted_by,
    }
    now: dict[str, PayloadValue] = {
        "value": event.value,
        "confidence": event.confidence,
        "active": int(event.active),
        "valid_from": event.valid_from.isoformat(),
        "valid_until": None if event.valid_until is None else event.valid_until.isoformat(),
    }
    yield Point(key, blank, common | now)
    for past in event.history:
        then: dict[str, PayloadValue] = {
            "value": past.value,
            "confidence": past.confidence,
            "active": 0,
            "valid_from": past.valid_from.isoformat(),
            "valid_until": past.valid_until.isoformat(),
            # Which turn said it and who understood it, the event no longer says.
            "session_id": "",
            "turn": -1,
            "extracted_by": "",
        }
        # The times alone do not tell values apart that were said at the same time.
        place = f"{past.valid_from.isoformat()}/{past.valid_until.isoformat()}/{past.value}"
        yield Point(f"{key}@{place}", blank, common | then)


def _fact(payload: Mapping[str, PayloadValue]) -> RememberedFact:
    return msgspec.convert({**payload, "active": bool(payload["active"])}, RememberedFact)


def _user_point(event: UserMemoryChanged, offset: int, blank: _Vector) -> Point:
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "event_offset": offset,
        "event_time_ms": int(event.timestamp.timestamp() * 1000),
        "turn_count": event.turn_count,
        "compressed_turns": event.compressed_turns,
        "facts": event.facts,
        "episodes": event.episodes,
        "short_term": msgspec.json.encode(event.short_term).decode(),
        "seen": msgspec.json.encode(event.seen).decode(),
    }
    return Point(_key(event), blank, payload)


def _user(payload: Mapping[str, PayloadValue]) -> RememberedUser:
    parts = {
        "short_term": _flat(msgspec.json.decode(str(payload["short_term"]), type=list[SessionTurns])),
        "seen": msgspec.json.decode(str(payload["seen"])),
    }
    return msgspec.convert({**payload, **parts}, RememberedUser)
