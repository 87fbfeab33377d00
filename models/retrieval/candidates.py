"""Everything of a project that can be found, as arrays, and its relevance to a query (Retrieval System).

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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from models.events.project_items import ConversationChunk, ProjectEpisode, ProjectMemory
from models.policy.project import ProjectPolicy
from models.retrieval.lexical import terms
from models.retrieval.relevance import (
    Findable,
    Found,
    FoundKind,
    RetrievalFilters,
    RetrievalQuery,
    Scores,
    searched_text,
)
from models.retrieval.tfidf import Floats, Match, TfIdf

_KINDS: Final[Mapping[FoundKind, int]] = {"memory": 1, "episode": 2, "chunk": 3}
_NOTHING: Final = 0
_FOR_EVER: Final = np.inf
_ROW: Final = np.dtype(
    [
        ("kind", "i1"),
        ("archived", "?"),
        ("importance", "f8"),
        ("valid_from", "f8"),
        ("valid_until", "f8"),
        ("began", "f8"),
        ("ended", "f8"),
        ("touched", "f8"),
        ("accesses", "f8"),
        ("known", "f8"),
        ("replaced", "f8"),
        ("words", "i8"),
    ]
)
"""Times are seconds since 1970, UTC. A row of kind 0 is free, or not known at the time asked for; one of a negative
kind is what was known from `known` until `replaced`. `words`: document of its text, numbered as its first row."""
_FEWEST_ROWS: Final = 64
Mask = NDArray[np.bool_]


class Scored(Struct, frozen=True):
    """All candidates' relevance to a query; rows of what must not be found are among them.

    Attributes:
        total: Shape `(n_rows,)`.
        parts: In the order of `Scores`, shape `(5, n_rows)`.
    """

    total: Floats
    parts: Floats


class Candidates:
    """Memories, episodes and chunks of one project, a row each; of a memory further ones, for what was known before.

    Rows of what went are used again.
    """

    def __init__(self, policy: ProjectPolicy) -> None:
        self._policy = policy
        self._words = TfIdf()
        self._rows = np.zeros(_FEWEST_ROWS, _ROW)
        self._found: list[Found | None] = []
        self._row_of: dict[Found, int] = {}
        self._past_of: dict[Found, list[int]] = {}
        self._free: list[int] = []
        self._labelled: dict[tuple[str, str], set[int]] = {}
        self._items: dict[int, Findable] = {}

    def put(self, item: Findable, versions: Sequence[tuple[datetime, Findable]] = ()) -> None:
        """Take it in, or what changed of it; words are only read again if they changed.

        Args:
            item: As it is.
            versions: Since when what was known of it, the oldest first; last the item itself. None: always as it is.
        """
        found, known = found_of(item), versions or [(_first_known(item), item)]
        rows = [*self._past_of.pop(found, ()), *([self._row_of[found]] if found in self._row_of else ())]
        while len(rows) > len(known):
            self._give(rows.pop())
        rows += [self._new_row(found) for _ in known[len(rows) :]]
        texts = [searched_text(each) for _, each in known]
        firsts = [0]
        for n in range(1, len(rows)):
            firsts.append(firsts[-1] if texts[n] == texts[n - 1] else n)
        times = [*(since.timestamp() for since, _ in known), _FOR_EVER]
        for n, (row, (_, each)) in enumerate(zip(rows, known, strict=True)):
            is_past = n < len(rows) - 1
            self._read(row, texts[n] if firsts[n] == n else None, counts=firsts[n] == firsts[-1])
            self._items[row] = each
            kind, *values = _row(each)
            self._rows[row] = -kind if is_past else kind, *values, *times[n : n + 2], rows[firsts[n]]
            for label in _labels(each):
                self._labelled.setdefault(label, set()).add(row)
        *past, self._row_of[found] = rows
        if past:
            self._past_of[found] = past

    def _read(self, row: int, text: str | None, *, counts: bool) -> None:
        """Make a row ready for what it will hold: its words, None if another row has them."""
        before = self._items.get(row)
        if before is not None:
            self._unlabel(row)
        if text is None:
            self._words.drop(row)
        elif before is None or searched_text(before) != text or not self._words.has(row, counts=counts):
            self._words.put(row, terms(text), counts=counts)

    def drop(self, found: Found) -> None:
        """Forget it; nothing if it is not there."""
        if (row := self._row_of.pop(found, None)) is not None:
            for each in (row, *self._past_of.pop(found, ())):
                self._give(each)

    def _give(self, row: int) -> None:
        self._unlabel(row)
        del self._items[row]
        self._rows[row]["kind"], self._found[row] = _NOTHING, None
        self._words.drop(row)
        self._free.append(row)

    def known_by(self, then: datetime) -> Candidates:
        """All as it was known at a time, counted as if nothing had come since; to be asked before anything changes."""
        rows, at = self._rows[: len(self._found)].copy(), then.timestamp()
        there = (rows["kind"] != _NOTHING) & (rows["known"] <= at) & (at < rows["replaced"])
        rows["kind"] = np.where(there, np.abs(rows["kind"]), _NOTHING)
        documents = np.zeros(len(rows), np.bool_)
        documents[rows["words"][there]] = True
        other = Candidates(self._policy)
        other._rows, other._found, other._items, other._labelled = rows, self._found, self._items, self._labelled
        other._row_of = {found: row for row in np.flatnonzero(there).tolist() if (found := self._found[row])}
        other._words = self._words.among(documents)
        return other

    def find(self, item_id: str) -> Findable | None:
        """The memory or episode of this id, if it is there."""
        row = self._row_of.get(("memory", item_id), self._row_of.get(("episode", item_id)))
        return None if row is None else self._items[row]

    def held(self, at: datetime) -> list[ProjectMemory]:
        """Memories that held at a time, by id."""
        rows, moment = self._rows[: len(self._found)], at.timestamp()
        holds = (rows["kind"] == _KINDS["memory"]) & (rows["valid_from"] <= moment) & (moment < rows["valid_until"])
        items = (self._items[row] for row in np.flatnonzero(holds).tolist())
        return sorted((item for item in items if isinstance(item, ProjectMemory)), key=lambda each: each.id)

    def item(self, found: Found) -> Findable:
        """The whole of it.

        Raises:
            KeyError: It is not there.
        """
        return self._items[self._row_of[found]]

    def score(self, query: RetrievalQuery, at: datetime) -> Scored:
        """Relevance of each row."""
        size, long_term = len(self._found), self._policy.long_term
        rows = self._rows[:size]
        match, words = self._match(query, size), rows["words"]
        age_s = np.maximum(at.timestamp() - rows["touched"], 0.0)
        boost, most = long_term.access_boost, long_term.access_boost_most
        parts = np.stack(
            [
                match.similarity[words] if match else np.zeros(size),
                match.share[words] if match else np.zeros(size),
                np.exp2(-age_s / long_term.half_life.total_seconds()),
                rows["importance"],
                np.minimum(rows["accesses"] * (boost / max(boost, most) if boost else 0.0), 1.0),
            ]
        )
        weights = np.array(astuple(query.weights or self._policy.retrieval.weights))
        if match is None:
            weights[:2] = 0.0
        summed = weights.sum()
        total = (weights[:, np.newaxis] * parts).sum(axis=0)  # no BLAS: its threads wait for each other's cores
        return Scored(total / summed if summed else total, parts)

    def allowed(self, query: RetrievalQuery, at: datetime) -> Mask:
        """Which rows the query's filters and times let through, shape `(n_rows,)`."""
        filters, rows = query.filters, self._rows[: len(self._found)]
        moment = (query.valid_at or at).timestamp()
        kinds = [_KINDS["memory"]]
        kinds += [_KINDS["episode"]] * filters.include_episodic + [_KINDS["chunk"]] * filters.include_chunks
        mask: Mask = np.isin(rows["kind"], kinds)
        mask &= (rows["valid_from"] <= moment) & (moment < rows["valid_until"])
        if not filters.include_archived and query.valid_at is None and query.known_at is None:
            mask &= ~rows["archived"]
        if filters.min_importance is not None:
            mask &= (rows["kind"] != _KINDS["chunk"]) & (rows["importance"] >= filters.min_importance)
        if filters.date_from is not None:
            mask &= rows["ended"] >= filters.date_from.timestamp()
        if filters.date_to is not None:
            mask &= rows["began"] <= filters.date_to.timestamp()
        for labels in _asked(filters):
            mask &= self._with(labels)
        return mask

    def best(self, scored: Scored, allowed: Mask, *, threshold: float, top_k: int) -> list[tuple[Found, float]]:
        """The most relevant that may be found, with their scores; of equal ones the first by kind and id."""
        rows = np.flatnonzero(allowed & (scored.total >= threshold))
        if len(rows) > top_k:
            least = np.partition(scored.total[rows], -top_k)[-top_k]
            rows = rows[scored.total[rows] >= least]
        named = [(found, float(scored.total[row])) for row in rows.tolist() if (found := self._found[row])]
        return sorted(named, key=lambda each: (-each[1], each[0]))[:top_k]

    def scores(self, scored: Scored, found: Found) -> Scores:
        """What one's relevance is made of."""
        return Scores(*scored.parts[:, self._row_of[found]].tolist())

    def lets(self, allowed: Mask, found: Found) -> bool:
        """Whether it is there and let through."""
        row = self._row_of.get(found)
        return row is not None and bool(allowed[row])

    def _match(self, query: RetrievalQuery, size: int) -> Match | None:
        text, around = terms(query.text), terms(query.context)
        if not text:
            text, around = around, []
        if not text:
            return None
        match = self._words.match(text, size)
        if not around:
            return match
        boost, share = self._words.match(around, size), self._policy.retrieval.context_weight
        return Match(
            np.minimum(match.similarity + share * boost.similarity, 1.0),
            np.minimum(match.share + share * boost.share, 1.0),
        )

    def _with(self, labels: Iterable[tuple[str, str]]) -> Mask:
        rows = set[int]().union(*(self._labelled.get(label, ()) for label in labels))
        mask = np.zeros(len(self._found), np.bool_)
        mask[list(rows)] = True
        return mask

    def _new_row(self, found: Found) -> int:
        if self._free:
            row = self._free.pop()
            self._found[row] = found
        else:
            row = len(self._found)
            self._found.append(found)
            if row >= len(self._rows):
                self._rows = np.resize(self._rows, 2 * row)
        self._row_of[found] = row
        return row

    def _unlabel(self, row: int) -> None:
        for label in _labels(self._items[row]):
            rows = self._labelled[label]
            rows.discard(row)
            if not rows:
                del self._labelled[label]


def found_of(item: Findable) -> Found:
    """Kind and id of it."""
    match item:
        case ProjectMemory():
            return "memory", item.id
        case ProjectEpisode():
            return "episode", item.id
        case ConversationChunk():
            return "chunk", item.id


def _row(item: Findable) -> tuple[int, bool, float, float, float, float, float, float, int]:
    kind = _KINDS[found_of(item)[0]]
    if isinstance(item, ProjectMemory):
        said = [source.said_at for source in item.sources] or [item.created_at]
        began = ended = min(said)
        until = _FOR_EVER if item.valid_until is None else item.valid_until.timestamp()
        accessed = [item.last_accessed_at] if item.last_accessed_at > item.created_at else []
        touched = max(said + accessed)
        archived, importance, valid_from, accesses = item.archived, item.importance, item.valid_from, item.access_count
    else:
        began, ended, valid_from, until, archived = item.started_at, item.ended_at, item.started_at, _FOR_EVER, False
        touched, importance, accesses = item.ended_at, 0.0, 0
    if isinstance(item, ProjectEpisode):
        importance, accesses = item.significance, item.access_count
        touched = max(touched, item.last_accessed_at)
    times = (valid_from.timestamp(), until, began.timestamp(), ended.timestamp(), touched.timestamp())
    return kind, archived, importance, *times, accesses


def _first_known(item: Findable) -> datetime:
    if isinstance(item, ProjectMemory):
        return min(item.created_at, item.recorded_at)
    return item.ended_at if isinstance(item, ProjectEpisode) else item.created_at


def _labels(item: Findable) -> set[tuple[str, str]]:
    if not isinstance(item, ProjectMemory):
        return set()
    return {("type", item.type), ("category", item.category), *(("tag", tag) for tag in item.tags)}


def _asked(filters: RetrievalFilters) -> list[list[tuple[str, str]]]:
    """Labels of which one must be there, for each filter by them."""
    asked: dict[str, Sequence[str]] = {
        "type": filters.memory_types,
        "category": filters.categories,
        "tag": filters.tags,
    }
    return [[(name, value) for value in values] for name, values in asked.items() if values]
