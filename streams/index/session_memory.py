"""Vector memory of sessions: their turns as points, found again by likeness (seed 000, layer 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from models.events import Position, Turn
from models.retrieval.lexical import date_words, document_vector
from streams.ports import Condition, Embedder, PayloadValue, Point, Vectors, VectorStore

COLLECTION = "turns"
_MILLISECONDS = 1_000
_LARGEST_TURN = 2**53
_NEAR_TURNS = 8
"""Numbers this near are read in one go, with what lies between them: a call costs more than a few turns."""


@dataclass(frozen=True, slots=True)
class RememberedTurn:
    """A turn as the vector store has it.

    Attributes:
        similarity: Cosine to the query, -1 to 1; None where there was no query.
        risk: 0-1; None where neither the producer nor the caller gave one.
        partition: Of `turns.v1` where its record stands, and …
        event_offset: … at which offset; None for turns indexed without their places.
    """

    session_id: str
    user_id: str
    app_id: str
    turn: int
    role: str
    timestamp: datetime
    content: str
    risk: float | None
    similarity: float | None = None
    partition: int | None = None
    event_offset: int | None = None


def turn_key(session_id: str, turn: int) -> str:
    """Readable id of a turn's point, `session_turn`. The last `_` divides, so no two turns share one."""
    return f"{session_id}_{turn}"


def turn_of_key(key: str) -> tuple[str, int]:
    """Session and number that a turn's key was made of.

    >>> turn_of_key(turn_key("a_1", 2))
    ('a_1', 2)
    """
    session_id, _, turn = key.rpartition("_")
    return session_id, int(turn)


def turn_words(content: str, timestamp: datetime) -> str:
    """What a turn is found by, beside its meaning: its content, and its date as people name it."""
    return f"{content}\n{date_words(timestamp)}"


class SessionVectorMemory:
    """Turns of all sessions in one collection; every look-up is filtered to one session.

    Rules for input out of the ordinary:

    * A turn sent again replaces its point: of several with one number the last counts, in a batch as across batches,
      so that the index does not depend on how the log was cut into batches. (A session's state keeps the first: what
      was scored is not undone.) A replay ends on the same last one.
    * Each session keeps the newest `keep_turns` turn numbers. The rest goes after each batch that brings a turn beyond
      them, once per session and batch. A turn that comes later than that stays until the session's next batch.
    * A turn without text is kept for readers of the last turns; it resembles nothing.

    Args:
        store: Where points live. It needs no ensuring: the first batch makes the collection.
        embedder: Embeds queries; must be the one whose vectors are added.
        keep_turns: Policy `memory.stored_vectors` (seed 000, MEMORY_LIMITS: 1,000).
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
        """Index a batch; durable on return, and repeating it changes nothing.

        Args:
            turns: Of any sessions, in log order.
            vectors: Their embeddings, `(n_turns, dim)`.
            risks: What the scorer found, for turns whose producer sent no risk.
            places: Where their records stand in `turns.v1`.
        """
        if not turns:
            return
        missing = [None] * len(turns)
        points = [_point(*parts) for parts in zip(turns, vectors, risks or missing, places or missing, strict=True)]
        await self._store.upsert(COLLECTION, points)
        await self._forget_old(turns)

    async def find_similar(self, query: str, session_id: str, top_k: int = 5) -> list[RememberedTurn]:
        """Past turns of the session most like the query, best first; none for a query without words."""
        vectors = await asyncio.to_thread(self._embedder.embed, [query])
        if not vectors.any():
            return []
        hits = await self._store.search(COLLECTION, vectors[0], where={"session_id": session_id}, top_k=top_k)
        return [remembered_turn(hit.payload, hit.score) for hit in hits]

    async def last_turns(self, session_id: str, last: int = 10) -> list[RememberedTurn]:
        """The newest turns of the session, oldest first."""
        payloads = await self._store.latest(COLLECTION, where={"session_id": session_id}, by="turn", limit=last)
        return [remembered_turn(payload) for payload in reversed(payloads)]

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
        payloads = await self._store.latest(COLLECTION, where=where, by="turn", limit=limit)
        return [remembered_turn(payload) for payload in reversed(payloads)]

    async def forget_before(self, erased: Mapping[str, int]) -> None:
        """Remove turns of sessions that were erased, by the offset of the erasure: what came later is of a new life."""
        for session_id, offset in erased.items():
            await self._store.delete(COLLECTION, where={"session_id": session_id}, below=("event_offset", offset))

    async def count(self) -> int:
        """Turns of all sessions."""
        return await self._store.count(COLLECTION)

    async def _forget_old(self, turns: Sequence[Turn]) -> None:
        newest: dict[str, int] = {}
        for turn in turns:
            newest[turn.session_id] = max(turn.turn, newest.get(turn.session_id, 0))
        deletions = (
            self._store.delete(
                COLLECTION, where={"session_id": session_id}, below=("turn", turn - self._keep_turns + 1)
            )
            for session_id, turn in newest.items()
            if turn >= self._keep_turns
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
    payload: dict[str, PayloadValue] = {
        "session_id": turn.session_id,
        "user_id": turn.user_id,
        "app_id": turn.app_id,
        "turn": turn.turn,
        "role": turn.role.value,
        "timestamp": turn.timestamp.isoformat(),
        "event_time_ms": int(turn.timestamp.timestamp() * _MILLISECONDS),
        "content": turn.content,
        "risk": turn.risk if turn.risk is not None else risk,
    }
    if place is not None:
        payload |= {"partition": place.partition, "event_offset": place.offset}
    return Point(
        turn_key(turn.session_id, turn.turn), vector, payload, document_vector(turn_words(turn.content, turn.timestamp))
    )


def remembered_turn(payload: Mapping[str, PayloadValue], similarity: float | None = None) -> RememberedTurn:
    """A turn from what the store has of it."""
    return msgspec.convert({**payload, "similarity": similarity}, RememberedTurn)
