"""TF-IDF by project memory's formulas ("TF-IDF Index"), kept up to date document by document.

    tf(term, document)    = count(term) / max count of any term in the document
    idf(term)             = ln(N / n)          N documents, n of them with the term
    similarity(query, d)  = cosine of the vectors tf · idf; the query is weighed like a document

What follows from the formulas, and is kept:

| case | similarity |
|---|---|
| a term that every document has, hence any term of a single document | says nothing: its idf is 0 |
| a term of the query that no document has | left out: it has no idf |
| a document or query without a term, or only of such terms | 0 |

scikit-learn's `TfidfVectorizer(smooth_idf=False)` differs in two points, of which only the first can be seen: its idf
is `ln(N / n) + 1`, so that a term in every document still counts, and its tf is the plain count, which has the same
direction as ours and so the same cosine.

Norms depend on every term's idf, and so change with each document that comes or goes. They are computed at the first
query after a change, all at once; until then nothing but the document itself is touched ("lazily rebuilt").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_Number = TypeVar("_Number", np.float64, np.intp)
_DEAD: Final = 0
"""Column of entries whose document is gone; no term has it."""
_LEAST_ENTRIES: Final = 1_024


class Match(NamedTuple):
    """How documents stand to a query.

    Attributes:
        similarity: Cosine by document number, shape `(n_documents,)`, in 0-1.
        share: Share of the query's terms that the document has, same shape, in 0-1.
    """

    similarity: Floats
    share: Floats


class TfIdf:
    """Documents as sparse vectors, numbered by the caller; numbers are best dense, as results are arrays over them.

    Entries of all documents stand in one pool, one for each document and term. What is gone stays as dead entries until
    they are more than half; then the pool and the vocabulary are written anew, so both follow what is kept.
    """

    def __init__(self) -> None:
        self._columns: dict[int, int] = {}
        self._having = np.zeros(_LEAST_ENTRIES)
        self._document = np.zeros(_LEAST_ENTRIES, np.intp)
        self._column = np.zeros(_LEAST_ENTRIES, np.intp)
        self._tf = np.zeros(_LEAST_ENTRIES)
        self._used = self._dead = self._counted = 0
        self._spans: dict[int, tuple[int, int]] = {}
        self._apart: set[int] = set()
        self._idf: Floats | None = None
        self._norms = np.zeros(0)

    def put(self, document: int, terms: Iterable[int], *, counts: bool = True) -> None:
        """Take a document in, instead of that of the same number.

        Args:
            document: Its number, from 0.
            terms: Ids of its terms with repetitions (`models.retrieval.lexical.terms`); may be empty.
            counts: False for one that only `among` gives: it is none of `N` and `n`.
        """
        self.drop(document)
        found = Counter(terms)
        first, end = self._used, self._used + len(found)
        self._reserve(end)
        columns = [self._columns.setdefault(term, len(self._columns) + 1) for term in found]
        self._document[first:end] = document
        self._column[first:end] = columns
        if found:
            self._tf[first:end] = np.fromiter(found.values(), np.float64, len(found)) / max(found.values())
            self._having[columns] += counts
        if not counts:
            self._apart.add(document)
        self._counted += counts
        self._used, self._spans[document], self._idf = end, (first, end), None

    def drop(self, document: int) -> None:
        """Forget a document; nothing if there is none of this number."""
        if (span := self._spans.pop(document, None)) is None:
            return
        entries, counts = slice(*span), document not in self._apart
        self._apart.discard(document)
        self._counted -= counts
        self._having[self._column[entries]] -= counts
        self._column[entries] = _DEAD
        self._dead += span[1] - span[0]
        self._idf = None
        if self._dead > max(_LEAST_ENTRIES, self._used // 2):
            self._compact()

    def has(self, document: int, *, counts: bool) -> bool:
        """Whether there is one of this number that counts, or not, as told."""
        return document in self._spans and counts == (document not in self._apart)

    def among(self, documents: NDArray[np.bool_]) -> TfIdf:
        """These documents alone, all of them counted; to be asked before anything changes here."""
        other, used = TfIdf(), slice(self._used)
        other._columns, other._document, other._tf, other._used = self._columns, self._document, self._tf, self._used
        other._column = np.where(documents[self._document[used]], self._column[used], _DEAD)
        other._having = np.bincount(other._column, minlength=len(self._having)).astype(np.float64)
        other._having[_DEAD], other._counted = 0, int(documents.sum())
        return other

    def match(self, terms: Sequence[int], size: int) -> Match:
        """Compare all documents with a query.

        Args:
            terms: Of the query, with repetitions.
            size: Of the result; larger than every document's number.
        """
        idf = self._refreshed(size)
        counts = Counter(terms)
        columns = {term: self._columns[term] for term in counts if self._having[self._columns.get(term, _DEAD)]}
        if not columns:
            return Match(np.zeros(size), np.zeros(size))
        most = max(counts.values())
        at = np.fromiter(columns.values(), np.intp, len(columns))
        weights = idf[at] * [counts[term] / most for term in columns]
        named, wanted = np.zeros(len(idf), np.bool_), np.zeros(len(idf))
        named[at], wanted[at] = True, weights * idf[at]
        hits = np.flatnonzero(named.take(self._column[: self._used]))
        documents = self._document[hits]
        products = np.bincount(documents, wanted[self._column[hits]] * self._tf[hits], size)
        norms = self._norms[:size] * np.sqrt(weights @ weights)
        similarity = np.divide(products, norms, out=np.zeros(size), where=norms > 0)
        share = np.bincount(documents, minlength=size) / len(counts)
        return Match(np.minimum(similarity, 1.0), share)

    def _refreshed(self, size: int) -> Floats:
        """Inverse document frequencies by column, and norms that go with them."""
        if self._idf is None or len(self._norms) < size:
            having = self._having[: len(self._columns) + 1]
            self._idf = np.log(max(1, self._counted) / np.maximum(having, 1.0))
            self._idf[_DEAD] = 0.0
            used = slice(self._used)
            weights = self._idf.take(self._column[used])
            weights *= self._tf[used]
            weights *= weights
            self._norms = np.sqrt(np.bincount(self._document[used], weights, size))
        return self._idf

    def _reserve(self, entries: int) -> None:
        if entries > len(self._tf):
            room = 2 * entries
            self._document, self._tf = _moved(self._document, room), _moved(self._tf, room)
            self._column = _moved(self._column, room)
        columns = len(self._columns) + 1 + entries - self._used
        if columns > len(self._having):
            self._having = _moved(self._having, 2 * columns)

    def _compact(self) -> None:
        """Without dead entries, and without terms that no document has any longer."""
        live = np.flatnonzero(self._column[: self._used])
        kept, columns = np.unique(self._column[live], return_inverse=True)
        new = {int(column): number for number, column in enumerate(kept, start=1)}
        self._columns = {term: new[column] for term, column in self._columns.items() if column in new}
        spans = {
            document: (int(np.searchsorted(live, first)), end - first) for document, (first, end) in self._spans.items()
        }
        self._spans = {document: (at, at + length) for document, (at, length) in spans.items()}
        room = max(_LEAST_ENTRIES, 2 * len(live))
        self._document, self._tf = _moved(self._document[live], room), _moved(self._tf[live], room)
        self._column = _moved(columns + 1, room)
        self._having = _moved(self._having[np.concatenate(([_DEAD], kept))], max(_LEAST_ENTRIES, 2 * len(kept)))
        self._used, self._dead, self._idf = len(live), 0, None


def _moved(values: NDArray[_Number], room: int) -> NDArray[_Number]:
    """The values at the beginning of a larger array."""
    larger = np.zeros(room, values.dtype)
    larger[: len(values)] = values
    return larger
