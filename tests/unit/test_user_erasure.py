"""What a user's memory forgets when a session or the user is erased, and what stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.events import EpisodeCompressed, EpisodeRequested, FactCategory, FactChanged, Retraction, UserMemoryChanged
from models.text.summary import EXTRACTIVE
from models.user.facts import part_of
from tests.support.user_driver import NOON, User, causes, flat


def two_sessions(user: User, turns: int = 4) -> None:
    """Session `gone` and session `kept` speak by turns."""
    for n in range(turns):
        user.say(f"What of canary {n}?", session="gone")
        user.say(f"What of boat {n}?", session="kept")


def test_a_user_who_is_erased_leaves_nothing() -> None:
    """Every part goes, nothing is told, and neither is anything of a user who was never there."""
    user = User(high_turns=4, keep_turns=2)
    user.say("My name is Alex. I live in Oslo.")
    user.forget(Retraction(key="location"))
    two_sessions(user)
    user.store()
    outputs = user.erase()
    parts = user.state.changed_parts()

    assert (outputs, set(parts), {*parts.values()}) == ([], {*user.stored}, {None})
    user.store()
    assert (user.stored, user.erase(), user.erase("s"), user.state.changed_parts()) == ({}, [], [], {})


@pytest.mark.parametrize("stored", [True, False])
def test_who_comes_again_is_new(stored: bool) -> None:
    """Numbers, episodes and facts begin anew, whether or not the erasure was written meanwhile."""
    user = User()
    user.chat(25)
    user.say("My name is Alex.")
    user.store()
    user.erase()
    if stored:
        user.store()
    user.say("I live in Oslo.", session="new")
    user.store()

    assert (user.stats.turn_count, user.stats.episodes, user.at_hand) == (1, 0, [("new", 0)])
    assert (user.profile, set(user.stored)) == (
        {"location": "Oslo"},
        {"head", "t1", part_of(FactCategory.IDENTITY, "location")},
    )


def test_turns_of_the_session_are_no_longer_at_hand() -> None:
    """The others keep their places, and the next turn its number."""
    user = User(high_turns=20, keep_turns=10)
    two_sessions(user)
    user.erase("gone")

    assert user.at_hand == [("kept", n) for n in range(4)]
    assert (user.stats.turn_count, user.stats.session_id) == (8, "")
    user.say(session="kept")
    assert (user.at_hand[-1], user.stats.turn_count) == (("kept", 4), 9)


@pytest.mark.parametrize("stored", [True, False])
def test_an_episode_asked_for_later_has_the_other_turns(stored: bool) -> None:
    """Its range counts the places that are empty; what is asked and told is of the rest."""
    user = User(high_turns=8, keep_turns=2)
    two_sessions(user, 3)
    user.erase("gone")
    if stored:
        user.store()
    (*_, asked, _) = [*user.say("What of the sea?", session="kept"), *user.say("What of it?", session="kept")]
    assert isinstance(asked, EpisodeRequested)
    assert [turn.content for turn in asked.turns] == [
        "What of boat 0?", "What of boat 1?", "What of boat 2?", "What of the sea?", "What of it?",
    ]  # fmt: skip
    user.answer(1, 8)
    (episode,) = user.episodes

    assert (episode.turn_range, flat(episode.turns)) == ("turns 1-8", [("kept", n) for n in range(5)])


def test_an_episode_that_waits_is_made_of_the_other_turns_and_its_answer_is_nobody_s() -> None:
    """What the slower stage was told and has not answered cannot come back; another request is left alone.

    As everywhere the standing comes last: who reads it has what it says.
    """
    user = User(high_turns=4, keep_turns=1)
    user.chat(4, session="other")
    two_sessions(user, 2)
    assert user.requests == [(1, 4), (5, 8)]
    outputs = user.erase("gone")
    (episode,) = user.episodes

    assert (episode.turn_range, episode.summarised_by) == ("turns 5-8", EXTRACTIVE)
    assert flat(episode.turns) == [("kept", 0), ("kept", 1)]
    assert "canary" not in episode.summary
    assert [type(o) for o in outputs] == [EpisodeCompressed, UserMemoryChanged]
    assert episode.started_at == NOON + timedelta(minutes=6)
    assert user.answer(5, 8, "The canary.") == []
    assert user.answer(1, 4) != []


def test_past_values_of_the_session_s_time_go() -> None:
    """Both ends inside; the fact stays, and is told with what remains of its past."""
    user = User()
    for minute, city in enumerate(["Oslo", "Lima", "Rome", "Bonn", "Kyiv"], 1):
        session = "gone" if city in ("Lima", "Rome") else "kept"
        user.say(f"I live in {city}.", session=session)
        assert user.now == NOON + timedelta(minutes=minute)
    (change,) = [o for o in user.erase("gone", 2, 3) if isinstance(o, FactChanged)]

    assert (change.value, change.active, change.cause, change.session_id) == ("Kyiv", True, "erased", "kept")
    assert [past.value for past in change.history] == ["Oslo", "Bonn"]
    user.store()
    assert user.state.facts.count_active() == 1
    assert [type(o) for o in user.erase("gone", 2, 3)] == [UserMemoryChanged]


def test_a_value_that_another_session_took_back_goes_too() -> None:
    """A fact that is past bears the name of the session that ended it: the time says where it is from."""
    user = User()
    user.say("I live in Oslo.", session="gone")
    user.say("My name is Alex.", session="kept")
    user.forget(Retraction(key="location"), session_id="kept")
    user.forget(Retraction(key="name"), session_id="kept")
    changes = [o for o in user.erase("gone", 1, 1) if isinstance(o, FactChanged)]

    assert causes(changes) == [("location", "", "erased")]
    assert [(key, f.value) for _, key, f in user.state.facts.all()] == [("name", "Alex")]


def test_what_other_sessions_took_back_is_remembered() -> None:
    """Until they are erased too: then no part is left."""
    user = User()
    user.say()
    user.forget(Retraction(value="parrot"), session_id="kept", timestamp=NOON + timedelta(minutes=2))
    for first, last, left in ((0, 1, True), (2, 2, False)):
        user.erase("any", first, last)
        user.store()
        assert ("r" in user.stored) is left
