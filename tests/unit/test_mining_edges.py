"""Archives at the edges: no mining job raises, and nothing is told where there is nothing to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from math import isfinite
from pathlib import Path

import pytest
from msgspec.structs import replace

from jobs.analyse.mining.job import Period
from jobs.analyse.mining.jobs import job_names, job_of
from models.events import SessionEnded, Turn
from streams.archive.catalog import LakePaths
from tests.lake_records import turn as lake_turn
from tests.mined_archive import landed, mined
from tests.mined_plan import BEGIN, FIRST

WORDS = "please tell me how the tulips in the garden grow from their bulbs"
HOT = [0.1] * 4 + [0.95] * 8
SECOND_DAY = FIRST + timedelta(days=1)


def session(
    n: int, risks: Sequence[float | None], *, app: str = "support", users: int = 9
) -> Iterator[Turn | SessionEnded]:
    """Ten minutes before midnight and on; the same words from everybody."""
    begun = BEGIN + timedelta(days=n % 2, hours=23, minutes=50)
    for turn, risk in enumerate(risks):
        said = lake_turn(turn, session_id=f"s-{n}", app_id=app, content=WORDS, risk=risk)
        yield replace(said, user_id=f"u-{n % users}", timestamp=begun + timedelta(minutes=turn))
    yield SessionEnded(session_id=f"s-{n}", timestamp=begun + timedelta(minutes=len(risks)))


def alone(folder: Path) -> LakePaths:
    """One session of one turn without a risk of its own."""
    return landed(folder, [session(0, [None])])


def alike(folder: Path) -> LakePaths:
    """Sessions that all alert at the same turn, in one app."""
    return landed(folder, [session(n, HOT) for n in range(30)])


def calm(folder: Path) -> LakePaths:
    """Sessions without any alert, each in an app of its own, one of them of 400 turns."""
    return landed(folder, [session(n, [0.05] * (400 if n == 0 else 9), app=f"app {n}") for n in range(40)])


PERIODS = {
    "both days": Period(FIRST, SECOND_DAY),
    "against the first": Period(SECOND_DAY, SECOND_DAY),
    "after the end": Period(FIRST + timedelta(days=30), FIRST + timedelta(days=31)),
}


@pytest.mark.parametrize("build", [alone, alike, calm])
def test_no_job_raises_at_the_edges(tmp_path: Path, build: Callable[[Path], LakePaths]) -> None:
    """Every job of every period, its pictures too; figures are numbers or nothing."""
    place = build(tmp_path / "archive")
    # After its end every archive is alike.
    periods = [period for name, period in PERIODS.items() if build is alone or name != "after the end"]
    results = [
        (job_of(name), mined(job_of(name), place, tmp_path / "mined", period=period))
        for period in periods
        for name in job_names()
    ]
    drawn = [picture.chart.to_dict() for job, result in results for picture in job.pictures(result.tables)]
    figures = [figure for _, result in results for figure in result.section.figures]

    assert len(periods) * len(job_names()) == len(results)
    assert all("$schema" in chart for chart in drawn)
    assert [] == [figure.name for figure in figures if figure.value is not None and not isfinite(figure.value)]
    if build is alone:
        assert [None] == list({figure.value for figure in figures})
