"""Which sentences tell of an episode, and near misses that tell of none."""

from __future__ import annotations

import pytest

from models.events import Role
from models.language.narrative_sentences import tellings

TELLING = {
    "decision_made": ["Good, let's go with Postgres.", "We decided not to use MongoDB."],
    "pivot": ["We migrated from MySQL to PostgreSQL.", "I've changed my mind, we'll use Vue instead."],
    "problem_solved": ["Restarting the broker fixed it!", "It finally works.", "The pods no longer crash."],
    "breakthrough": ["Eureka!", "This is huge, it needs one index."],
    "task_completed": ["We shipped version 2.", "The docs are complete."],
    "issue_identified": ["There is a bug: two people can book the same drill.", "The server is down."],
}
SILENT = [
    "Did that fix it?",
    "It is not fixed.",
    "It's not solved, it went from nine seconds to eight.",
    "Should we choose PostgreSQL?",
    "What if we switched from React to Vue?",
    "If we decided to use MongoDB, we would lose transactions.",
    "We haven't decided on a database.",
    "The report will be ready on Monday.",
    "It has to be live by 30 May.",
    "Once the bug is fixed we can launch.",
    "There is no problem with that.",
    "Nobody found a bug.",
    "If it crashes, restart it.",
    "Maybe we should switch from Kubernetes to Nomad.",
    "We need a breakthrough.",
    "He says the bug is fixed.",
    "Tell me all that we decided about the bathroom.",
    "As we decided earlier, PostgreSQL stays.",
    "I'm done for today.",
    "We won't use MongoDB.",
    "We never launched it.",
    "The price is fixed at 20 euros.",
    "Let's fix the bug tomorrow.",
    "Let's go for a walk.",
    "The search went from 38 percent to 3.",
    "",
    "???",
]


@pytest.mark.parametrize(("kind", "sentence"), [(kind, each) for kind, said in TELLING.items() for each in said])
def test_it_tells(kind: str, sentence: str) -> None:
    """A user's sentence of each wording tells of its kind, and of no other."""
    assert [kind] == [request.kind.value for request in tellings(sentence, Role.USER)]


@pytest.mark.parametrize("sentence", SILENT)
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
