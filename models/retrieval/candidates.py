"""Everything of a project that can be found, as arrays, its relevance to a query, and answers (Retrieval System).

| score | of |
|---|---|
| semantic | TF-IDF similarity to the text, and of the similarity to the context the policy's share on top |
| keyword | share of the text's terms that it has, and of the context's likewise; terms are stemmed |
| recency | 0.5^(time since it was last said or accessed / half-life of long-term memories) |
| importance | as stored; of an episode its significance, of a chunk 0 |
| access | accesses × boost, of the most that they add to a decay factor |

What was said has the time of its saying, whenever it was taken in: a year that is filled in later is a year old, and
is found by its dates. A change by hand says nothing about that. Times of accesses are those of the retrievals.

A text without a term (stop words only, or empty) is replaced by the context; without that, semantic and keyword say
nothing and their weights are left out, so that what is recent and important is found.

What is related to a hit comes along, and what contradicts it is named. What is pulled in gets of its hit's score the
policy's share for each relationship on the way, times the strengths of all of them, so it ranks below its hit. It must
pass the query's filters, not its threshold, and takes one of the places of `top_k`. An episode is related to the
memories that it is linked to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.events.project_items import CONTRADICTS, ConversationChunk, ProjectEpisode, ProjectMemory
from models.policy.project import ProjectPolicy
from models.retrieval.lexical import terms
from models.retrieval.relations import Graph, neighbours
from models.retrieval.relevance import (
    Findable,
    Found,
    FoundKind,
    RetrievalFilters,
    RetrievalQuery,
    RetrievedItem,
    Scores,
    rendered,
    searched_text,
)
from models.retrieval.tfidf import Floats, Match, TfIdf, WeighedDocuments

_KINDS: Final[Mapping[FoundKind, int]] = {"memory": 1, "episode": 2, "chunk": 3}
_FOR_EVER: Final = np.inf
_FEWEST_ROWS: Final = 64
_TIMES: Final = ("valid_from", "valid_until", "began", "ended", "touched")
_ROW: Final = np.dtype(
    [
        ("kind", "i1"),
        ("archived", "?"),
        *((name, "f8") for name in ("importance", "accesses", *_TIMES, "known", "replaced")),
    ]
)
"""Times are seconds since 1970, UTC. A row is what was known from `known` until `replaced`; a free one never."""
Mask = NDArray[np.bool_]


class Candidates:
    """Memories, episodes and chunks of one project, a row each; of a memory further ones, for what was known before.

    Rows of what went are used again.
    """

    def __init__(self, policy: ProjectPolicy) -> None:
        self.policy = policy
        self._words = TfIdf()
        self._rows = np.zeros(0, _ROW)
        self._items: dict[int, Findable] = {}
        self._rows_of: dict[Found, list[int]] = {}
        self._free: list[int] = []
        self._present: WeighedDocuments | None = None

    def put(self, item: Findable, versions: Sequence[tuple[datetime, Findable]] = ()) -> None:
        """Take it in, or what changed of it; words are only read again if they changed.

        Args:
            item: As it is.
            versions: Since when what was known of it, the oldest first; last the item itself. None: always as it is.
        """
        known, rows = versions or [(_first_known(item), item)], self._rows_of.setdefault(found_of(item), [])
        while len(rows) > len(known):
            self._give(rows.pop())
        while len(rows) < len(known):
            rows.append(self._new_row())
        times = [*(since.timestamp() for since, _ in known), _FOR_EVER]
        for n, (row, (_, each)) in enumerate(zip(rows, known, strict=True)):
            text, before = searched_text(each), self._items.get(row)
            if before is None or searched_text(before) != text:
                self._words.put(row, terms(text))
            self._items[row], self._rows[row] = each, (*_row(each), *times[n : n + 2])
        self._present = None

    def drop(self, found: Found) -> None:
        """Forget it; nothing if it is not there."""
        for row in self._rows_of.pop(found, ()):
            self._give(row)
        self._present = None

    def _give(self, row: int) -> None:
        del self._items[row]
        self._rows[row] = np.zeros((), _ROW)
        self._words.put(row)
        self._free.append(row)

    def _new_row(self) -> int:
        if not self._free:
            size = len(self._rows)
            self._rows = np.append(self._rows, np.zeros(max(_FEWEST_ROWS, size), _ROW))
            self._free += reversed(range(size, len(self._rows)))
        return self._free.pop()

    def find(self, item_id: str, known: datetime | None = None) -> Findable | None:
        """The memory or episode of this id as it was known at a time, if it is there."""
        there = self._known(known)
        rows = [self.row(found, there) for found in _named(item_id)]
        return next((self._items[row] for row in rows if row is not None), None)

    def held(self, at: datetime, known: datetime | None = None) -> list[ProjectMemory]:
        """Memories that held at a time, by what was known at another; by id."""
        rows, moment = self._rows, at.timestamp()
        holds = self._known(known) & (rows["valid_from"] <= moment) & (moment < rows["valid_until"])
        items = (self._items[row] for row in np.flatnonzero(holds).tolist())
        return sorted((item for item in items if isinstance(item, ProjectMemory)), key=lambda each: each.id)

    def row(self, found: Found, among: Mask) -> int | None:
        """Its row among these; None if none is."""
        return next((row for row in self._rows_of.get(found, ()) if among[row]), None)

    def item(self, row: int) -> Findable:
        """What stands in a row."""
        return self._items[row]

    def score(self, query: RetrievalQuery, at: datetime) -> ScoredCandidates:
        """Relevance of each row, as it was known at the time that the query names."""
        rows, long_term = self._rows, self.policy.long_term
        there = self._known(query.known_at)
        match, age_s = self._match(query, there), np.maximum(at.timestamp() - rows["touched"], 0.0)
        boost, most = long_term.access_boost, long_term.access_boost_most
        parts = np.stack(
            [
                match.similarity if match else np.zeros(len(rows)),
                match.share if match else np.zeros(len(rows)),
                np.exp2(-age_s / long_term.half_life.total_seconds()),
                rows["importance"],
                np.minimum(rows["accesses"] * (boost / max(boost, most) if boost else 0.0), 1.0),
            ]
        )
        asked = query.weights or self.policy.retrieval.weights
        weights = np.array([getattr(asked, name) for name in Scores.__struct_fields__])
        if match is None:
            weights[:2] = 0.0
        summed = weights.sum()
        total = (weights[:, np.newaxis] * parts).sum(axis=0)  # no BLAS: its threads wait for each other's cores
        return ScoredCandidates(self, total / summed if summed else total, parts, self._allowed(query, at, there))

    def _known(self, known: datetime | None) -> Mask:
        """Rows of what is known, or was at a time, counted as if nothing had come since."""
        rows = self._rows
        there: Mask = rows["replaced"] == _FOR_EVER
        if known is not None:
            there = (rows["known"] <= known.timestamp()) & (known.timestamp() < rows["replaced"])
        return there & (rows["kind"] > 0)

    def _allowed(self, query: RetrievalQuery, at: datetime, there: Mask) -> Mask:
        """Which rows the query's filters and times let through."""
        filters, rows, moment = query.filters, self._rows, (query.valid_at or at).timestamp()
        kinds = [_KINDS["memory"]]
        kinds += [_KINDS["episode"]] * filters.include_episodic + [_KINDS["chunk"]] * filters.include_chunks
        mask: Mask = there & np.isin(rows["kind"], kinds)
        mask &= (rows["valid_from"] <= moment) & (moment < rows["valid_until"])
        if not filters.include_archived and query.valid_at is None and query.known_at is None:
            mask &= ~rows["archived"]
        if filters.min_importance is not None:
            mask &= (rows["kind"] != _KINDS["chunk"]) & (rows["importance"] >= filters.min_importance)
        if filters.date_from is not None:
            mask &= rows["ended"] >= filters.date_from.timestamp()
        if filters.date_to is not None:
            mask &= rows["began"] <= filters.date_to.timestamp()
        if filters.memory_types or filters.categories or filters.tags:
            left = np.flatnonzero(mask)
            mask[left] = [_is_labelled(self._items[row], filters) for row in left.tolist()]
        return mask

    def _match(self, query: RetrievalQuery, there: Mask) -> Match | None:
        text, around = terms(query.text), terms(query.context)
        if not text:
            text, around = around, []
        if not text:
            return None
        if query.known_at is not None:
            words = self._words.among(there)
        else:
            words = self._present = self._present or self._words.among(there)
        match = words.match(text)
        if not around:
            return match
        boost, share = words.match(around), self.policy.retrieval.context_weight
        return Match(
            np.minimum(match.similarity + share * boost.similarity, 1.0),
            np.minimum(match.share + share * boost.share, 1.0),
        )


class ScoredCandidates(NamedTuple):
    """All candidates' relevance to a query; rows of what must not be found are among them.

    Attributes:
        candidates: As they were when they were asked.
        total: Shape `(n_rows,)`.
        parts: In the order of `Scores`, shape `(5, n_rows)`.
        allowed: Rows that the query lets through, shape `(n_rows,)`.
    """

    candidates: Candidates
    total: Floats
    parts: Floats
    allowed: Mask

    def row(self, found: Found) -> int | None:
        """Its row, if it is there and let through."""
        return self.candidates.row(found, self.allowed)

    def best(self, *, threshold: float, top_k: int) -> list[tuple[Found, float]]:
        """The most relevant that may be found, with their scores; of equal ones the first by kind and id."""
        rows = np.flatnonzero(self.allowed & (self.total >= threshold))
        if len(rows) > top_k:
            least = np.partition(self.total[rows], -top_k)[-top_k]
            rows = rows[self.total[rows] >= least]
        named = ((found_of(self.candidates.item(row)), float(self.total[row])) for row in rows.tolist())
        return in_order(named)[:top_k]

    def answer(self, query: RetrievalQuery, hits: list[tuple[Found, float]], graph: Graph) -> list[RetrievedItem]:
        """Hits, with what is related if the query wants them, at most `top_k`.

        Args:
            query: How far relationships are followed, and how many are wanted.
            hits: With scores, the best first.
            graph: Relationships of memories and episodes.
        """
        pulled = self._pulled_in(query.related_depth, hits, graph)
        among = in_order([*hits, *((found, score) for found, (score, _) in pulled.items())])
        return [
            RetrievedItem(
                kind=found[0],
                id=found[1],
                text=rendered(item := self.candidates.item(row)),
                score=score,
                scores=Scores(*self.parts[:, row].tolist()),
                item=item,
                via=pulled[found][1] if found in pulled else "",
                contradicted_by=self._contradicting(found, graph),
            )
            for found, score in among[: query.top_k or self.candidates.policy.retrieval.top_k]
            if (row := self.row(found)) is not None
        ]

    def _pulled_in(self, depth: int, hits: list[tuple[Found, float]], graph: Graph) -> dict[Found, tuple[float, str]]:
        """What is no hit itself, with what it gets of its best hit, and which that is."""
        direct, share = dict(hits), self.candidates.policy.retrieval.neighbour_share
        pulled: dict[Found, tuple[float, str]] = {}
        for (kind, hit), score in hits if depth else ():
            for each in neighbours(graph, hit, depth) if kind != "chunk" else ():
                found = next((of for of in _named(each.id) if self.row(of) is not None), None)
                got = score * each.path_strength * share**each.distance
                if found is not None and found not in direct and got > pulled.get(found, (0.0, ""))[0]:
                    pulled[found] = got, hit
        return pulled

    def _contradicting(self, found: Found, graph: Graph) -> list[str]:
        """Memories that contradict it, either way round, of those that the query lets through."""
        others = neighbours(graph, found[1], 1, types=(CONTRADICTS,)) if found[0] == "memory" else ()
        return sorted(each.id for each in others if any(self.row(of) is not None for of in _named(each.id)))


def in_order(scores: Iterable[tuple[Found, float]]) -> list[tuple[Found, float]]:
    """The best first; of equal ones the first by kind and id."""
    return sorted(scores, key=lambda each: (-each[1], each[0]))


def found_of(item: Findable) -> Found:
    """Kind and id of it."""
    match item:
        case ProjectMemory():
            return "memory", item.id
        case ProjectEpisode():
            return "episode", item.id
        case ConversationChunk():
            return "chunk", item.id


def _named(item_id: str) -> tuple[Found, Found]:
    """What an id may name."""
    return ("memory", item_id), ("episode", item_id)


def _row(item: Findable) -> tuple[float, ...]:
    """Fields of `_ROW` but for those of what is known when."""
    kind, archived, until = _KINDS[found_of(item)[0]], False, _FOR_EVER
    if isinstance(item, ProjectMemory):
        said = [source.said_at for source in item.sources] or [item.created_at]
        began = ended = min(said)
        accessed = [item.last_accessed_at] if item.last_accessed_at > item.created_at else []
        touched, valid_from, archived = max(said + accessed), item.valid_from, item.archived
        importance, accesses = item.importance, item.access_count
        until = _FOR_EVER if item.valid_until is None else item.valid_until.timestamp()
    else:
        began, ended, valid_from, touched = item.started_at, item.ended_at, item.started_at, item.ended_at
        importance, accesses = 0.0, 0
    if isinstance(item, ProjectEpisode):
        importance, accesses = item.significance, item.access_count
        touched = max(touched, item.last_accessed_at)
    times = (each.timestamp() for each in (began, ended, touched))
    return kind, archived, importance, accesses, valid_from.timestamp(), until, *times


def _first_known(item: Findable) -> datetime:
    if isinstance(item, ProjectMemory):
        return min(item.created_at, item.recorded_at)
    return item.ended_at if isinstance(item, ProjectEpisode) else item.created_at


def _is_labelled(item: Findable, filters: RetrievalFilters) -> bool:
    """Whether it is a memory of one of the types, of one of the categories, and with one of the tags asked for."""
    return (
        isinstance(item, ProjectMemory)
        and (not filters.memory_types or item.type in filters.memory_types)
        and (not filters.categories or item.category in filters.categories)
        and (not filters.tags or not set(filters.tags).isdisjoint(item.tags))
    )
