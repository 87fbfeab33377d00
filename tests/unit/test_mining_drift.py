"""Drift: what moved is found, what did not is not; probabilities that come true, and those that do not."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from jobs.analyse.mining import drift
from jobs.analyse.mining.job import ALL_APPS, JobResult, Period
from jobs.analyse.mining.run import run
from jobs.analyse.mining.source import MiningSource
from jobs.analyse.mining.wording import MEASURES, evidence
from models.policy.archive import ArchivePolicy, DriftMining
from streams.archive.catalog import LakePaths, reading
from tests.support.mined_archive import WEEK, mined
from tests.support.mined_frames import sessions_of

MONDAY = date(2026, 3, 9)
POLICY = ArchivePolicy()
BASELINE, NOW = Period(MONDAY - timedelta(days=28), MONDAY - timedelta(days=1)), Period(MONDAY, MONDAY)


def sessions(before: int, now: int, *, shift: float = 0.0, users: int = 50, seed: int = 0) -> pl.DataFrame:
    """So many sessions of each time; those of now have a mean risk that is higher by so many standard deviations."""
    random = np.random.default_rng(seed)
    count = before + now
    here = np.arange(count) >= before
    return sessions_of(
        count,
        users=users,
        app_id=["support" if n % 2 else "tutor" for n in range(count)],
        day=[MONDAY if each else MONDAY - timedelta(days=1 + n % 7) for n, each in enumerate(here)],
        mean_risk=random.normal(0, 1, count) + shift * here,
        turns=random.normal(0, 1, count),
        mode=random.choice(["calm", "watch"], count),
        here=here,
    )


def test_effects_are_those_of_scipy() -> None:
    """The AUC is U over all pairs, ties half; what all have moves nothing, a mode that nobody was in before does."""
    frame = sessions(40, 60, shift=0.5).with_columns(turns=pl.lit(7.0))
    was, is_now = (frame.filter(pl.col("here") == here)["mean_risk"].to_numpy() for here in (False, True))
    pairs = (is_now[:, None] > was).mean() + 0.5 * (is_now[:, None] == was).mean()

    of = (
        drift.compared(frame, POLICY)
        .filter(pl.col("app_id") == ALL_APPS)
        .rows_by_key("measure", named=True, unique=True)
    )

    assert [round(pairs, 4), round(stats.ks_2samp(was, is_now).statistic, 4)] == [
        of["mean_risk"]["auc"],
        of["mean_risk"]["ks"],
    ]
    assert [0.0, 0.5, 1.0] == pytest.approx([of["turns"][name] for name in ("psi", "auc", "p")], abs=0.01)
    assert drift.homogeneity(np.array([100, 0]), np.array([60, 40])) < 1e-6
    assert 1.0 == drift.homogeneity(np.array([100, 0]), np.array([60, 0]))


def test_a_planted_shift_is_found_and_nothing_else() -> None:
    """One standard deviation in one measure: of all apps and of each; of one population nothing is found."""
    found = drift.compared(sessions(400, 200, shift=1.0), POLICY)
    shifted = found.filter("shifted")

    assert [0] * 5 == [drift.compared(sessions(400, 200, seed=seed), POLICY)["shifted"].sum() for seed in range(5)]
    assert {"mean_risk"} == set(shifted["measure"])
    assert {ALL_APPS, "support", "tutor"} == set(shifted["app_id"])
    assert ["Shifted: mean risk of a session"] == [each.title for each in drift.findings(shifted, NOW, BASELINE)]


def test_significance_without_an_effect_is_no_shift() -> None:
    """A tenth of a standard deviation among 40,000 sessions."""
    found = drift.compared(sessions(20_000, 20_000, shift=0.1), POLICY).filter(
        (pl.col("measure") == "mean_risk") & (pl.col("app_id") == ALL_APPS)
    )

    assert found["p"].item() < POLICY.drift.significance
    assert not found["shifted"].item()


@pytest.mark.parametrize(("before", "now", "users"), [(29, 200, 50), (200, 29, 50), (200, 200, 4)])
def test_few_sessions_or_users_are_not_compared(before: int, now: int, users: int) -> None:
    """Neither few sessions as baseline or as period, nor many of four users."""
    assert 0 == drift.compared(sessions(before, now, shift=5.0, users=users), POLICY).height


def test_days_are_held_against_the_whole_baseline() -> None:
    """The shifted day stands out; a day of few sessions is not told of."""
    days = drift.by_day(sessions(700, 100, shift=2.0), POLICY).filter(pl.col("measure") == "mean_risk")
    few = drift.by_day(sessions(70, 100, shift=2.0), POLICY)

    assert 8 == days.height
    assert MONDAY == days.sort("psi")["day"][-1]
    assert {MONDAY} == set(few["day"])


def labels(count: int, *, honest: bool, seed: int = 0) -> pl.DataFrame:
    """Labelled alerts of one week, whose probabilities come true or not."""
    random = np.random.default_rng(seed)
    probability = random.uniform(0.4, 1.0, count)
    right = random.uniform(size=count) < (probability if honest else 0.1)
    week = datetime(2026, 3, 11, tzinfo=UTC)
    return sessions_of(count, fired_at=week, model="m-1", probability=probability, escalating=right.astype(np.int64))


def test_probabilities_that_come_true_are_told_from_those_that_do_not() -> None:
    """By the calibration error of the week, with the version of the scorer beside it."""
    honest, _, _ = drift.calibrated(labels(400, honest=True), DriftMining())
    wrong, bins, notes = drift.calibrated(labels(400, honest=False), DriftMining())

    assert [(date(2026, 3, 9), "m-1", 400)] == honest.select("week", "model", "labels").rows()
    # Two bins of one label each: errors 0.2 and 0.4; Brier 0.04 and 0.16.
    by_hand = pl.DataFrame({"week": 1, "probability": [0.2, 0.6], "escalating": [0, 1], "bin": [0, 1]})

    assert [(1, 0.1, 0.3)] == drift.calibration(by_hand, "week").rows()
    assert honest["calibration_error"].item() < 0.1
    assert wrong["calibration_error"].item() > 0.4
    assert bins.select((pl.col("right_low") < pl.col("right_ratio")).all()).item()
    assert [] == notes


def test_too_few_labels_are_said_to_be() -> None:
    """A share with its interval, no calibration; weeks are in order."""
    weeks, bins, notes = drift.calibrated(labels(10, honest=True), DriftMining())
    moved = [labels(10, honest=True).with_columns(pl.col("fired_at").dt.offset_by(f"{n}w")) for n in range(12)]
    several, *_ = drift.calibrated(pl.concat(moved), DriftMining())
    said = "1 of 1 weeks have too few labels (below 30) to tell of calibration."

    assert ([None], 0, [said]) == (weeks["brier"].to_list(), bins.height, notes)
    assert several["week"].is_sorted()


def test_the_planted_week_has_shifted(
    ready_week: Callable[[str], JobResult], planted: LakePaths, tmp_path: Path
) -> None:
    """Longer messages and higher risk are found, the number of turns is not; the first week has none before it."""
    measures = set(ready_week("drift").tables["measures"].filter("shifted")["measure"])

    assert {"user_turn_bytes", "mean_risk"} <= measures
    assert "turns" not in measures

    found = mined(drift.JOB, planted, tmp_path, period=WEEK.earlier)

    assert 0 == found.tables["measures"].height
    assert ["The baseline has fewer than 30 sessions: nothing is compared."] == found.section.notes[:1]


def test_a_crowded_day_keeps_the_same_few(planted: LakePaths, tmp_path: Path) -> None:
    """The draw is by the sessions' ids: two runs draw the same."""
    few = ArchivePolicy(drift=DriftMining(most_sessions_per_day=5, min_sessions=30))
    with reading(planted) as con:
        drawn = [run(drift.JOB, MiningSource(con), WEEK, root=tmp_path / name, policy=few) for name in ("a", "b")]

    assert drawn[0].tables["measures"].equals(drawn[1].tables["measures"])
    assert [35] == drawn[0].tables["measures"]["sessions"].unique().to_list()


def test_every_measure_has_evidence_that_can_be_asked_for(planted: LakePaths) -> None:
    """A row for each session of both times, with its value."""
    with reading(planted) as con:
        found = {
            name: con.sql(evidence("measure", WEEK, **drift.evidence_words(name, "planner", WEEK.earlier))).pl()
            for name in (*MEASURES, "signal_level")
        }

    for measure, rows in found.items():
        assert {"session_id", "user_id", "day", "in_period", measure} == set(rows.columns)
        assert [21, 21] == rows["in_period"].value_counts(sort=True)["count"].to_list()
