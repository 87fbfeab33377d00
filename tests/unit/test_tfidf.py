"""TF-IDF: the seed's formulas by hand, and that what goes leaves nothing behind."""

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


def test_a_single_document_is_like_nothing() -> None:
    """Every term is in every document, so its idf is 0 (N = 1); the share of terms finds it all the same."""
    match = filled([1, 2]).match([1], 1)

    assert (match.similarity.tolist(), match.share.tolist()) == ([0.0], [1.0])


def test_terms_that_no_document_has_are_left_out_of_the_similarity() -> None:
    """They have no idf; in the share of terms they count."""
    index = filled([1], [2])

    match = index.match([1, 99], 2)

    assert (match.similarity.tolist(), match.share.tolist()) == ([1.0, 0.0], [0.5, 0.0])


@pytest.mark.parametrize("query", [[], [99]])
def test_a_query_without_a_known_term_matches_nothing(query: list[int]) -> None:
    """Stop words only, or words that nobody said."""
    match = filled([1], []).match(query, 2)

    assert (match.similarity.tolist(), match.share.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_an_empty_index_answers() -> None:
    """A project before its first memory."""
    assert TfIdf().match([1], 0).similarity.tolist() == []


def test_a_document_again_replaces_itself() -> None:
    """Its old terms find nothing any longer."""
    index = filled([1], [2])
    index.put(0, [3])

    assert (len(index), index.match([1], 2).share.tolist(), index.match([3], 2).share.tolist()) == (2, [0, 0], [1, 0])


def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    """A project that lives for years has as many entries and terms as it has memories, not as it ever had."""
    index = TfIdf()
    for number in range(20_000):
        index.put(number % 50, [number, number + 1, number + 2])

    assert len(index) == 50
    assert index.entries <= 3 * 50 + 2 * 1_024
    assert index.vocabulary <= index.entries
    assert index.match([20_001], 50).share.tolist() == [0.0] * 49 + [1.0]
