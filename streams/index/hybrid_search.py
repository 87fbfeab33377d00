"""Hybrid search: turns, sessions and episodes by their words and by their meaning, within a scope.

Both rankings come from the vector store, filtered by the scope, without payloads; `models.retrieval.fusion` makes one
of them; only what is given back is read. That reading is filtered by the scope once more, so that a turn of somebody
else in the same session is never given for standing beside one that was found.

Measured on Qdrant Edge, two shared cores, 100,000 turns of 100 users: ten turns of one user take 2 to 3 ms; over the
whole app 19 ms, as both searches look at all turns.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import TypeVar

from msgspec import Struct

from models.events import EpisodeCompressed, SessionName
from models.policy.retrieval import RetrievalPolicy
from models.retrieval import fusion
from models.retrieval.fusion import Place, speaker_bonuses
from models.retrieval.lexical import query_vector
from streams.index.collections import EPISODES, TURNS, RememberedTurn, turn_key, turn_of_key
from streams.index.event_points import Collection
from streams.ports import Condition, Embedder, PayloadValue, SearchHit, VectorStore, Where


@dataclass(frozen=True, slots=True)
class Scope:
    """Every field that is not None must hold.

    Attributes:
        app_ids: Any of these apps; None for every app.
        user_id: This user. The same id in two apps is two users: name the app where it matters.
        session_id: This session. The same id in two apps is two sessions: likewise.

    Raises:
        ValueError: All fields are None, which would be everybody's memory, or no app is allowed at all.
    """

    app_ids: tuple[str, ...] | None = None
    user_id: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        if self.app_ids is None and self.user_id is None and self.session_id is None:
            raise ValueError("a scope names an app, a user or a session")
        if self.app_ids is not None and not self.app_ids:
            raise ValueError("a scope allows at least one app, or names none")

    def where(self) -> dict[str, Condition]:
        """The store's conditions, the narrowest first.

        >>> Scope(app_ids=("a", "b"), user_id="u").where()
        {'user_id': 'u', 'app_id': ('a', 'b')}
        """
        conditions: dict[str, Condition] = {}
        if self.session_id is not None:
            conditions["session_id"] = self.session_id
        if self.user_id is not None:
            conditions["user_id"] = self.user_id
        if self.app_ids is not None:
            conditions["app_id"] = self.app_ids
        return conditions


_Event = TypeVar("_Event", bound=Struct)


class Ranking(StrEnum):
    """By what points are ranked: their words, their meaning, or both."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn with its fused score: the higher the better, comparable within one answer only."""

    turn: RememberedTurn
    score: float


class HybridSearch:
    """Search over the collections of `streams.index`, each query within a scope.

    A query without a known word is ranked by meaning alone, one without a meaning by words alone; one with neither
    finds nothing. The embedder must be the one whose vectors the store holds. All methods raise `StoreUnavailable` when
    the store does not answer.
    """

    def __init__(self, store: VectorStore, embedder: Embedder, policy: RetrievalPolicy | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._policy = policy or RetrievalPolicy()

    async def turns(self, query: str, scope: Scope, top_k: int) -> list[FoundTurn]:
        """Turns that answer the query, best first."""
        scores, own = await self._ranked_turns(query, scope, top_k)
        best, payloads = fusion.ranked(fusion.lifted(scores, own, self._policy)), dict[str, dict[str, PayloadValue]]()
        asked, wanted = 0, max(top_k, self._policy.reranked)
        # Some places beside a turn that was found are empty: a session has an end.
        while len(payloads) < wanted and asked < len(best):
            keys = [turn_key(*place) for place, _ in best[asked : asked + wanted + self._policy.neighbour_reach]]
            payloads |= await self._store.read(TURNS.name, keys, where=scope.where())
            asked += len(keys)
        read = ((payloads.get(turn_key(*place)), score) for place, score in best[:asked])
        found = [(str(payload["content"]), score, payload) for payload, score in read if payload is not None]
        bonuses = speaker_bonuses(query, [content for content, _, _ in found], self._policy.speaker_bonus)
        reranked = sorted(
            [(score + bonus, payload) for (_, score, payload), bonus in zip(found, bonuses, strict=True)],
            key=itemgetter(0),
            reverse=True,
        )
        return [FoundTurn(TURNS.event_of(payload), score) for score, payload in reranked[:top_k]]

    async def sessions(self, query: str, scope: Scope, top_k: int) -> list[tuple[SessionName, float]]:
        """Sessions that speak of the query, best first, each with its score."""
        scores, own = await self._ranked_turns(query, scope, top_k)
        of_turns = {place: scores[place] for place in own}
        return fusion.ranked(fusion.of_sessions(of_turns, self._policy))[:top_k]

    async def episodes(self, query: str, scope: Scope, top_k: int) -> list[tuple[EpisodeCompressed, float]]:
        """Episodes that speak of the query, best first, each with its fused score."""
        return await self.events(EPISODES, query, scope.where(), top_k)

    async def events(
        self,
        collection: Collection[_Event],
        query: str,
        where: Where,
        top_k: int,
        *,
        by: Ranking = Ranking.HYBRID,
    ) -> list[tuple[_Event, float]]:
        """Events of a collection that answer the query, best first, each with its score: fused, or that of the one."""
        best = await self.keys(collection.name, query, where, top_k, by=by)
        found = await collection.read(self._store, [key for key, _ in best], where)
        return [(found[key], score) for key, score in best if key in found]

    async def keys(
        self,
        collection: str,
        query: str,
        where: Where,
        top_k: int,
        *,
        by: Ranking = Ranking.HYBRID,
    ) -> list[tuple[str, float]]:
        """Keys of points that answer the query, best first, each with its score: fused, or that of the one ranking."""
        lexical, dense = await self._rankings(collection, query, where, top_k, by)
        if by is Ranking.HYBRID:
            lexical, _ = fusion.fuse(lexical, dense, self._policy)
        return fusion.ranked(dense if by is Ranking.SEMANTIC else lexical)[:top_k]

    async def _ranked_turns(
        self, query: str, scope: Scope, top_k: int
    ) -> tuple[dict[Place, float], dict[Place, float]]:
        """Scores of turns with what their neighbours give, and those without of the turns that a ranking has."""
        lexical, dense = await self._rankings(TURNS.name, query, scope.where(), top_k)
        fused, average = fusion.fuse(_by_place(lexical), _by_place(dense), self._policy)
        return fusion.carried(fused, average, self._policy), fused

    async def _rankings(
        self,
        collection: str,
        query: str,
        where: Where,
        top_k: int,
        by: Ranking = Ranking.HYBRID,
    ) -> tuple[dict[str, float], dict[str, float]]:
        """BM25 and cosines of the best points of each ranking that is asked for, by key."""
        most = max(self._policy.candidates, top_k)
        words = near = None
        if by is not Ranking.KEYWORD:
            # Embedded first, not meanwhile: threads that want the interpreter at once cost more than they save.
            vector = (await asyncio.to_thread(self._embedder.embed, [query]))[0]
            if vector.any():
                near = self._store.search(collection, vector, where=where, top_k=most, fields=())
        if by is not Ranking.SEMANTIC:
            words = self._store.search(collection, query_vector(query), where=where, top_k=most, fields=())
        lexical, dense = await asyncio.gather(_scores(words), _scores(near))
        return lexical, dense


async def _scores(hits: Awaitable[Iterable[SearchHit]] | None) -> dict[str, float]:
    return {} if hits is None else {hit.key: hit.score for hit in await hits}


def _by_place(scores: Mapping[str, float]) -> dict[Place, float]:
    return {turn_of_key(key): score for key, score in scores.items()}
