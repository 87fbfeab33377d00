"""Invariants of users' memories: each turn is counted once, each request is answered; and how they may not hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streams.oracle.comparison import Comparison
from streams.oracle.followers import UserId, compare_answers, compare_tiers, states_of
from streams.oracle.replay import Replayed
from tests.support.users_replayed import POLICY, Commands, conversation


def compared(log: Commands) -> Comparison:
    """Tiers and answers of a log."""
    users = log.users()
    found = compare_tiers(log.sessions(), users, POLICY)
    found.include(compare_answers(users, POLICY))
    return found


def log_of(*turns: tuple[int, int], answers: Sequence[tuple[int, int]] = ()) -> Commands:
    """A log with these turns, then these answers."""
    log = Commands()
    for each in turns:
        log.turns(*each)
    for each in answers:
        log.answer(*each)
    return log


def test_every_turn_is_counted() -> None:
    """Of two users, one with an episode; also where the sessions role forwards the same turns again after a crash."""
    log = conversation().log
    found = compared(log)
    log.turns(10, 24)
    log.answer(1, 20)

    assert ({}, {"users' turns": 28, "answers": 1}) == (found.counts, found.checked)
    assert {} == compared(log).counts


@pytest.mark.parametrize(
    ("log", "lost", "counts", "example"),
    [
        (log_of((0, 44), answers=[(1, 20)]), "", {"answers missing": 1}, "user:a/u, turns 21-40"),
        (log_of((0, 44), answers=[(21, 40)]), "", {"answers missing": 1}, "user:a/u, turns 1-20"),
        (log_of((0, 2)), "record", {"users' turns missing": 1}, "user:a/u"),
        (log_of((0, 0), (2, 2), (1, 1)), "", {"users' turns missing": 1}, "user:a/u"),
        (log_of((0, 2)), "forwarded", {"users' turns doubled": 1}, "user:a/u"),
    ],
    ids=["unanswered", "out of order", "never came", "came behind a later one", "of nobody"],
)
def test_what_is_wrong_is_counted_and_named(log: Commands, lost: str, counts: dict[str, int], example: str) -> None:
    """A request without its answer, a turn that is missing from the log or was passed over there, and one of nobody."""
    if lost == "record":
        del log.records[1]
    if lost == "forwarded":
        del log.forwarded["s-1"]
    found = compared(log)

    assert (counts, [example]) == (found.counts, [each.what for each in found.examples])


def test_a_user_on_two_partitions() -> None:
    """A record whose partition is not its key's: both remember the turn, and it counts twice."""
    log = Commands()
    log.turns(0, 2)
    users = log.users()
    twice = Replayed({0: users.entities[0], 1: users.entities[0]}, users.outputs, 3, set())
    found = compare_tiers(log.sessions(), twice, POLICY)

    assert {"users' turns doubled": 3} == found.counts
    assert [UserId("a", "u")] * 2 == [user for user, _ in states_of(twice, POLICY)]
