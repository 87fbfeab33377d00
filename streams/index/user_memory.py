"""Memory of users: episodes found by likeness, facts by exact filter, and how far each memory is.

| what | rule |
|---|---|
| an event again | replaces the points it wrote; the log's last event of a fact counts |
| a fact's earlier values | points of their own, by the value and the times between which it was true |
| an episode's embedding | the event's, if this embedder made it and its length is 1; else made anew from the summary |
| a fact with the cause `erased` | what the event does not name of it goes |
| another app's user of the same id | another user; a look-up that names no app sees them all |
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from math import hypot
from typing import Any

import numpy as np
from msgspec.structs import replace

from models.events import EpisodeCompressed, FactCategory, FactChanged, SessionName, UserMemoryChanged
from streams.index.between import ALWAYS, Between
from streams.index.collections import EPISODES, FACTS, TURNS, USERS, permille, turn_key
from streams.index.event_points import point_key
from streams.inference.episode_embeddings import episode_vectors
from streams.ports import Condition, Embedder, Point, Vectors, VectorStore

_MOST_FACTS = 1_000
_MOST_PAST = 10_000
_MOST_APPS = 1_000
_LENGTH_TOLERANCE = 0.01
"""Embeddings in events are rounded."""


async def episode_rows(
    store: VectorStore, turns: str, embedder: Embedder, episodes: Sequence[EpisodeCompressed]
) -> Vectors:
    """Vectors of episodes, `(n_episodes, dim)`, of their turns that are in a collection, else of their summary."""
    texts = []
    for each in episodes:
        runs = [(SessionName(each.app_id, run.session_id), run.turns) for run in each.turns]
        keys = [turn_key(session, turn) for session, numbers in runs for turn in numbers]
        said = [TURNS.event_of(payload).content for payload in (await store.read(turns, keys, where={})).values()]
        texts.append(said if any(text.strip() for text in said) else [each.summary])
    return await asyncio.to_thread(episode_vectors, embedder, texts)


class UserMemory:
    """Episodes, facts and standing of all users, in a collection each; every look-up names a user."""

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    # --- writing

    async def add_episodes(self, events: Sequence[tuple[EpisodeCompressed, int]]) -> None:
        """Index episodes; durable on return, and repeating it changes nothing."""
        vectors = await self._vectors([event for event, _ in events])
        await EPISODES.write(self._store, events, vectors)

    async def add_facts(self, events: Sequence[tuple[FactChanged, int]]) -> None:
        """Index facts with their earlier values; durable on return, and repeating it changes nothing."""
        blank = np.zeros(self._embedder.dim, dtype=np.float32)
        await self._store.upsert(FACTS.name, [point for event in events for point in _points(*event, blank)])
        for event, offset in events:
            if event.cause == "erased":
                # Earlier values that it no longer names are to be forgotten; of a fact that went, all.
                where: dict[str, Condition] = {"user_id": event.user_id, "app_id": event.app_id, "key": event.key}
                below = ("event_offset", offset if event.active else offset + 1)
                await self._store.delete(FACTS.name, where=where | {"category": event.category.value}, below=below)

    async def add_stats(self, events: Sequence[tuple[UserMemoryChanged, int]]) -> None:
        """Note how far users are. Call it after their facts: who waits for it will read them."""
        await USERS.note(self._store, self._embedder.dim, events)

    async def _vectors(self, events: Sequence[EpisodeCompressed]) -> list[Vectors]:
        ready = [self._ready(event) for event in events]
        missing = [event for event, row in zip(events, ready, strict=True) if row is None]
        made = iter(await episode_rows(self._store, TURNS.name, self._embedder, missing) if missing else ())
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
    ) -> list[FactChanged]:
        """Facts by exact filter (user memory, stage 1): active ones first, by importance, the highest first."""
        where = of_user(app_id, user_id)
        if not include_past:
            where["active"] = 1
        if min_importance > 0:
            where["importance_permille"] = (-permille(-min_importance), permille(1))
        if category is not None:
            where["category"] = category.value
        found = await FACTS.latest(self._store, where, _MOST_PAST if include_past else _MOST_FACTS)
        return sorted(found, key=lambda fact: (not fact.active, -fact.importance, fact.key, fact.valid_from))

    async def episodes(self, app_id: str | None, user_id: str, *, limit: int) -> list[EpisodeCompressed]:
        """The latest first."""
        return await EPISODES.latest(self._store, of_user(app_id, user_id), limit, by="turn")

    async def find_episodes(
        self,
        app_id: str | tuple[str, ...] | None,
        user_id: str,
        query: str,
        *,
        max_distance: float,
        top_k: int,
        between: Between = ALWAYS,
    ) -> list[tuple[EpisodeCompressed, float]]:
        """Episodes of a time by likeness (user memory, stage 2), nearest first, each with its cosine distance, 0-2.

        None for a query without words.
        """
        where = {**of_user(app_id, user_id), **between.spans()}
        near = await EPISODES.nearest(self._store, self._embedder, query, where, top_k)
        return [(episode, 1.0 - cosine) for episode, cosine in near if 1.0 - cosine < max_distance]

    async def stats(self, app_id: str | None, user_id: str) -> UserMemoryChanged | None:
        """As last indexed; of several apps' users the one that spoke last. None for a user nothing is known of."""
        # Offsets of different partitions say nothing of who came first.
        return max(await self.standings(app_id, user_id), key=lambda user: user.timestamp, default=None)

    async def standings(self, app_id: str | None, user_id: str) -> list[UserMemoryChanged]:
        """As last indexed, of each app that has a user of this id."""
        return await USERS.latest(self._store, of_user(app_id, user_id), _MOST_APPS if app_id is None else 1)


_NO_MORE: Mapping[str, Any] = {"active": False, "pinned": False, "session_id": "", "turn": -1}


def _points(event: FactChanged, offset: int, blank: Vectors) -> Iterable[Point]:
    """A fact and its earlier values; facts are not searched, so the vector `(dim,)` is zero."""
    yield FACTS.point(event, offset, blank)
    for past in event.history:
        if not past.value:  # it was taken back, but for its being pinned
            continue
        # Which turn said it, the event no longer says.
        then = replace(
            event,
            value=past.value,
            confidence=past.confidence,
            valid_from=past.valid_from,
            valid_until=past.valid_until,
            extracted_by=past.made_by,
            by=past.by,
            cause="contradicted" if past.contradicted else event.cause,
            **_NO_MORE,
        )
        # The times alone do not tell values apart that were said at the same time.
        place = f"{past.valid_from.isoformat()}/{past.valid_until.isoformat()}/{past.value}"
        yield FACTS.point(then, offset, blank, key=f"{point_key(event)}@{place}")


def of_user(app_id: str | tuple[str, ...] | None, user_id: str) -> dict[str, Condition]:
    """Conditions of one user, of an app or any of several; without an app those of every app's user of this id."""
    return {"user_id": user_id} if app_id is None else {"user_id": user_id, "app_id": app_id}
