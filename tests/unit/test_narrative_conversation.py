"""The 250 turns of a project: what other tests and the report rely on, and the story that is told of them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from jobs.demo.conversations import load_conversations, load_project_conversation, schedule
from models.events import Role, SessionEnded, Turn
from models.events.project_items import ProjectEpisode
from models.language.narrative_detection import ConversationTurn
from models.project.narrative import narrative_arc
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


def test_it_is_one_session_of_a_project_over_four_weeks(turns: list[Turn]) -> None:
    """250 turns in order, two people, no sitting without its pause, an end; benches send none of it."""
    sittings = load_project_conversation().sittings
    last = schedule([load_project_conversation()])[-1].event(NOON)

    assert [each.turn for each in turns] == list(range(250))
    assert {(each.app_id, each.session_id, each.project_id) for each in turns} == {
        ("workshop", "tool-library", "tool-library")
    }
    assert {each.user_id for each in turns} == {"nora", "tomas"}
    assert all(one.timestamp < other.timestamp for one, other in pairwise(turns))
    assert timedelta(days=26) < turns[-1].timestamp - turns[0].timestamp < timedelta(days=28)
    assert all(turns[each.first_turn].role is Role.USER for each in sittings)
    assert isinstance(last, SessionEnded)
    assert load_project_conversation() not in load_conversations()


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
