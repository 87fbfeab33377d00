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
from collections.abc import Iterable, Sequence
from itertools import chain
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
    them at the next question ("lazily rebuilt"), so arrays and vocabulary follow what is kept.
    """

    def __init__(self) -> None:
        self._terms = np.zeros(0, np.uint32)
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
        having = np.bincount(counted, minlength=len(self._terms))
        idf = np.log(max(1, int(documents.sum())) / np.maximum(having, 1.0))
        weights = idf.take(self._column)
        weights *= self._tf
        weights *= weights
        norms = np.sqrt(np.bincount(self._document, weights, len(documents)))
        return WeighedDocuments(self._terms, self._document, self._column, self._tf, having, idf, norms)

    def _merge(self) -> None:
        changed, counts = [*self._changed], [*self._changed.values()]
        gone = np.zeros(1 + max(self._document.max(initial=0), *changed), np.bool_)
        gone[changed] = True
        kept = ~gone[self._document]
        column, new = self._column[kept], np.fromiter(chain.from_iterable(counts), np.uint32)
        tf = [count / max(each.values()) for each in counts for count in each.values()]
        terms = np.unique(np.append(self._terms[np.bincount(column, minlength=len(self._terms)) > 0], new))
        self._column = np.append(np.searchsorted(terms, self._terms)[column], np.searchsorted(terms, new))
        self._document = np.append(self._document[kept], np.repeat(changed, [*map(len, counts)]))
        self._tf, self._terms = np.append(self._tf[kept], tf), terms
        self._changed.clear()


class WeighedDocuments(NamedTuple):
    """Documents that are compared with queries.

    Attributes:
        terms: Ids of all terms, ascending; entries name them by their columns.
        document: Of each entry, as `column` and `tf`.
        having: Documents with each term, by column, as `idf`.
        norms: Of each document, shape `(n_documents,)`.
    """

    terms: NDArray[np.uint32]
    document: NDArray[np.intp]
    column: NDArray[np.intp]
    tf: Floats
    having: NDArray[np.intp]
    idf: Floats
    norms: Floats

    def match(self, terms: Sequence[int]) -> Match:
        """Compare all documents with the terms of a query, with repetitions."""
        counts, size = Counter(terms), len(self.norms)
        asked = np.fromiter(counts, np.uint32, len(counts))
        at = np.minimum(np.searchsorted(self.terms, asked), len(self.terms) - 1)
        known = (self.terms[at] == asked) & (self.having[at] > 0) if len(self.terms) else np.zeros(len(asked), np.bool_)
        if not known.any():
            return Match(np.zeros(size), np.zeros(size))
        at = at[known]
        weights = self.idf[at] * (np.fromiter(counts.values(), np.float64)[known] / max(counts.values()))
        named, wanted = np.zeros(len(self.terms), np.bool_), np.zeros(len(self.terms))
        named[at], wanted[at] = True, weights * self.idf[at]
        hits = np.flatnonzero(named.take(self.column))
        documents = self.document[hits]
        products = np.bincount(documents, wanted[self.column[hits]] * self.tf[hits], size)
        norms = self.norms * np.sqrt(weights @ weights)
        similarity = np.divide(products, norms, out=np.zeros(size), where=norms > 0)
        return Match(np.minimum(similarity, 1.0), np.bincount(documents, minlength=size) / len(counts))
