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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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

    Entries of all documents stand in three arrays, one for each document and term. What came or went is merged into
    them at the next question ("lazily rebuilt"). Terms that no document has any longer are forgotten once they are more
    than half, so arrays and vocabulary follow what is kept.
    """

    def __init__(self) -> None:
        self._columns: dict[int, int] = {}
        self._document, self._column = np.zeros(0, np.intp), np.zeros(0, np.intp)
        self._tf = np.zeros(0)
        self._changed: dict[int, Counter[int]] = {}

    def put(self, document: int, terms: Iterable[int] = ()) -> None:
        """Take a document in, instead of that of the same number; without a term it is forgotten.

        Args:
            document: Its number, from 0.
            terms: Ids of its terms with repetitions (`models.retrieval.lexical.terms`).
        """
        self._changed[document] = Counter(terms)

    def among(self, documents: NDArray[np.bool_]) -> WeighedDocuments:
        """Documents weighed as if there were no others: `N` and `n` are of these; good until the next change.

        Args:
            documents: Which they are, shape `(n_documents,)`; larger than every document's number.
        """
        if self._changed:
            self._merge()
        counted = self._column[documents[self._document]]
        having = np.bincount(counted, minlength=len(self._columns))
        idf = np.log(max(1, int(documents.sum())) / np.maximum(having, 1.0))
        weights = idf.take(self._column)
        weights *= self._tf
        weights *= weights
        norms = np.sqrt(np.bincount(self._document, weights, len(documents)))
        return WeighedDocuments(self._columns, self._document, self._column, self._tf, having, idf, norms)

    def _merge(self) -> None:
        changed, counts = [*self._changed], [*self._changed.values()]
        gone = np.zeros(1 + max(self._document.max(initial=0), *changed), np.bool_)
        gone[changed] = True
        kept = ~gone[self._document]
        columns = [self._columns.setdefault(term, len(self._columns)) for each in counts for term in each]
        tf = [count / max(each.values()) for each in counts for count in each.values()]
        self._document = np.append(self._document[kept], np.repeat(changed, [*map(len, counts)]))
        self._column = np.append(self._column[kept], np.asarray(columns, np.intp))
        self._tf = np.append(self._tf[kept], tf)
        self._changed.clear()
        if not kept.all():
            self._forget_terms()

    def _forget_terms(self) -> None:
        used = np.bincount(self._column, minlength=len(self._columns)) > 0
        if 2 * int(used.sum()) < len(used):
            left = (term for term, is_used in zip(self._columns, used.tolist(), strict=True) if is_used)
            self._columns = {term: number for number, term in enumerate(left)}
            self._column = (np.cumsum(used) - 1)[self._column]


class WeighedDocuments(NamedTuple):
    """Documents that are compared with queries.

    Attributes:
        columns: Id of a term → its column.
        document: Of each entry, as `column` and `tf`.
        having: Documents with each term, by column, as `idf`.
        norms: Of each document, shape `(n_documents,)`.
    """

    columns: Mapping[int, int]
    document: NDArray[np.intp]
    column: NDArray[np.intp]
    tf: Floats
    having: NDArray[np.intp]
    idf: Floats
    norms: Floats

    def match(self, terms: Sequence[int]) -> Match:
        """Compare all documents with the terms of a query, with repetitions."""
        counts, size = Counter(terms), len(self.norms)
        known = {
            term: column for term in counts if (column := self.columns.get(term)) is not None and self.having[column]
        }
        if not known:
            return Match(np.zeros(size), np.zeros(size))
        most, at = max(counts.values()), np.fromiter(known.values(), np.intp, len(known))
        weights = self.idf[at] * [counts[term] / most for term in known]
        named, wanted = np.zeros(len(self.idf), np.bool_), np.zeros(len(self.idf))
        named[at], wanted[at] = True, weights * self.idf[at]
        hits = np.flatnonzero(named.take(self.column))
        documents = self.document[hits]
        products = np.bincount(documents, wanted[self.column[hits]] * self.tf[hits], size)
        norms = self.norms * np.sqrt(weights @ weights)
        similarity = np.divide(products, norms, out=np.zeros(size), where=norms > 0)
        return Match(np.minimum(similarity, 1.0), np.bincount(documents, minlength=size) / len(counts))
