"""Memories of apps: those of a space, found by likeness and words, and how far each space is (seed 003).

| what | rule |
|---|---|
| an event again | replaces the points it wrote; the log's last event of a slot counts |
| a memory that went | its points go, also those in other apps' names |
| sharing taken back | the points of all apps go before those of the present ones are written |
| another app's memory of the same number | another memory; a look-up names one app |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import numpy as np

from models.events import AppMemoriesChanged, AppMemoryChanged, space_key
from streams.index.app_points import (
    RememberedMemory,
    RememberedSpace,
    memory_points,
    remembered_memory,
    remembered_space,
    space_point,
)
from streams.index.hybrid_search import HybridSearch, Ranking
from streams.index.user_points import point_key
from streams.ports import Condition, Embedder, VectorStore

__all__ = ["AppMemories", "RememberedMemory", "RememberedSpace"]

MEMORIES = "memories"
SPACES = "spaces"
_MOST_MEMORIES = 1_000
"""Of a space with what is shared with it; the policy keeps fifty at the most."""


class AppMemories:
    """Memories and standings of all spaces, in a collection each; a look-up of memories names a space.

    Args:
        store: Where points live. It needs no ensuring: the first batch makes the collections.
        embedder: Embeds memories and queries.
    """

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._search = HybridSearch(store, embedder)

    # --- writing

    async def add_changes(self, events: Sequence[tuple[AppMemoryChanged, int]]) -> None:
        """Index memories and let those go that went; durable on return, and repeating it changes nothing.

        Args:
            events: The last of each slot, with the offsets of their records.
        """
        present = [(event, offset) for event, offset in events if event.active]
        if gone := tuple(point_key(event) for event, _ in events if not event.active):
            await self._store.delete(MEMORIES, where={"owner_key": gone})
        if not present:
            return
        vectors = await asyncio.to_thread(self._embedder.embed, [event.content for event, _ in present])
        keys = tuple(point_key(event) for event, _ in present)
        await self._store.delete(MEMORIES, where={"owner_key": keys, "owned": 0})
        points = [
            point
            for (event, offset), row in zip(present, vectors, strict=True)
            for point in memory_points(event, offset, row)
        ]
        await self._store.upsert(MEMORIES, points)

    async def add_standings(self, events: Sequence[tuple[AppMemoriesChanged, int]]) -> None:
        """Note how far spaces are. Call it after their memories: who waits for it will read them."""
        if events:
            blank = np.zeros(self._embedder.dim, dtype=np.float32)
            await self._store.upsert(SPACES, [space_point(event, offset, blank) for event, offset in events])

    # --- reading

    async def memories(self, app_id: str, user_id: str = "", *, shared: bool = False) -> list[RememberedMemory]:
        """Memories of a space, the latest changed first.

        Args:
            app_id: The app.
            user_id: Whose space in it; empty for the app's own.
            shared: Whether with those that other apps share with it.
        """
        return await self._latest(_of(app_id, user_id, shared=shared))

    async def shared_with(self, app_id: str, user_id: str = "") -> list[RememberedMemory]:
        """Memories of other apps' spaces that are shared with this one: of the apps' own, or of the same user's."""
        return await self._latest({**_of(app_id, user_id, shared=True), "owned": 0})

    async def find(
        self,
        app_id: str,
        user_id: str,
        query: str,
        *,
        mode: Literal["keyword", "semantic", "hybrid"] = "hybrid",
        top_k: int = 5,
        shared: bool = False,
    ) -> list[tuple[RememberedMemory, float]]:
        """Memories of a space that answer the query, best first, each with its score.

        The score is BM25, the cosine, or both fused; comparable within one answer only.
        """
        where = _of(app_id, user_id, shared=shared)
        best = await self._search.keys(MEMORIES, query, where, top_k, by=Ranking(mode))
        payloads = await self._store.read(MEMORIES, [key for key, _ in best], where=where)
        return [(remembered_memory(payloads[key]), score) for key, score in best if key in payloads]

    async def standing(self, app_id: str, user_id: str = "") -> RememberedSpace | None:
        """As last indexed; None for a space that nothing happened to."""
        key = space_key(app_id, user_id)
        found = await self._store.read(SPACES, [key], where={"app_id": app_id})
        return remembered_space(found[key]) if key in found else None

    async def spaces(self, limit: int) -> list[RememberedSpace]:
        """Standings of all spaces, at most `limit`."""
        found = await self._store.latest(SPACES, where={}, by="event_offset", limit=limit)
        return [remembered_space(payload) for payload in found]

    async def _latest(self, where: dict[str, Condition]) -> list[RememberedMemory]:
        found = await self._store.latest(MEMORIES, where=where, by="event_offset", limit=_MOST_MEMORIES)
        memories = [remembered_memory(payload) for payload in found]
        return sorted(memories, key=lambda memory: (memory.updated_at, memory.memory_id), reverse=True)


def _of(app_id: str, user_id: str, *, shared: bool) -> dict[str, Condition]:
    where: dict[str, Condition] = {"app_id": app_id, "user_id": user_id}
    return where if shared else {**where, "owned": 1}
