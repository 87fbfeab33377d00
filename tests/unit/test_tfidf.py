"""TF-IDF: the source formulas by hand, and that what goes leaves nothing behind."""

from __future__ import annotations

from math import sqrt

import pytest

from models.retrieval.tfidf import TfIdf


def filled(*documents: list[int]) -> TfIdf:
    """Documents numbered from 0."""
    index = TfIdf()
    for number, terms in enumerate(documents):
        index.put(number, terms)
    return index


def test_the_seeds_formulas() -> None:
    """Term 2 is in both and does not count; of what is left, one of one term and one of two are asked for."""
    index = filled([1, 1, 2], [2, 3, 4])
    match = index.match([1, 3], 2)

    assert pytest.approx([1 / sqrt(2), 0.5]) == match.similarity.tolist()
    assert match.share.tolist() == [0.5, 0.5]


def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    """A project that lives for years has as many entries and terms as it has memories, not as it ever had."""
    index = TfIdf()
    for number in range(20_000):
        index.put(number % 50, [number, number + 1, number + 2])

    assert index._used <= 3 * 50 + 2 * 1_024
    assert len(index._columns) <= index._used
    assert index.match([20_001], 50).share.tolist() == [0.0] * 49 + [1.0]
