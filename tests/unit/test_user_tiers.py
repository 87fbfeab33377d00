"""A user's turns on their way through the tiers, and what goes of them with an erasure."""

from datetime import timedelta

import pytest

from models.events import (
    EpisodeCompressed,
    EpisodeRequested,
    FactCategory,
    FactChanged,
    Retraction,
    Role,
    UserMemoryChanged,
)
from models.policy.user import UserPolicy
from models.text.summary import EXTRACTIVE
from models.user.facts import part_of
from tests.support.user_driver import NOON, User, causes, flat


def numbers(first: int, last: int, session: str = "s") -> list[tuple[str, int]]:
    """Turns of a user who has one session: its numbers begin at 0, the user's at 1."""
    return [(session, number - 1) for number in range(first, last + 1)]


def chat(user: User, turns: int, **more: object) -> None:
    """Talk, and answer every request at once."""
    for _ in range(turns):
        before = len(user.requests)
        user.chat(1, **more)
        for place in user.requests[before:]:
            user.answer(*place)


@pytest.mark.behaviour("user-01")
@pytest.mark.parametrize(
    ("high", "keep", "most"), [(20, 10, 19), (20, 20, 20), (20, 0, 19), (2, 0, 1), (40, 40, 40), (5, 3, 4)]
)
@pytest.mark.parametrize("answered", [True, False])
def test_the_last_turns_are_at_hand_at_any_time(high: int, keep: int, most: int, answered: bool) -> None:
    """The policy's `keep_turns`, and above it what is in no episode: 10-20 of the latest by default (user memory)."""
    user = User(high_turns=high, keep_turns=keep)
    for count in range(1, 3 * high + 2):
        chat(user, 1) if answered else user.chat(1)
        at_hand = user.at_hand

        assert at_hand == numbers(count - len(at_hand) + 1, count)
        assert min(keep, count) <= len(at_hand) <= most
        assert len(at_hand) >= count - user.stats.requested_turns


@pytest.mark.behaviour("user-05")
@pytest.mark.parametrize(("high", "keep"), [(20, 10), (2, 0), (7, 7), (40, 1)])
def test_other_policies_have_episodes_of_their_size(high: int, keep: int) -> None:
    """However many turns stay at hand besides; by default the source's, a hundred turns in five of twenty."""
    user = User(high_turns=high, keep_turns=keep)
    chat(user, 5 * high + 1)

    assert [(e.first_turn, e.last_turn) for e in user.episodes] == [(n * high + 1, (n + 1) * high) for n in range(5)]


def test_sessions_and_partitions_are_counted_together() -> None:
    """Turns are numbered as they arrive; each keeps its session, and a partition's offsets say nothing of another."""
    user = User(high_turns=6, keep_turns=2)
    for session, partition in [("s", 0), ("s", 0), ("t", 1), ("s", 0), ("u", 0), ("t", 1), ("u", 0)]:
        chat(user, 1, session=session, partition=partition)
    (episode,) = user.episodes

    assert [(run.session_id, run.turns) for run in episode.turns] == [
        ("s", [0, 1]),
        ("t", [0]),
        ("s", [2]),
        ("u", [0]),
        ("t", [1]),
    ]
    assert user.at_hand == [("t", 1), ("u", 1)]
    assert user.stats.seen == {"0": 4, "1": 1}


def test_answers_may_come_in_any_order() -> None:
    """A later request may be answered first; what is compressed is told up to the first that still waits."""
    user = User()
    user.chat(61)
    told = []
    for place in [(21, 40), (41, 60), (1, 20)]:
        user.answer(*place)
        user.store()
        told.append((user.stats.compressed_turns, user.stats.episodes))

    assert told == [(0, 1), (0, 2), (60, 3)]
    assert {e.turn_range: flat(e.turns) for e in user.episodes} == {
        "turns 21-40": numbers(21, 40),
        "turns 41-60": numbers(41, 60),
        "turns 1-20": numbers(1, 20),
    }
    assert len([part for part in user.stored if part[0] == "t"]) == 10


@pytest.mark.parametrize("place", [(1, 20), (1, 19), (2, 20), (21, 40), (0, 0), (20, 1), (1, 2**53), (5, 5)])
def test_answers_that_nobody_waits_for_change_nothing(place: tuple[int, int]) -> None:
    """The second answer to a request, and answers to what was never asked."""
    user = User()
    user.chat(25)
    user.answer(1, 20)
    user.store()
    before = dict(user.stored)

    assert user.answer(*place, "Something else.") == []
    user.store()
    assert user.stored == before


def test_without_any_answer_the_oldest_request_is_summarised_here() -> None:
    """The stage stays away: `waiting_episodes` requests wait, what is beyond is summarised in the fold."""
    user = User(waiting_episodes=3)
    user.chat(79)
    assert user.episodes == []
    user.chat(1)
    (episode,) = user.episodes

    assert (episode.turn_range, episode.summarised_by, episode.embedding) == ("turns 1-20", EXTRACTIVE, [])
    assert "boat" in episode.summary
    assert user.stats.compressed_turns == 20
    assert user.answer(1, 20, "Too late.") == []


def test_a_request_has_the_turns_as_they_were_said_and_names_their_sessions() -> None:
    """In order, who spoke, each cut to `asked_chars`; by the sessions, each once, an erasure finds what it tells."""
    user = User(high_turns=3, keep_turns=0, asked_chars=100)
    for session, content, role in (("t", "Hello", Role.USER), ("s", "x" * 101, Role.ASSISTANT), ("t", "", Role.USER)):
        user.say(content, session=session, role=role)
    (request,) = user.of(EpisodeRequested)

    assert [(t.role, t.content) for t in request.turns] == [
        (Role.USER, "Hello"), (Role.ASSISTANT, "x" * 100), (Role.USER, ""),
    ]  # fmt: skip
    assert (["t", "s"], "t") == (request.session_ids, request.session_id)


def test_keeping_more_than_an_episode_is_refused() -> None:
    """The last turns would be asked for while they are at hand twice over."""
    with pytest.raises(ValueError, match="keep_turns must not exceed high_turns"):
        UserPolicy(high_turns=10, keep_turns=11)


def two_sessions(user: User, turns: int = 4) -> None:
    """Session `gone` and session `kept` speak by turns."""
    for n in range(turns):
        user.say(f"What of canary {n}?", session="gone")
        user.say(f"What of boat {n}?", session="kept")


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
