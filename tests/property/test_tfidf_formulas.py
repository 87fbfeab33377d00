"""TF-IDF: whatever comes and goes, it is the source formulas over what is there, and scikit-learn's but for the idf."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from models.retrieval.tfidf import TfIdf

TERMS = st.lists(st.integers(0, 12), max_size=8)
CHANGES = st.lists(st.tuples(st.integers(0, 9), st.none() | TERMS), max_size=30)
"""A document's number with its terms, or that it goes."""


def plain(documents: dict[int, list[int]], query: list[int]) -> dict[int, tuple[float, float]]:
    """Similarity and share of terms by the formulas (project memory), one after the other."""
    having = Counter(term for terms in documents.values() for term in set(terms))

    def vector(terms: list[int]) -> dict[int, float]:
        counts = Counter(terms)
        most = max(counts.values(), default=1)
        return {
            term: count / most * math.log(len(documents) / having[term])
            for term, count in counts.items()
            if having[term]
        }

    def cosine(left: dict[int, float], right: dict[int, float]) -> float:
        product = sum(value * right.get(term, 0.0) for term, value in left.items())
        norms = math.hypot(*left.values()) * math.hypot(*right.values())
        return product / norms if norms else 0.0

    asked = vector(query)
    return {
        number: (cosine(asked, vector(terms)), len(set(query) & set(terms)) / max(1, len(set(query))))
        for number, terms in documents.items()
    }


def changed(index: TfIdf, changes: list[tuple[int, list[int] | None]]) -> dict[int, list[int]]:
    """Make the changes; what is there then."""
    documents: dict[int, list[int]] = {}
    for number, terms in changes:
        if terms is None:
            index.drop(number)
            documents.pop(number, None)
        else:
            index.put(number, terms)
            documents[number] = terms
    return documents


@given(CHANGES, TERMS, CHANGES)
def test_it_is_the_formulas_over_what_is_there(
    before: list[tuple[int, list[int] | None]], query: list[int], after: list[tuple[int, list[int] | None]]
) -> None:
    """Also when it was asked in between, and so holds norms and frequencies of then."""
    index = TfIdf()
    changed(index, before)
    index.match(query, 10)
    documents = changed(index, before + after)
    expected = plain(documents, query)

    match = index.match(query, 10)

    for number in range(10):
        similarity, share = expected.get(number, (0.0, 0.0))
        assert math.isclose(similarity, match.similarity[number], abs_tol=1e-9)
        assert math.isclose(share, match.share[number], abs_tol=1e-12)


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8), min_size=1, max_size=8), TERMS)
def test_it_is_scikit_learns_but_for_its_idf(documents: list[list[int]], query: list[int]) -> None:
    """Whose idf is one more, so that a term of every document counts; its plain counts have the same direction."""
    index = TfIdf()
    for number, terms in enumerate(documents):
        index.put(number, terms)
    vectorizer = TfidfVectorizer(analyzer=list, smooth_idf=False).fit(documents)
    vectorizer.idf_ = vectorizer.idf_ - 1

    expected = (vectorizer.transform(documents) @ vectorizer.transform([query]).T).toarray()  # of length 1: cosines

    assert np.allclose(expected[:, 0], index.match(query, len(documents)).similarity, atol=1e-9)


def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    """A project that lives for years has as many entries and terms as it has memories, not as it ever had."""
    index = TfIdf()
    for number in range(20_000):
        index.put(number % 50, [number, number + 1, number + 2])

    assert index._used <= 3 * 50 + 2 * 1_024
    assert len(index._columns) <= index._used
    assert index.match([20_001], 50).share.tolist() == [0.0] * 49 + [1.0]
