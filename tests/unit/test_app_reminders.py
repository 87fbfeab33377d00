"""Which spaces the memory role tells that something is due, and when."""

from __future__ import annotations

from datetime import timedelta

from models.state.entity import DueEntity
from streams.roles.memory import REMIND_AGAIN_S, Reminders
from tests.app_driver import Space
from tests.entity_driver import NOON

RESTED = [DueEntity(NOON, f"app{n}", "") for n in range(5)]
OVERDUE = DueEntity(NOON, "shop", "", awaits_answer=True)
MINUTE = timedelta(minutes=1)


def test_a_space_is_told_once_in_a_while() -> None:
    """Until what was told is folded, when something else is due, or nothing."""
    reminders = Reminders(MINUTE)

    assert reminders.choose(RESTED[:2], 100.0, 9) == RESTED[:2]
    assert reminders.choose(RESTED[:3], 101.0, 9) == RESTED[2:3]
    assert reminders.choose([DueEntity(NOON + MINUTE, "app0", "")], 102.0, 9) == [DueEntity(NOON + MINUTE, "app0", "")]
    assert reminders.choose(RESTED[:3], 100.0 + REMIND_AGAIN_S, 9) == RESTED[:2]


def test_only_so_many_are_told_at_once() -> None:
    """The rest with the next beat."""
    reminders = Reminders(MINUTE)

    assert [len(reminders.choose(RESTED, float(beat), 2)) for beat in range(4)] == [2, 2, 1, 0]


def test_an_answer_is_overdue_only_if_there_was_time_for_it() -> None:
    """Behind a long log the request has gone out this moment, whatever the log's clock says; others do not wait."""
    space, reminders = Space(ask=True), Reminders(MINUTE)
    space.end()
    reminders.asked(space.asked_for_memories[0], 100.0)

    assert reminders.choose([OVERDUE, RESTED[0]], 101.0, 9) == [RESTED[0]]
    assert reminders.choose([OVERDUE], 159.0, 9) == []
    assert reminders.choose([OVERDUE], 160.0, 9) == [OVERDUE]
    assert reminders.choose([OVERDUE], 161.0, 9) == []
    assert reminders.choose([OVERDUE], 160.0 + REMIND_AGAIN_S, 9) == [OVERDUE]


def test_a_worker_that_begins_gives_time_anew() -> None:
    """It does not know when requests of before went out."""
    reminders = Reminders(MINUTE)

    assert [bool(reminders.choose([OVERDUE], now_s, 9)) for now_s in (5.0, 64.0, 65.0)] == [False, False, True]


def test_what_was_answered_is_forgotten() -> None:
    """The next request of the space has its own time."""
    space, reminders = Space(ask=True), Reminders(MINUTE)
    space.end()
    reminders.asked(space.asked_for_memories[0], 0.0)
    reminders.asked(space.asked_for_memories[0], 50.0)

    assert reminders.choose([OVERDUE], 100.0, 9) == []
    assert reminders.choose([], 100.0 + 60 + 2 * REMIND_AGAIN_S, 9) == []
    assert reminders.choose([OVERDUE], 300.0, 9) == []
