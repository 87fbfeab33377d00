"""Texts as sparse vectors: which words count as one, which count at all, and what they weigh."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from models.retrieval.lexical import AVERAGE_TERMS, K1, B, date_words, document_vector, query_vector, terms
from tests.support.data_files import data_file

LONGEST_TURN = 256 * 1024


@pytest.mark.parametrize(
    ("one", "other"),
    data_file("lexical")["forms"],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    """Inflections, cases, possessives, ligatures and punctuation tell nothing."""
    assert sorted(terms(one)) == sorted(terms(other))


@pytest.mark.parametrize("text", ["", "   ", "?!…", "what is it that the", "\u200b\u200b", "_"])
def test_texts_without_content_have_no_terms(text: str) -> None:
    """Stop words and signs are no terms, so they find nothing."""
    assert (len(document_vector(text)), len(query_vector(text))) == (0, 0)


def test_text_without_spaces_is_cut_into_pairs() -> None:
    """A word inside a sentence of another script is found; a single sign too."""
    assert set(terms("東京")) <= set(terms("昨日東京タワーへ行った"))
    assert len(terms("東")) == 1


def test_terms_are_the_same_for_ever() -> None:
    """Stored vectors are compared with those of later processes: ids may never change."""
    assert terms("boat race 2023") == [3_631_121_226, 3_664_755_631, 229_457_857]


def test_document_weights_follow_the_formula() -> None:
    """Term frequency saturates, length counts, and indices are ascending."""
    vector = document_vector("boat boat race")
    by_term = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
    length = K1 * (1 - B + B * 3 / AVERAGE_TERMS)
    boat, race = (terms(word)[0] for word in ("boat", "race"))

    assert by_term == {boat: pytest.approx(2 * (K1 + 1) / (2 + length)), race: pytest.approx((K1 + 1) / (1 + length))}
    assert vector.indices.tolist() == sorted(by_term)


def test_query_weights_are_counts() -> None:
    """What is asked twice counts twice."""
    vector = query_vector("the boat, a boat, a race")

    assert sorted(vector.values.tolist()) == [1.0, 2.0]


@pytest.mark.parametrize("text", ["x" * LONGEST_TURN, "w " * (LONGEST_TURN // 2), "東" * (LONGEST_TURN // 4)])
def test_a_paste_costs_no_more_than_its_head_and_tail(text: str) -> None:
    """The largest turn there may be has no more terms than the characters that are read."""
    assert len(terms(text)) <= 5_001


def test_words_of_a_long_text_are_of_its_head_and_tail() -> None:
    """What is asked of a paste stands before or after it."""
    paste = f"boat {'filler ' * 10_000} harbour"

    assert {*terms("boat harbour")} <= {*terms(paste)}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "8 May 2023"),
        (datetime(2023, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))), "1 January 2024"),
    ],
)
def test_dates_are_named_in_utc(moment: datetime, expected: str) -> None:
    """In English whatever the machine's language, and the same for every producer's zone."""
    assert date_words(moment) == expected
