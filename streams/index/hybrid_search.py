"""Hybrid search: turns, sessions and episodes by their words and by their meaning, within a scope.

Both rankings come from the vector store, filtered by the scope, without payloads; `models.retrieval.fusion` makes one
of them; only what is given back is read. That reading is filtered by the scope once more, so that a turn of somebody
else in the same session is never given for standing beside one that was found.

Measured on Qdrant Edge, two shared cores, 100,000 turns of 100 users: ten turns of one user take 2 to 3 ms; over the
whole app 19 ms, as both searches look at all turns.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec import Struct

from models.events import EpisodeCompressed, SessionName
from models.policy.retrieval import RetrievalPolicy
from models.retrieval import fusion
from models.retrieval.fusion import CarriedTurn, Place
from models.retrieval.lexical import query_vector
from models.retrieval.ranker import CandidateTurn, Ranker, StoreScores, ranker_of
from models.text.language import language_of
from streams.index.between import ALWAYS, Between
from streams.index.collections import EPISODES, TURNS, RememberedTurn, turn_key, turn_of_key
from streams.index.event_points import Collection, Payload
from streams.index.turn_traits import candidate_of
from streams.ports import Condition, Embedder, SearchHit, VectorStore, Where


@dataclass(frozen=True, slots=True)
class Scope:
    """Every field that is not None must hold.

    Attributes:
        app_ids: Any of these apps; None for every app.
        user_id: This user. The same id in two apps is two users: name the app where it matters.
        session_id: This session. The same id in two apps is two sessions: likewise.
        between: When. Names nobody, so it makes no scope by itself.

    Raises:
        ValueError: All fields are None, which would be everybody's memory, or no app is allowed at all.
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
        """The store's conditions, the narrowest first; `between` is for `turns` and `episodes` to say.

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

    def turns(self) -> Where:
        """Conditions of turns."""
        return {**self.where(), **self.between.turns()}

    def episodes(self) -> Where:
        """Conditions of episodes."""
        return {**self.where(), **self.between.spans()}


_Event = TypeVar("_Event", bound=Struct)
_DENSE_TIMES = 4
"""More cosines than are ranked by: the ranker looks at those of neighbours, too."""


class Ranking(StrEnum):
    """By what points are ranked: their words, their meaning, or both."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn with its score: the higher the better, comparable within one answer only.

    Attributes:
        signals: What each signal of the ranker gave; together the score. Empty where the formula ranks.
    """

    turn: RememberedTurn
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


class TurnCandidates(NamedTuple):
    """Turns that may answer, by the formula of `fusion`, best first.

    Attributes:
        turns: What the ranker looks at.
        scores: What the store's rankings say.
        formula: Scores by the formula alone.
        payloads: Of each.
    """

    turns: list[CandidateTurn]
    scores: StoreScores
    formula: list[float]
    payloads: list[Payload]


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
        self._ranker: Ranker | None = ranker_of(embedder.name) if self._policy.learned else None

    async def turns(self, query: str, scope: Scope, top_k: int) -> list[FoundTurn]:
        """Turns that answer the query, best first."""
        found = await self.candidates(query, scope, top_k)
        if self._ranker is None:
            bonuses = fusion.speaker_bonuses(query, [each.speaker for each in found.turns], self._policy.speaker_bonus)
            scores = {row: score + bonus for row, (score, bonus) in enumerate(zip(found.formula, bonuses, strict=True))}
            best = fusion.ranked(scores)[:top_k]
            return [FoundTurn(TURNS.event_of(found.payloads[row]), score) for row, score in best]
        return [
            FoundTurn(TURNS.event_of(found.payloads[each.row]), each.score, each.contributions)
            for each in self._ranker.rank(query, found.turns, found.scores, top_k)
        ]

    async def candidates(self, query: str, scope: Scope, top_k: int) -> TurnCandidates:
        """Turns that may answer the query: at least `top_k`, and as many as are ranked anew."""
        found, average, near = await self._scored(query, scope, top_k, dense_times=_DENSE_TIMES)
        best = fusion.carried(found, average, self._policy)
        read, wanted = list[tuple[CarriedTurn, Payload]](), max(top_k, self._policy.reranked)
        # Some places beside a turn that was found are empty: a session has an end.
        while (short := wanted - len(read)) > 0 and (part := list(islice(best, short + self._policy.neighbour_reach))):
            keys = [turn_key(*each.place) for each in part]
            payloads = await self._store.read(TURNS.name, keys, where=scope.turns())
            read += [(each, payloads[key]) for each, key in zip(part, keys, strict=True) if key in payloads]
        return TurnCandidates(
            [candidate_of(each.place, payload) for each, payload in read],
            StoreScores(found, {each.place: each.carried for each, _ in read}, near),
            [each.lifted for each, _ in read],
            [payload for _, payload in read],
        )

    async def sessions(self, query: str, scope: Scope, top_k: int) -> list[tuple[SessionName, float]]:
        """Sessions that speak of the query, best first, each with its score."""
        found, average, _ = await self._scored(query, scope, top_k)
        carried = fusion.carried(found, average, self._policy)
        of_turns = {each.place: each.carried for each in carried if each.place in found}
        return fusion.ranked(fusion.of_sessions(of_turns, self._policy))[:top_k]

    async def episodes(self, query: str, scope: Scope, top_k: int) -> list[tuple[EpisodeCompressed, float]]:
        """Episodes that speak of the query, best first, each with its fused score."""
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
        lexical, dense = await self._rankings(collection, query, where, top_k, by=by)
        if by is Ranking.HYBRID:
            lexical, _ = fusion.fuse(lexical, dense, self._policy)
        return fusion.ranked(dense if by is Ranking.SEMANTIC else lexical)[:top_k]

    async def _scored(
        self, query: str, scope: Scope, top_k: int, *, dense_times: int = 1
    ) -> tuple[dict[Place, float], float, dict[Place, float]]:
        """Scores of what a ranking has, of an average turn, and cosines: so many times as many as are ranked by."""
        lexical, dense = await self._rankings(TURNS.name, query, scope.turns(), top_k, dense_times=dense_times)
        near = _by_place(dense)
        nearest = dict(islice(near.items(), max(self._policy.candidates, top_k)))
        found, average = fusion.fuse(_by_place(lexical), nearest, self._policy)
        return found, average, near

    async def _rankings(
        self,
        collection: str,
        query: str,
        where: Where,
        top_k: int,
        *,
        by: Ranking = Ranking.HYBRID,
        dense_times: int = 1,
    ) -> tuple[dict[str, float], dict[str, float]]:
        """BM25 and cosines of the best points of each ranking, by key, best first; so many times as many cosines."""
        most = max(self._policy.candidates, top_k)
        words = near = None
        if by is not Ranking.KEYWORD:
            # Embedded first, not meanwhile: threads that want the interpreter at once cost more than they save.
            vector = (await asyncio.to_thread(self._embedder.embed_queries, [query]))[0]
            if vector.any():
                near = self._store.search(collection, vector, where=where, top_k=most * dense_times, fields=())
        if by is not Ranking.SEMANTIC:
            asked = query_vector(query, language_of(query))
            words = self._store.search(collection, asked, where=where, top_k=most, fields=())
        lexical, dense = await asyncio.gather(_scores(words), _scores(near))
        return lexical, dense


async def _scores(hits: Awaitable[Iterable[SearchHit]] | None) -> dict[str, float]:
    return {} if hits is None else {hit.key: hit.score for hit in await hits}


def _by_place(scores: Mapping[str, float]) -> dict[Place, float]:
    return {turn_of_key(key): score for key, score in scores.items()}
