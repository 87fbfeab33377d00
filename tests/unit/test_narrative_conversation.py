"""Which sentences tell of an episode and which of none, and the story told of the 250 turns of a project."""

from collections import Counter

import pytest

from jobs.demo.conversations import load_project_conversation, schedule
from models.events import Role, Turn
from models.events.project_items import ProjectEpisode
from models.language.narrative_detection import ConversationTurn
from models.language.narrative_sentences import tellings
from models.project.narrative import narrative_arc
from tests.support.data_files import data_file
from tests.support.narrative_episodes import POLICY, told
from tests.support.session_driver import NOON

TURNS = (0, 249)


@pytest.fixture(scope="module")
def turns() -> list[Turn]:
    """The events of its turns."""
    events = [cue.event(NOON) for cue in schedule([load_project_conversation()])]
    return [event for event in events if isinstance(event, Turn)]


@pytest.fixture(scope="module")
def episodes(turns: list[Turn]) -> list[ProjectEpisode]:
    """What is told of them, without memories."""
    return told(
        ConversationTurn(
            conversation_id=each.session_id,
            turn=each.turn,
            role=each.role,
            user_id=each.user_id,
            content=each.content,
            timestamp=each.timestamp,
        )
        for each in turns
    )


@pytest.mark.behaviour("project-09")
def test_its_story_is_told(episodes: list[ProjectEpisode]) -> None:
    """All six kinds, about one episode in ten turns, a long struggle, both pivots; key moments are in their order."""
    kinds = Counter(each.kind.value for each in episodes)

    assert len(kinds) == 6
    assert 20 <= len(episodes) <= 28
    assert [100, 148] == [each.first_turn for each in episodes if each.kind == "pivot"]
    assert (122, 181) in [(each.first_turn, each.last_turn) for each in episodes if each.kind == "problem_solved"]

    arc = narrative_arc(episodes, "tool-library", POLICY, turns=TURNS)
    words = ["PostgreSQL", "React to HTMX", "Docker Compose", "trigram", "live"]
    moments = [each.summary for each in arc.key_moments]
    places = [next(n for n, summary in enumerate(moments) if word in summary) for word in words]

    assert min(len(arc.beginning), len(arc.middle), len(arc.end)) >= 5
    assert places == sorted(places)
    assert len(moments) <= 10


SENTENCES = data_file("narrative")


@pytest.mark.behaviour("project-09")
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
