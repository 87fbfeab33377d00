"""Memory of users: episodes found by likeness, facts by exact filter, and how far each memory is (seed 002).

| what | rule |
|---|---|
| an event again | replaces the points it wrote; the log's last event of a fact counts |
| a fact's earlier values | points of their own, by the value and the times between which it was true |
| an episode's embedding | the event's, if this embedder made it and its length is 1; else made anew from the summary |
| a fact with the cause `erased` | what the event does not name of it goes |
| another app's user of the same id | another user; a look-up that names no app sees them all |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import hypot

import numpy as np

from models.events import EpisodeCompressed, FactCategory, FactChanged, UserMemoryChanged
from models.events.user import SessionTurns
from streams.index.session_memory import COLLECTION as TURNS
from streams.index.session_memory import turn_key
from streams.index.user_points import (
    PERMILLE,
    RememberedEpisode,
    RememberedFact,
    RememberedUser,
    episode_point,
    fact_points,
    remembered_episode,
    remembered_fact,
    remembered_user,
    user_point,
)
from streams.inference.episode_embeddings import episode_vectors
from streams.ports import Condition, Embedder, Vectors, VectorStore

__all__ = ["RememberedEpisode", "RememberedFact", "RememberedUser", "UserMemory", "episode_rows", "remembered_episode"]

EPISODES = "episodes"
FACTS = "facts"
USERS = "users"
_MOST_FACTS = 1_000
_MOST_PAST = 10_000
_MOST_APPS = 1_000
_LENGTH_TOLERANCE = 0.01
"""Embeddings in events are rounded."""


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
        points = [episode_point(event, offset, row) for (event, offset), row in zip(events, vectors, strict=True)]
        await self._store.upsert(EPISODES, points)

    async def add_facts(self, events: Sequence[tuple[FactChanged, int]]) -> None:
        """Index facts with their earlier values; durable on return, and repeating it changes nothing."""
        if not events:
            return
        blank = np.zeros(self._embedder.dim, dtype=np.float32)
        await self._store.upsert(FACTS, [point for event in events for point in fact_points(*event, blank)])
        for event, offset in events:
            if event.cause == "erased":
                # Earlier values that it no longer names are to be forgotten; of a fact that went, all.
                where: dict[str, Condition] = {"user_id": event.user_id, "app_id": event.app_id, "key": event.key}
                below = ("event_offset", offset if event.active else offset + 1)
                await self._store.delete(FACTS, where=where | {"category": event.category.value}, below=below)

    async def add_standings(self, events: Sequence[tuple[UserMemoryChanged, int]]) -> None:
        """Note how far users are. Call it after their facts: who waits for it will read them."""
        if events:
            blank = np.zeros(self._embedder.dim, dtype=np.float32)
            await self._store.upsert(USERS, [user_point(event, offset, blank) for event, offset in events])

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
            where["importance_permille"] = (-(-round(min_importance * 1_000_000) // PERMILLE), PERMILLE)
        if category is not None:
            where["category"] = category.value
        limit = _MOST_PAST if include_past else _MOST_FACTS
        found = [
            remembered_fact(p) for p in await self._store.latest(FACTS, where=where, by="event_offset", limit=limit)
        ]
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
        return None if latest is None else remembered_user(latest)


def _of(app_id: str | None, user_id: str) -> dict[str, Condition]:
    return {"user_id": user_id} if app_id is None else {"user_id": user_id, "app_id": app_id}
