"""A user's turns on their way through the tiers: short-term, asked for, episodes."""

from __future__ import annotations

import pytest

from models.events import EpisodeRequested, Role
from models.policy.user import UserPolicy
from models.text.summary import EXTRACTIVE
from tests.support.user_driver import User, flat


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
