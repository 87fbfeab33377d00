"""What must hold of users' memories: each turn once, each request answered; and every way in which it may not."""

from __future__ import annotations

import msgspec
import pytest

from models.events import EpisodeCompressed, OutputEvent, SessionTurns
from streams.oracle.comparison import Comparison
from streams.oracle.replay import Replayed
from streams.oracle.tiers import UserId, compare_answers, compare_tiers, states_of, unanswered
from tests.users_replayed import POLICY, Commands, conversation


def compared(log: Commands) -> Comparison:
    """Tiers and answers of a log."""
    users = log.users()
    found = compare_tiers(log.sessions(), users, POLICY)
    found.include(compare_answers(users, POLICY))
    return found


def test_every_turn_in_one_episode_or_at_hand() -> None:
    """Twenty turns in an episode, the others at hand, ten of them in both; nothing is missing and nothing doubled."""
    found = compared(conversation().log)

    assert ({}, {"users' turns": 28, "answers": 1}) == (found.counts, found.checked)


def test_records_that_come_again_change_nothing() -> None:
    """After a crash the sessions role forwards the same turns once more."""
    log = conversation().log
    log.turns(10, 24)
    log.answer(1, 20)

    assert {} == compared(log).counts


def test_a_request_without_an_answer() -> None:
    """The turns are at hand, so none is lost; what waits is named."""
    log = Commands()
    log.turns(0, 44)
    log.answer(1, 20)
    found = compared(log)

    assert {"answers missing": 1} == found.counts
    assert ["user:a/u, turns 21-40"] == [example.what for example in found.examples] == unanswered(log.users(), POLICY)


def test_answers_out_of_order() -> None:
    """The second request is answered, the first one not yet: its turns are at hand, though the later ones are not."""
    log = Commands()
    log.turns(0, 44)
    log.answer(21, 40)
    found = compared(log)

    assert {"answers missing": 1} == found.counts


def test_a_turn_that_never_came() -> None:
    """Forwarded by the oracle of sessions, and not on the log."""
    log = Commands()
    log.turns(0, 2)
    del log.records[1]
    found = compared(log)

    assert ({"users' turns missing": 1}, "user:a/u, s, turn 1") == (found.counts, found.examples[0].what)


def test_a_turn_that_stands_on_the_log_and_was_passed_over() -> None:
    """It came behind a later one of the same partition of turns.v1: no comparison by ids would show it."""
    log = Commands()
    for number in (0, 2, 1):
        log.turns(number, number)
    found = compared(log)

    assert ({"users' turns missing": 1}, "user:a/u, s, turn 1") == (found.counts, found.examples[0].what)


def test_a_turn_of_nobody() -> None:
    """On the log, and not forwarded by the oracle of sessions."""
    log = Commands()
    log.turns(0, 2)
    del log.forwarded["s-1"]

    assert {"users' turns false": 1} == compared(log).counts


def test_a_user_on_two_partitions() -> None:
    """A record whose partition is not its key's: both remember the turn, and it counts twice."""
    log = Commands()
    log.turns(0, 2)
    users = log.users()
    twice = Replayed({0: users.entities[0], 1: users.entities[0]}, users.outputs, 3, set())
    found = compare_tiers(log.sessions(), twice, POLICY)

    assert {"users' turns doubled": 3} == found.counts
    assert [UserId("a", "u")] * 2 == [user for user, _ in states_of(twice, POLICY)]


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"turns": [SessionTurns("s", list(range(19)))]}, {"users' turns missing": 1}),
        ({"turns": [SessionTurns("s", list(range(21)))]}, {"users' turns doubled": 1}),
        ({"turns": [SessionTurns("s", [*range(19), 18])]}, {"users' turns missing": 1, "users' turns doubled": 1}),
        ({"user_id": "w"}, {"users' turns missing": 15, "users' turns false": 20}),
    ],
)
def test_an_episode_of_the_wrong_turns(change: dict[str, object], counts: dict[str, int]) -> None:
    """Too few, too many, one of them twice, or another user's; what is still in the state is at hand."""
    whole = conversation()
    outputs: dict[str, OutputEvent] = {
        id_: msgspec.structs.replace(event, **change) if isinstance(event, EpisodeCompressed) else event
        for id_, event in whole.users.outputs.items()
    }
    users = whole.users._replace(outputs=outputs)

    assert counts == compare_tiers(whole.sessions, users, POLICY).counts
