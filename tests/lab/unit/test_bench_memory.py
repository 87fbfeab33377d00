"""Memory is bounded by what is open: counted entries, and the command's report at a tiny size. Never megabytes."""

from datetime import timedelta

import pytest

from jobs.lab.bench.folds import InMemory
from jobs.lab.bench.memory import FILLED_TURNS, measure, streaming, take_turns
from models.partition.sessions import MAX_TIMEOUTS_PER_RECORD
from models.policy import PartitionPolicy, Policy

SEEN = 6_000
OPEN = 500
REMEMBERED = 250


def test_sessions_that_went_leave_nothing_behind() -> None:
    """6,000 seen, 500 open, 250 remembered: that many entries; without the bound all of a day would be kept."""
    policy = Policy(partition=PartitionPolicy(closed_sessions=REMEMBERED))
    held = InMemory(policy)
    arrivals = streaming(SEEN, policy.session.timeout / OPEN)
    entries, state_bytes = [], []
    while take_turns(held, arrivals, 1_200):
        entries.append(len(held.table.entities))
        state_bytes.append(held.table.size_bytes)

    assert held.fold.offset == 2 * SEEN - 1
    assert max(entries) <= OPEN + REMEMBERED + MAX_TIMEOUTS_PER_RECORD
    assert state_bytes[-1] <= 1.1 * state_bytes[2]

    policy = Policy(partition=PartitionPolicy(closed_sessions=10_000_000))
    held = InMemory(policy)
    take_turns(held, streaming(600, timedelta(minutes=1)), 1_200)

    assert len(held.table.entities) == 601


def test_the_report_says_what_a_session_takes_and_whether_it_is_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty milestones; the wanted number is open; every figure is there."""
    report = measure(sessions=600, open_at_once=100, filled=500)

    assert report["sessions"] == report["milestones"][-1]["seen"] == 600
    assert len(report["milestones"]) == 20
    assert 50 < report["most_open"] <= 100
    assert report["most_remembered"] > 400
    assert report["filled_turns"] == FILLED_TURNS
    assert report["mb_per_10000_sessions"] > 0
    assert 1_000 < report["state_bytes_per_session"] < 10_000
    assert report["level_ratio"] >= 1
    assert len(capsys.readouterr().err.splitlines()) == 21
