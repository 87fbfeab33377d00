"""Searchable items of a project, as arrays, and their relevance to a query (Retrieval System).

| score | of |
|---|---|
| semantic | TF-IDF similarity to the text, plus the policy's share of the similarity to the context |
| keyword | share of the text's terms in the item, plus likewise for the context; terms are stemmed |
| recency | 0.5^(time since it was last stated or accessed / half-life of long-term memories) |
| importance | as stored; of an episode its significance, of a chunk 0 |
| access | accesses × boost, as a share of the largest boost of a decay factor |

Statements have the time of their message, not of their import: a year imported later is a year old, and is found by
its dates. Changes by hand do not affect that time. Times of accesses are those of the retrievals.

A text without a term (stop words only, or empty) is replaced by the context; without context, semantic and keyword are
0 and their weights are omitted, so that recent and important items are found.
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
_KIND_OF: Final = dict(zip((ProjectMemory, ProjectEpisode, ConversationChunk), _KINDS, strict=True))
_NOTHING: Final = 0
_FOR_EVER: Final = np.inf
_REAL: Final = ("importance", "valid_from", "valid_until", "began", "ended", "touched", "accesses", "known", "replaced")
_ROW: Final = np.dtype([("kind", "i1"), ("archived", "?"), *((name, "f8") for name in _REAL), ("words", "i8")])
"""Times are seconds since 1970, UTC. A row of kind 0 is free, or unknown at the queried time; one of a negative kind
is a past version, known from `known` until `replaced`. `words`: document of its text, numbered as its first row."""
_FEWEST_ROWS: Final = 64
Mask = NDArray[np.bool_]


class Scored(Struct, frozen=True):
    """All candidates' relevance to a query, including rows that the query does not allow.

    Attributes:
        total: Shape `(n_rows,)`.
        parts: In the order of `Scores`, shape `(5, n_rows)`.
    """

    total: Floats
    parts: Floats


class Candidates:
    """Memories, episodes and chunks of one project, one row each, and one row for each past version of a memory.

    Rows of removed items are reused.
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
        """Add or update an item; its text is only indexed again if it changed.

        Args:
            item: The current version.
            versions: Start and content of each known version, the oldest first, the item last; empty: only the item.
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
        """Prepare a row: index its text; None if another row has the same text."""
        before = self._items.get(row)
        if before is not None:
            self._unlabel(row)
        if text is None:
            self._words.drop(row)
        elif before is None or searched_text(before) != text or not self._words.has(row, counts=counts):
            self._words.put(row, terms(text), counts=counts)

    def drop(self, found: Found) -> None:
        """Remove an item; a no-op if it is missing."""
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
        """The candidates as known at a time, with term counts of that time; to be used before the next change."""
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
        """The memory or episode with this id, or None."""
        row = self._row_of.get(("memory", item_id), self._row_of.get(("episode", item_id)))
        return None if row is None else self._items[row]

    def held(self, at: datetime) -> list[ProjectMemory]:
        """Memories that were valid at a time, by id."""
        rows, moment = self._rows[: len(self._found)], at.timestamp()
        holds = (rows["kind"] == _KINDS["memory"]) & (rows["valid_from"] <= moment) & (moment < rows["valid_until"])
        items = (self._items[row] for row in np.flatnonzero(holds).tolist())
        return sorted((item for item in items if isinstance(item, ProjectMemory)), key=lambda each: each.id)

    def item(self, found: Found) -> Findable:
        """The whole item.

        Raises:
            KeyError: There is no such item.
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
        """Mask of the rows that match the query's filters and times, shape `(n_rows,)`."""
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
        """The most relevant allowed items, with their scores; of equal ones the first by kind and id."""
        rows = np.flatnonzero(allowed & (scored.total >= threshold))
        if len(rows) > top_k:
            least = np.partition(scored.total[rows], -top_k)[-top_k]
            rows = rows[scored.total[rows] >= least]
        named = [(found, float(scored.total[row])) for row in rows.tolist() if (found := self._found[row])]
        return sorted(named, key=lambda each: (-each[1], each[0]))[:top_k]

    def scores(self, scored: Scored, found: Found) -> Scores:
        """Parts of an item's relevance."""
        return Scores(*scored.parts[:, self._row_of[found]].tolist())

    def lets(self, allowed: Mask, found: Found) -> bool:
        """Whether an item exists and is allowed."""
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
    """Kind and id of an item."""
    return _KIND_OF[type(item)], item.id


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
    """For each filter by labels, the labels of which an item must have one."""
    asked: dict[str, Sequence[str]] = {
        "type": filters.memory_types,
        "category": filters.categories,
        "tag": filters.tags,
    }
    return [[(name, value) for value in values] for name, values in asked.items() if values]
