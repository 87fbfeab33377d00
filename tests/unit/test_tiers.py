"""Invariants of users' memories: each turn is counted once, each request is answered; and how they may not hold."""

from __future__ import annotations

from streams.oracle.comparison import Comparison
from streams.oracle.followers import UserId, compare_answers, compare_tiers, states_of, unanswered
from streams.oracle.replay import Replayed
from tests.support.users_replayed import POLICY, Commands, conversation


def compared(log: Commands) -> Comparison:
    """Tiers and answers of a log."""
    users = log.users()
    found = compare_tiers(log.sessions(), users, POLICY)
    found.include(compare_answers(users, POLICY))
    return found


def test_every_turn_is_counted() -> None:
    """Of two users, one with an episode; nothing is missing and nothing doubled."""
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

    assert ({"users' turns missing": 1}, "user:a/u") == (found.counts, found.examples[0].what)


def test_a_turn_that_stands_on_the_log_and_was_passed_over() -> None:
    """It came behind a later one of the same partition of turns.v1: no comparison by ids would show it."""
    log = Commands()
    for number in (0, 2, 1):
        log.turns(number, number)
    found = compared(log)

    assert ({"users' turns missing": 1}, "user:a/u") == (found.counts, found.examples[0].what)


def test_a_turn_of_nobody() -> None:
    """On the log, and not forwarded by the oracle of sessions."""
    log = Commands()
    log.turns(0, 2)
    del log.forwarded["s-1"]

    assert {"users' turns doubled": 1} == compared(log).counts


def test_a_user_on_two_partitions() -> None:
    """A record whose partition is not its key's: both remember the turn, and it counts twice."""
    log = Commands()
    log.turns(0, 2)
    users = log.users()
    twice = Replayed({0: users.entities[0], 1: users.entities[0]}, users.outputs, 3, set())
    found = compare_tiers(log.sessions(), twice, POLICY)

    assert {"users' turns doubled": 3} == found.counts
    assert [UserId("a", "u")] * 2 == [user for user, _ in states_of(twice, POLICY)]
