"""Which spaces the memory role tells that something is due, and when."""

from __future__ import annotations

from datetime import timedelta

from models.state.entity import DueEntity
from streams.roles.memory import REMIND_AGAIN_S, Reminders
from tests.support.app_driver import Space
from tests.support.entity_driver import NOON

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
