"""Hybrid search: turns and episodes by their words and by their meaning, within a scope.

Both rankings come from the vector store, filtered by the scope, without payloads; `models.retrieval.fusion` merges
them; only payloads of results are read. That read is filtered by the scope again, so that a turn of another user in
the same session is never returned as a neighbour of a result.

Measured on Qdrant Edge, two shared cores, 100,000 turns of 100 users: ten turns of one user take 2 to 3 ms; of the
whole app 19 ms, as both searches scan all turns.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from msgspec import Struct

from models.events import EpisodeCompressed
from models.policy.retrieval import RetrievalPolicy
from models.retrieval import fusion
from models.retrieval.lexical import query_vector
from models.retrieval.ranker import CandidateTurn, formula, ranker_of
from models.text.language import language_of
from streams.index.between import ALWAYS, Between
from streams.index.collections import EPISODES, TURNS, RememberedTurn, parted
from streams.index.event_points import REST, Collection
from streams.index.turn_traits import candidate_of
from streams.ports import Condition, Embedder, Keys, Query, SearchHit, Vectors, VectorStore, Where


@dataclass(frozen=True, slots=True)
class Scope:
    """Search scope: every field that is not None must match.

    Attributes:
        app_ids: Any of these apps; None for every app.
        user_id: This user. The same id in two apps is two users: name the app where it matters.
        session_id: This session. The same id in two apps is two sessions: likewise.
        between: Time range. It names no user, so it is no scope by itself.

    Raises:
        ValueError: All fields are None, which would select every user's memory, or no app is allowed.
    """

    app_ids: tuple[str, ...] | None = None
    user_id: str | None = None
    session_id: str | None = None
    between: Between = ALWAYS

    def __post_init__(self) -> None:
        if self.app_ids is None and self.user_id is None and self.session_id is None:
            raise ValueError("a scope names an app, a user or a session")
        if self.app_ids is not None and not self.app_ids:
            raise ValueError("a scope allows at least one app, or names none")

    def where(self) -> dict[str, Condition]:
        """The store's conditions, the narrowest first, without `between`, which `turns` and `episodes` add.

        >>> Scope(app_ids=("a", "b"), user_id="u").where()
        {'user_id': 'u', 'app_id': ('a', 'b')}
        """
        named = {"session_id": self.session_id, "user_id": self.user_id, "app_id": self.app_ids}
        return {field: value for field, value in named.items() if value is not None}

    def turns(self) -> Where:
        """Conditions for turns."""
        return {**self.where(), **self.between.turns()}

    def episodes(self) -> Where:
        """Conditions for episodes."""
        return {**self.where(), **self.between.spans()}


_Event = TypeVar("_Event", bound=Struct)


class Ranking(StrEnum):
    """How points are ranked: by words, by meaning, or both."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn with its score: the higher the better, comparable within one answer only.

    Attributes:
        signals: Contribution of each signal of the ranker; their sum is the score.
    """

    turn: RememberedTurn
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


class TurnCandidates(NamedTuple):
    """Candidate turns by the formula of `fusion`, best first.

    Attributes:
        turns: Input of the ranker.
        hits: Hit of each turn.
    """

    turns: list[CandidateTurn]
    hits: list[SearchHit]


class HybridSearch:
    """Search over the collections of `streams.index`, each query within a scope.

    A query without a known word is ranked by meaning alone, one without a vector by words alone; one with neither
    finds nothing. The embedder must be the one that made the stored vectors. All methods raise `StoreUnavailable` when
    the store does not answer.
    """

    def __init__(self, store: VectorStore, embedder: Embedder, policy: RetrievalPolicy | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._policy = policy or RetrievalPolicy()
        learned = ranker_of(embedder.name) if self._policy.learned else None
        self._ranker = learned or formula(self._policy)

    async def turns(self, query: str, scope: Scope, top_k: int) -> list[FoundTurn]:
        """Turns that match the query, best first."""
        found = await self.candidates(query, scope, top_k)
        return [
            FoundTurn(TURNS.event_of(found.hits[each.row].payload), each.score, each.contributions)
            for each in self._ranker.rank(query, found.turns, top_k)
        ]

    async def candidates(self, query: str, scope: Scope, top_k: int) -> TurnCandidates:
        """Candidate turns for the query: up to the number that is reranked or `top_k`, whichever is greater."""
        where, vector = scope.turns(), await self._vector(query)
        lexical, dense = await self._rankings(TURNS.name, query, vector, where, top_k)
        scores, average = fusion.fuse(lexical, dense, self._policy)
        best = fusion.carried({parted(key): score for key, score in scores.items()}, average, self._policy)
        wanted, found = max(top_k, self._policy.reranked), TurnCandidates([], [])
        # Some places beside a turn that was found are empty: a session has an end.
        for first in range(0, len(best.of), wanted):
            part = best.part(first, wanted)
            keys = [f"{session}_{turn}" for (session, turn), _, _ in part]
            hits = {hit.key: hit for hit in await self._read(keys, vector, where)}
            for key, each in zip(keys, part, strict=True):
                if hit := hits.get(key):
                    found.turns.append(candidate_of(*each, hit))
                    found.hits.append(hit)
            if len(found.turns) >= max(top_k, wanted // 2):
                break
        return found

    async def episodes(self, query: str, scope: Scope, top_k: int) -> list[tuple[EpisodeCompressed, float]]:
        """Episodes that match the query, best first, each with its fused score."""
        return await self.events(EPISODES, query, scope.episodes(), top_k)

    async def events(
        self,
        collection: Collection[_Event],
        query: str,
        where: Where,
        top_k: int,
        *,
        by: Ranking = Ranking.HYBRID,
    ) -> list[tuple[_Event, float]]:
        """Events of a collection that match the query, best first, with the fused score or that of the one ranking."""
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
        """Keys of points that match the query, best first, with the fused score or that of the one ranking."""
        vector = None if by is Ranking.KEYWORD else await self._vector(query)
        words = "" if by is Ranking.SEMANTIC else query
        lexical, dense = await self._rankings(collection, words, vector, where, top_k)
        if by is Ranking.HYBRID:
            lexical, _ = fusion.fuse(lexical, dense, self._policy)
        return fusion.ranked(dense if by is Ranking.SEMANTIC else lexical)[:top_k]

    async def _vector(self, query: str) -> Vectors | None:
        """Vector of a query, `(dim,)`; None if the embedder knows none of its words."""
        vector = await self._embedder.embed_query(query)
        return vector if vector.any() else None

    async def _rankings(
        self, collection: str, words: str, vector: Vectors | None, where: Where, top_k: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """BM25 and cosines of the best points of each ranking, by key, best first."""
        most = max(self._policy.candidates, top_k)

        async def scores(asked: Query | None) -> dict[str, float]:
            if asked is None:
                return {}
            hits = await self._store.search(collection, asked, where=where, top_k=most, fields=())
            return {hit.key: hit.score for hit in hits}

        return await asyncio.gather(scores(query_vector(words, language_of(words))), scores(vector))

    async def _read(self, keys: Sequence[str], vector: Vectors | None, where: Where) -> list[SearchHit]:
        """Turns by their keys, each with its cosine; keys that are not stored, or do not match, are omitted."""
        hits, whole = list[SearchHit](), keys
        if vector is not None:
            among = {**where, "key": Keys(keys)}
            hits = await self._store.search(TURNS.name, vector, where=among, top_k=len(keys), fields=(REST,))
            whole = [hit.key for hit in hits if REST not in hit.payload]  # of an earlier release
        if whole:
            found, scores = await self._store.read(TURNS.name, whole, where=where), {hit.key: hit.score for hit in hits}
            hits = [hit for hit in hits if REST in hit.payload]
            hits += [SearchHit(key, scores.get(key, 0.0), payload) for key, payload in found.items()]
        return hits
