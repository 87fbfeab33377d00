"""Which memories say something else of the same, which only look like it, and what denies."""

from __future__ import annotations

import pytest

from models.language.contradiction import conflicts, contradicting, denies, sentences_of
from tests.support.data_files import data_file

TOLD = data_file("contradiction")


@pytest.mark.parametrize(("one", "other"), TOLD["conflicting"])
def test_other_values_of_the_same_conflict(one: str, other: str) -> None:
    """Whichever of the two is the newer."""
    assert (True, True) == (conflicts(one, other), conflicts(other, one))


@pytest.mark.parametrize(("one", "other"), TOLD["compatible"])
def test_near_misses_do_not_conflict(one: str, other: str) -> None:
    """More of the same, another thing, another time, or nothing at all."""
    assert (False, False) == (conflicts(one, other), conflicts(other, one))


@pytest.mark.parametrize(("content", "expected"), TOLD["denials"])
def test_a_denial_is_in_the_main_clause(content: str, expected: bool) -> None:
    """What is denied aside is no denial of what is decided."""
    assert expected == denies(content)


@pytest.mark.parametrize(("one", "other", "expected"), TOLD["opposites"])
def test_opposites_contradict_both_ways_round(one: str, other: str, expected: bool) -> None:
    """By what is denied and by other values, not by what people say of themselves."""
    assert (expected, expected) == (contradicting(one, other), contradicting(other, one))


def test_sentences_are_cut_at_stops_only() -> None:
    """Numbers and addresses stay whole; what holds no word is none."""
    text = "It costs 2.5 euros at shop.example. Good! ... Really?"

    assert ("It costs 2.5 euros at shop.example.", "Good!", "Really?") == sentences_of(text)
