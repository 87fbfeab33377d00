"""Findings are true: tests keep what they promise, estimates are those of the books, evidence is what is claimed."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

from jobs.analyse.mining.escalation import logrank_scores, survival_table
from jobs.analyse.mining.job import ALL_APPS, JOB_NAMES, JobResult, ShownFinding
from jobs.analyse.mining.statistics import ByUser
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from tests.support.mined_frames import sessions_of

WITH_DRUG = {6: 3, 7: 1, 10: 1, 13: 1, 16: 1, 22: 1, 23: 1}
WITH_DRUG_STILL_WELL = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
WITHOUT_DRUG = (1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23)
"""Weeks of remission of Freireich et al. 1963, the example of most textbooks of survival."""
CLAIM = re.compile(r"([\d,]+)(?: of (?:the |its )?[\d,]+)? (sessions|users|active facts)")


def dependent(seed: int, users: int) -> tuple[pl.Series, NDArray[np.bool_], NDArray[np.bool_]]:
    """Sessions whose users have habits of their own, in what group they are and in whether they alert."""
    random = np.random.default_rng(seed)
    of = np.repeat(np.arange(users), 1 + random.poisson(random.gamma(0.8, 10, users)))
    group = random.random(len(of)) < random.random(users)[of]
    hits = random.random(len(of)) < random.beta(0.4, 2.6, users)[of]
    return pl.Series(of), group, hits


def test_sessions_of_one_user_are_not_taken_for_many() -> None:
    """One in twenty is found at 0.05 where nothing is; with sessions as independent it would be one in seven."""
    drawn = [dependent(seed, 40) for seed in range(400)]
    chances = np.array([ByUser(users).share_chance(group, hits) for users, group, hits in drawn])
    tables = [[[(side & hit).sum() for hit in (y, ~y)] for side in (g, ~g)] for _, g, y in drawn]
    naive = [stats.fisher_exact(table).pvalue for table in tables]

    assert (chances <= 0.05).mean() <= 0.06
    assert (chances <= 0.01).mean() <= 0.015
    assert np.mean(np.array(naive) <= 0.05) > 0.12


def remissions() -> pl.DataFrame:
    """The trial as sessions: escalated is relapsed."""
    relapsed = [week for week, count in WITH_DRUG.items() for _ in range(count)]
    with_drug = len(relapsed) + len(WITH_DRUG_STILL_WELL)
    return sessions_of(
        with_drug + len(WITHOUT_DRUG),
        scored=[*relapsed, *WITH_DRUG_STILL_WELL, *WITHOUT_DRUG],
        escalated_at=[*relapsed, *[None] * len(WITH_DRUG_STILL_WELL), *WITHOUT_DRUG],
        app_id=["drug"] * with_drug + ["placebo"] * len(WITHOUT_DRUG),
    )


def test_survival_is_that_of_the_textbook() -> None:
    """6-mercaptopurine against placebo: 0.857 after six weeks, 0.448 after 23; 10.75 of the 21 relapses expected."""
    trial = remissions()
    scores = logrank_scores(trial, (trial["app_id"] == "placebo").to_numpy())
    with_drug = trial.filter(pl.col("app_id") == "drug")
    everybody = ArchivePolicy(anonymity=AnonymityPolicy(min_sessions=1, min_users=1))

    table = survival_table(with_drug, everybody).filter(pl.col("app") == ALL_APPS, pl.col("calm_percent") < 100)
    told = dict(table.select("scored_turn", pl.col("calm_percent").round(1)).iter_rows())

    assert 21 - 10.75 == pytest.approx(float(scores.sum()), abs=0.01)
    assert {6: 85.7, 7: 80.7, 10: 75.3, 13: 69.0, 16: 62.7, 22: 53.8, 23: 44.8} == {
        week: told[week] for week in WITH_DRUG
    }


def claimed(text: str) -> Iterator[tuple[str, int]]:
    """What a finding says that its evidence is about: unit and number."""
    for number, unit in CLAIM.findall(text):
        yield unit, int(number.replace(",", ""))


def test_evidence_is_what_is_claimed(ready_week: Callable[[str], JobResult]) -> None:
    """Each finding's query gives as many sessions, users or rows as the finding says last, or says in sum."""
    found = {name: ready_week(name).section.findings for name in JOB_NAMES}

    # How good alerts were stands in figures and tables alone.
    assert {*JOB_NAMES} - {"alerts"} == {name for name, findings in found.items() if findings}
    assert [] == [each.finding.title for findings in found.values() for each in findings if not is_so(each)]


def is_so(shown: ShownFinding) -> bool:
    """Whether the evidence is what is claimed."""
    claims = list(claimed(shown.finding.text))
    if not claims:
        return False
    unit, last = claims[-1]
    actual = {"sessions": shown.sessions, "users": shown.users, "active facts": shown.rows}[unit]
    return actual in {last, sum(number for other, number in claims if other == unit)}
