"""Memories of apps: those of a space, found by likeness and words, and how far each space is.

| what | rule |
|---|---|
| an event again | replaces the points it wrote; the log's last event of a slot counts |
| a memory that went | its points go, also those in other apps' names |
| a memory that is shared | a point more for each app that may read it, filed under that app; it tells neither of
conversations and users nor of conflicts and other apps |
| sharing taken back | the points of all apps go before those of the present ones are written |
| another app's memory of the same number | another memory; a look-up names one app |

So the condition that keeps each caller to its own apps (`streams.api.assembly.ScopedStore`) lets through what was
shared, and nothing else.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from models.entities import owner_of
from models.events import AppMemoriesChanged, AppMemoryChanged, space_key
from streams.index.between import ALWAYS, Between
from streams.index.collections import MEMORIES, SPACES
from streams.index.event_points import point_key
from streams.index.hybrid_search import HybridSearch, Ranking
from streams.ports import Condition, Embedder, PayloadValue, Point, Vectors, VectorStore

SearchMode = Literal["keyword", "semantic", "hybrid"]
_MOST_MEMORIES = 1_000
"""Of a space with what is shared with it; the policy keeps fifty at the most."""


class AppMemoryIndex:
    """Memories and stats of all spaces, in a collection each; a look-up of memories names a space."""

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._search = HybridSearch(store, embedder)

    # --- writing

    async def add_changes(self, events: Sequence[tuple[AppMemoryChanged, int]]) -> None:
        """Index the last event of each slot, remove what went; durable on return, repeating it changes nothing."""
        present = [(event, offset) for event, offset in events if event.active]
        if gone := tuple(point_key(event) for event, _ in events if not event.active):
            await self._store.delete(MEMORIES.name, where={"owner_key": gone})
        if not present:
            return
        vectors = await asyncio.to_thread(self._embedder.embed, [event.content for event, _ in present])
        keys = tuple(point_key(event) for event, _ in present)
        await self._store.delete(MEMORIES.name, where={"owner_key": keys, "owned": 0})
        points = [point for event, row in zip(present, vectors, strict=True) for point in _points(*event, row)]
        await self._store.upsert(MEMORIES.name, points)

    async def add_stats(self, events: Sequence[tuple[AppMemoriesChanged, int]]) -> None:
        """Note how far spaces are. Call it after their memories: who waits for it will read them."""
        await SPACES.note(self._store, self._embedder.dim, events)

    # --- reading

    async def memories(self, app_id: str, user_id: str = "", *, shared: bool = False) -> list[AppMemoryChanged]:
        """Memories of a space, the latest changed first.

        Args:
            app_id: The app.
            user_id: Whose space in it; empty for the app's own.
            shared: Whether with those that other apps share with it.
        """
        return await self._latest(_of(app_id, user_id, shared=shared))

    async def shared_with(self, app_id: str, user_id: str = "") -> list[AppMemoryChanged]:
        """Memories of other apps' spaces that are shared with this one: of the apps' own, or of the same user's."""
        return await self._latest({**_of(app_id, user_id, shared=True), "owned": 0})

    async def find(
        self,
        app_id: str,
        user_id: str,
        query: str,
        *,
        mode: SearchMode = "hybrid",
        top_k: int = 5,
        shared: bool = False,
        between: Between = ALWAYS,
    ) -> list[tuple[AppMemoryChanged, float]]:
        """Memories of a space, made within a time, that answer the query, best first, each with its score.

        The score is BM25, the cosine, or both fused; comparable within one answer only.
        """
        where = {**_of(app_id, user_id, shared=shared), **between.of("created_at")}
        return await self._search.events(MEMORIES, query, where, top_k, by=Ranking(mode))

    async def stats(self, app_id: str, user_id: str = "") -> AppMemoriesChanged | None:
        """As last indexed; None for a space that nothing happened to."""
        key = space_key(app_id, user_id)
        return (await SPACES.read(self._store, [key], {"app_id": app_id})).get(key)

    async def spaces(
        self, limit: int, app_id: str | None = None, user_id: str | None = None
    ) -> list[AppMemoriesChanged]:
        """Standings of all spaces, or of an app's, or of a user's (empty: apps' own), at most `limit`."""
        asked = {"app_id": app_id, "user_id": user_id}
        return await SPACES.latest(self._store, {name: of for name, of in asked.items() if of is not None}, limit)

    async def _latest(self, where: dict[str, Condition]) -> list[AppMemoryChanged]:
        memories = await MEMORIES.latest(self._store, where, _MOST_MEMORIES)
        return sorted(memories, key=lambda memory: (memory.updated_at, memory.memory_id), reverse=True)


def _of(app_id: str, user_id: str, *, shared: bool) -> dict[str, Condition]:
    where: dict[str, Condition] = {"app_id": app_id, "user_id": user_id}
    return where if shared else {**where, "owned": 1}


def _points(event: AppMemoryChanged, offset: int, vector: Vectors) -> Iterable[Point]:
    """A memory that is there, and one point more for each app it is shared with."""
    yield MEMORIES.point(event, offset, vector)
    extra = replace(event, session_id="", user_id="", related_conversations=[], conflicts_with=[])
    key = point_key(event)
    filed: dict[str, PayloadValue] = {"owned": 0, "owner_key": key, "user_id": owner_of(event)}
    for app in dict.fromkeys(event.shared_with):
        if app != event.app_id:
            shared = replace(extra, shared_with=[app])
            yield MEMORIES.point(shared, offset, vector, key=f"{key}@{app}", extra={**filed, "app_id": app})
