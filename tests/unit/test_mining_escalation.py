"""Escalation: slopes and changes of single curves, shapes, survival, and the planted archive."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from jobs.analyse.mining.escalation import JOB, app_table
from jobs.analyse.mining.escalation_shapes import described, name_of
from jobs.analyse.mining.job import JobResult
from models.policy.archive import ArchivePolicy, EscalationMining
from streams.archive.catalog import LakePaths
from tests.support.mined_archive import mined
from tests.support.mined_frames import sessions_of

POLICY = ArchivePolicy()
RULES = POLICY.escalation
STEP = np.repeat([0.1, 0.8], 10)


def points(curves: Mapping[str, NDArray[np.float64]]) -> pl.DataFrame:
    """Curves as `heavy` gives them."""
    rows = [(session, n, n, risk) for session, curve in curves.items() for n, risk in enumerate(curve)]
    return pl.DataFrame(rows, schema=["session_id", "point", "nth", "risk"], orient="row")


def ended(times: Sequence[tuple[str, int, int | None]], *, users: int = 1_000) -> pl.DataFrame:
    """Sessions of an app with their scored turns and the one at which they escalated."""
    apps, scored, at = zip(*times, strict=True)
    escalated = pl.Series(at, dtype=pl.Int64)
    return sessions_of(len(times), users=users, app_id=[*apps], scored=[*scored], escalated_at=escalated)


@pytest.mark.behaviour("card-09")
def test_slopes_withstand_outliers_and_rises_are_first() -> None:
    """Theil and Sen's median: one wild turn makes no rise; what does not move has neither slope nor rise."""
    curves = described(points({"falls": STEP[::-1], "flat": np.full(20, 0.1), "rises": STEP}), RULES)

    assert [("falls", None, 1), ("flat", None, None), ("rises", 11, 1)] == curves.select(
        "session_id", "change_at", "changes"
    ).rows()
    assert [False, None, True] == curves.select(pl.col("slope") > 0).to_series().to_list()

    rising, wild = np.linspace(0.1, 0.5, 21), np.linspace(0.1, 0.5, 21)
    wild[-1] = 0.0

    slopes = described(points({"rising": rising, "wild": wild}), RULES)["slope"]

    assert [0.02, 0.02] == slopes.round(3).to_list()


@pytest.mark.parametrize(
    ("curve", "name"),
    [
        ([0.1] * 20, "flat, low"),
        ([0.9] * 20, "flat, high"),
        ([0.1] * 4 + [0.8] * 16, "early rise, high"),
        ([0.1] * 10 + [0.3] * 10, "midway rise, low"),
        ([0.1] * 8 + [0.7] * 3 + [0.1] * 9, "midway peak, high"),
        ([0.7] * 6 + [0.1] * 8 + [0.7] * 6, "dip, high"),
    ],
)
def test_shapes_are_named_by_what_they_do(curve: list[float], name: str) -> None:
    """In words that need no picture."""
    assert name == name_of(np.array(curve), RULES)


def test_a_faster_app_is_found_and_a_shuffled_one_is_not() -> None:
    """Log-rank test of each app against the others."""
    times: list[tuple[str, int, int | None]] = [("fast", 20, 3 + n % 4) for n in range(40)]
    times += [("slow", 20, 15 if n % 3 == 0 else None) for n in range(80)]
    apps = np.random.default_rng(0).permutation([app for app, *_ in times])
    shuffled = [(str(app), scored, at) for app, (_, scored, at) in zip(apps, times, strict=True)]

    found = [dict(app_table(ended(each), POLICY).select("app_id", "faster").iter_rows()) for each in (times, shuffled)]

    assert [{"fast": True, "slow": False}, {"fast": None, "slow": None}] == found


def test_an_app_of_four_users_is_not_held_against_others() -> None:
    """However many their sessions are."""
    few, many = ended([("few", 20, 3)] * 40, users=4), ended([("many", 20, 15)] * 40)

    assert ["many"] == app_table(pl.concat([few, many]), POLICY)["app_id"].to_list()


def test_the_planted_week(ready_week: Callable[[str], JobResult], planted: LakePaths, tmp_path: Path) -> None:
    """Tutors' sessions rise early, the campaign's peaks are new: the evidence are just these. 40 of 70 sessions alert.

    The alert comes at the turn at which the risk changes.
    """
    section = ready_week("escalation").section
    found = {shown.finding.title: (shown.sessions, shown.users) for shown in section.findings}
    figures = {figure.name: figure.value for figure in section.figures}

    assert {
        "More sessions with the risk curve 'midway peak, high'": (12, 12),
        "Sessions of tutor escalate faster than others": (17, 17),
    } == found
    assert {
        "escalated_sessions_percent": 57.14,
        "median_turns_to_escalation": 6.0,
        "median_turns_from_change_to_alert": 0.0,
        "rising_sessions_percent": 32.86,
    } == figures

    # With few points for each curve the shapes are the same: means of the parts stand for their turns.
    coarse = ArchivePolicy(escalation=EscalationMining(curve_points=8))
    shapes = mined(JOB, planted, tmp_path, policy=coarse).tables["shapes"]

    assert 7 == shapes.filter(pl.col("shape") == "late rise, high")["sessions"].item()
