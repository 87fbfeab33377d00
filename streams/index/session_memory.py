"""Vector memory of sessions: their turns as points, found again by likeness (risk memory, layer 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from models.events import Position, TopicChanged, Turn
from streams.index.collections import TURNS, RememberedTurn
from streams.index.event_points import Collection
from streams.ports import Condition, Embedder, PayloadValue, Point, Vectors, VectorStore

_LARGEST_TURN = 2**53
_NEAR_TURNS = 8
"""Numbers this near are read in one go, with what lies between them: a call costs more than a few turns."""


class SessionVectorMemory:
    """Turns of all sessions in one collection; every look-up is filtered to one session.

    Rules for input out of the ordinary:

    * A turn sent again replaces its point: of several with one number the last counts, in a batch as across batches,
      so that the index does not depend on how the log was cut into batches. (A session's state keeps the first: what
      was scored is not undone.) A replay ends on the same last one.
    * Each session keeps the newest `keep_turns` turn numbers. The rest goes after each batch that brings a turn beyond
      them, once per session and batch. A turn that comes later than that stays until the session's next batch.
    * A turn without text is kept for readers of the last turns; it resembles nothing.
    """

    def __init__(self, store: VectorStore, embedder: Embedder, *, keep_turns: int = 1_000) -> None:
        self._store = store
        self._embedder = embedder
        self._keep_turns = keep_turns

    async def add_turns(
        self,
        turns: Sequence[Turn],
        vectors: Vectors,
        risks: Sequence[float | None] | None = None,
        places: Sequence[Position | None] | None = None,
    ) -> None:
        """Index turns in log order, with vectors `(n_turns, dim)`; durable on return, repeating it changes nothing."""
        if not turns:
            return
        missing = [None] * len(turns)
        parts = zip(turns, vectors, risks or missing, places or missing, strict=True)
        await self._store.upsert(TURNS.name, [_point(*each) for each in parts])
        await forget_older(self._store, TURNS, turns, self._keep_turns, {})

    async def find_similar(self, query: str, session_id: str, top_k: int = 5) -> list[RememberedTurn]:
        """Past turns of the session most like the query, best first; none for a query without words."""
        where = {"session_id": session_id}
        near = await TURNS.nearest(self._store, self._embedder, query, where, top_k)
        return [replace(turn, similarity=cosine) for turn, cosine in near]

    async def last_turns(self, session_id: str, last: int = 10) -> list[RememberedTurn]:
        """The newest turns of the session, oldest first."""
        return (await TURNS.latest(self._store, {"session_id": session_id}, last, by="turn"))[::-1]

    async def turns_numbered(self, session_id: str, numbers: Iterable[int]) -> list[RememberedTurn]:
        """These turns of the session, in order of number; those that are not here are left out."""
        wanted = set(numbers)
        found = await asyncio.gather(*[self._between(session_id, low, high) for low, high in _runs(wanted)])
        return [turn for run in found for turn in run if turn.turn in wanted]

    async def turns_after(self, session_id: str, turn: int) -> list[RememberedTurn]:
        """Turns of the session with a higher number, in order of number."""
        return await self._between(session_id, turn + 1, _LARGEST_TURN)

    async def _between(self, session_id: str, low: int, high: int) -> list[RememberedTurn]:
        where: dict[str, Condition] = {"session_id": session_id, "turn": (low, high)}
        limit = min(high - low + 1, self._keep_turns)
        return (await TURNS.latest(self._store, where, limit, by="turn"))[::-1]

    async def forget_before(self, erased: Mapping[str, int]) -> None:
        """Remove turns of sessions that were erased, by the offset of the erasure: what came later is of a new life."""
        await forget_before(self._store, TURNS, erased, "event_offset")

    async def count(self) -> int:
        """Turns of all sessions."""
        return await self._store.count(TURNS.name)


async def forget_before(store: VectorStore, collection: Collection[Any], erased: Mapping[str, int], by: str) -> None:
    """Remove what a collection has of sessions, of each what lies below an offset in the field `by`."""
    for session_id, offset in erased.items():
        await store.delete(collection.name, where={"session_id": session_id}, below=(by, offset))


async def forget_older(
    store: VectorStore,
    collection: Collection[Any],
    events: Iterable[Turn | TopicChanged],
    keep_turns: int,
    where: Mapping[str, Condition],
) -> None:
    """Remove what a collection has of the events' sessions below the newest turn numbers of each."""
    newest: dict[str, int] = {}
    for event in events:
        newest[event.session_id] = max(event.turn, newest.get(event.session_id, 0))
    deletions = (
        store.delete(collection.name, where={"session_id": session_id, **where}, below=("turn", turn - keep_turns + 1))
        for session_id, turn in newest.items()
        if turn >= keep_turns
    )
    await asyncio.gather(*deletions)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Lowest and highest number of each run of numbers that are near each other.

    >>> _runs({3, 4, 9, 40})
    [(3, 9), (40, 40)]
    """
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number - runs[-1][1] <= _NEAR_TURNS:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _point(turn: Turn, vector: Vectors, risk: float | None, place: Position | None) -> Point:
    extra: dict[str, PayloadValue] = {"risk": turn.risk if turn.risk is not None else risk}
    if place is None:
        return TURNS.point(turn, None, vector, extra=extra)
    return TURNS.point(turn, place.offset, vector, extra={**extra, "partition": place.partition})
