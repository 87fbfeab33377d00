"""What a folding role does by itself, it does for its own partitions."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from models.app.energy import SharedEnergy
from models.events import MemoryRequested, Position
from models.policy import Policy
from models.policy.app import EnergyPolicy
from models.risk.scorer import RuleScorer
from models.state.entity import DueEntity
from models.state.entity import DueEntity as DueWork
from streams.inference.wordllama import WordLlamaEmbedder
from streams.roles.memory import REMIND_AGAIN_S, MemoryRole, Reminders
from streams.roles.sessions import SessionsRole
from streams.settings import load_settings
from tests.support.answering_log import AnsweringLog
from tests.support.app_driver import Space
from tests.support.entity_driver import NOON


class Due:
    """A fold on which something is due since long."""

    watermark = datetime(2026, 1, 1, tzinfo=UTC)

    def next_deadline(self) -> datetime:
        """When."""
        return self.watermark


@pytest.mark.parametrize(("owned", "ticked"), [([1], [1]), ([], []), ([0, 1], [0, 1])])
async def test_the_clock_moves_only_in_partitions_that_are_owned(owned: list[int], ticked: list[int]) -> None:
    """A worker that lost one would go on writing into it beside its new owner."""
    role, log = SessionsRole(load_settings(), Policy(), WordLlamaEmbedder(), RuleScorer()), AnsweringLog()
    role.folds, role.producer = {0: Due(), 1: Due()}, log  # type: ignore[assignment, dict-item]
    role._last_record_s = {0: 0.0, 1: 0.0}
    role.shown.keep(owned)

    await role.on_idle()

    assert (sorted(log.partitions), len(log.writes)) == (ticked, len(ticked))


class Work:
    """Spaces or projects in which something is due."""

    def __init__(self, *due: Any) -> None:
        self._due = due

    def due(self, _now: datetime) -> list[Any]:
        """All of them."""
        return list(self._due)


def memory_role(*spaces: DueWork) -> tuple[MemoryRole, AnsweringLog]:
    """A role that owns the second of two partitions; in both these spaces and a project wait."""
    role, log = MemoryRole(load_settings(), Policy()), AnsweringLog()
    projects = Work(DueWork(Due.watermark, "a", "p", (1, 0)))
    progress, shared = {"app": Work(*spaces), "project": projects}, SharedEnergy(EnergyPolicy())
    fold: Any = SimpleNamespace(progress=progress, take_spent=lambda: (0.0, {}), shared=shared)
    role.folds, role.producer = {0: fold, 1: fold}, log  # type: ignore[assignment]
    role.shown.keep([1])
    return role, log


async def test_spaces_and_projects_are_told_that_their_work_can_go_on() -> None:
    """Once, and only where the worker writes: until it is folded, the same stays due."""
    role, log = memory_role(DueWork(Due.watermark, "a", "u"))
    await role.on_idle()
    await role.on_idle()

    assert log.keys == ["app:a/u", "project:a/p"]
    assert log.partitions == {1}


async def test_an_answer_is_missed_from_when_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from when it was first seen to be overdue, which is a whole time to answer later."""
    role, log = memory_role(DueWork(Due.watermark, "a", "", awaits_answer=True))
    head: dict[str, Any] = {"id": "i", "session_id": "s", "user_id": "u", "app_id": "a", "timestamp": Due.watermark}
    asked = MemoryRequested(
        **head, source=Position("t", 1, 0), space="app", request=1, summary="s", notables=[], turns=[]
    )
    now_s = 0.0
    monkeypatch.setattr("streams.roles.memory.monotonic", lambda: now_s)
    role.count(1, SimpleNamespace(outputs=[asked]))  # type: ignore[arg-type]
    now_s = Policy().apps.answer_within.total_seconds()
    await role.on_idle()

    assert "app:a" in log.keys


RESTED = [DueEntity(NOON, f"app{n}", "") for n in range(5)]
OVERDUE = DueEntity(NOON, "shop", "", awaits_answer=True)
MINUTE = timedelta(minutes=1)


def test_a_space_is_told_once_in_a_while() -> None:
    """Until what was told is folded, when something else is due, or nothing; only so many at once."""
    reminders, few = Reminders(MINUTE), Reminders(MINUTE)

    assert [len(few.choose(RESTED, float(beat), 2)) for beat in range(4)] == [2, 2, 1, 0]

    assert reminders.choose(RESTED[:2], 100.0, 9) == RESTED[:2]
    assert reminders.choose(RESTED[:3], 101.0, 9) == RESTED[2:3]
    assert reminders.choose([DueEntity(NOON + MINUTE, "app0", "")], 102.0, 9) == [DueEntity(NOON + MINUTE, "app0", "")]
    assert reminders.choose(RESTED[:3], 100.0 + REMIND_AGAIN_S, 9) == RESTED[:2]


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
