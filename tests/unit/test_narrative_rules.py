"""Which sentences tell of an episode, and near misses that tell of none."""

from __future__ import annotations

import pytest

from models.events import Role
from models.language.narrative_sentences import tellings
from tests.support.data_files import data_file

SENTENCES = data_file("narrative")


@pytest.mark.parametrize(("kind", "sentence"), [(k, each) for k, said in SENTENCES["telling"].items() for each in said])
def test_it_tells(kind: str, sentence: str) -> None:
    """A user's sentence of each wording tells of its kind, and of no other."""
    assert [kind] == [request.kind.value for request in tellings(sentence, Role.USER)]


@pytest.mark.parametrize("sentence", SENTENCES["silent"])
def test_it_tells_of_none(sentence: str) -> None:
    """Questions, negations, suppositions, hearsay, what lies ahead and other meanings of the words."""
    assert [] == tellings(sentence, Role.USER)


def test_an_assistant_that_advises_decides_nothing() -> None:
    """What an assistant proposes or recaps is no episode; what it did is."""
    advice = "Let's go with Postgres. The problem is that SQLite locks. You decided to use PostgreSQL."
    done = "I've fixed the race and finished the migration."

    assert [] == tellings(advice, Role.ASSISTANT)
    assert ["problem_solved"] == [request.kind.value for request in tellings(done, Role.ASSISTANT)]


def test_pasted_text_tells_of_none() -> None:
    """A log or a quotation is nobody's own words."""
    assert [] == tellings("Look:\n```\nwe decided to use X\nERROR: it crashes\n```", Role.USER)


def test_of_a_turn_the_sentence_that_says_more_is_taken() -> None:
    """A bare cry of joy would make an empty title."""
    (request,) = tellings("Fixed! The double booking is solved.", Role.USER)

    assert request.sentence == "The double booking is solved."
