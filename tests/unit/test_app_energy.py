"""The energy budget of a space: what work costs, when it may begin, and what waits meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from models.app.energy import Energy, Work, begins_at, cost_units, level_units, may_begin
from models.events import AppMemoriesChanged
from models.policy.app import EnergyPolicy
from tests.support.app_driver import Space
from tests.support.entity_driver import NOON

POLICY = EnergyPolicy(capacity_units=100, refill_units_per_hour=60)


@pytest.mark.parametrize(
    ("work", "tokens", "seconds", "units"),
    [
        ("creation", 0, 0, 10),
        ("creation", 1_000, 0, 12),
        ("creation", 1_000, 2, 14),
        ("creation", 0, 30, 15),
        ("creation", 2**31, 2**31 / 1_000, 15),
        ("compaction", 0, 0, 20),
        ("compaction", 500, 1.5, 22.5),
        ("compaction", 0, 30, 30),
    ],
)
def test_work_costs_what_it_took_within_its_limits(work: Work, tokens: int, seconds: float, units: float) -> None:
    """App memory: 10-15 and 20-30 units; by tokens and time."""
    assert cost_units(work, tokens, timedelta(seconds=seconds), POLICY) == pytest.approx(units)


def test_the_budget_refills_up_to_its_capacity() -> None:
    """With time, not with events; a clock that goes back takes nothing away."""
    energy = Energy(20.0, NOON)
    minutes = (-60, 0, 30, 79, 80, 100_000)

    assert [level_units(energy, NOON + timedelta(minutes=n), POLICY) for n in minutes] == [20, 20, 50, 99, 100, 100]
    assert level_units(None, NOON, POLICY) == 100


@pytest.mark.parametrize(("level", "begins"), [(19.9, False), (20.0, False), (20.1, True), (100.0, True)])
def test_work_begins_above_the_floor_only(level: float, begins: bool) -> None:
    """App memory: only when energy > 20 %."""
    assert may_begin(Energy(level, NOON), NOON, POLICY) is begins


@pytest.mark.parametrize("level", [0.0, 7.77, 19.999, 20.0])
def test_when_work_begins_again_is_known(level: float) -> None:
    """At that time it may, and hardly before."""
    energy = Energy(level, NOON)
    at = begins_at(energy, POLICY)

    assert at is not None
    assert may_begin(energy, at, POLICY)
    assert not may_begin(energy, at - timedelta(milliseconds=2), POLICY)


def poor(capacity: float = 50.0, **apps: Any) -> Space:
    """A space whose energy is for few memories: above 10 of 50 units one may begin, 60 come back in an hour."""
    return Space(energy={"capacity_units": capacity, "refill_units_per_hour": 60.0}, **apps)


def test_without_energy_conversations_wait_and_none_is_lost() -> None:
    """Deferred, not dropped: they become memories in their order when energy is back."""
    space = poor()
    for _ in range(7):
        space.end()
        space.store()
    assert (len(space.active), space.stats.waiting) == (4, 3)
    assert space.stats.energy_units <= 10
    for left in (2, 1, 0):
        due = space.due
        assert due is not None
        space.now = due - timedelta(seconds=1)
        space.wait()
        space.store()
        assert space.stats.waiting == left

    assert [m.session_id for m in space.active.values()] == [f"s{n}" for n in range(7)]
    assert space.due is None


def test_the_candidate_waits_for_energy_too() -> None:
    """It is told of when there is energy to decide which goes."""
    space = poor(capacity=35.0, most=2, most_pinned=0, redundant_similarity=1.0)
    space.fill(3)
    assert (len(space.active), space.stats.waiting, space.compactions, space.stats.created) == (2, 1, [], 3)
    space.store()
    space.wait(hours=1)

    assert (space.stats.waiting, len(space.compactions), space.stats.memories) == (0, 1, 2)


def test_spending_is_told_by_kind() -> None:
    """For the metric, beside the sum of all time that readers see."""
    space = Space(most=2, most_pinned=0)
    space.fill(3)
    spent = dict(space.state.spent)

    assert set(spent) == {"creation", "compaction"}
    assert 30 <= spent["creation"] <= 45
    assert 20 <= spent["compaction"] <= 30
    assert space.stats.spent_units == pytest.approx(sum(spent.values()))
    assert [s.spent_units for s in space.of(AppMemoriesChanged)] == sorted(
        s.spent_units for s in space.of(AppMemoriesChanged)
    )
