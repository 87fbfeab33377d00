"""What every mining job promises, on the planted archive: no words, and nobody named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import ibis
import msgspec
import polars as pl
import pytest

from jobs.analyse.mining import run
from jobs.analyse.mining.job import Job, job_names, job_of
from jobs.analyse.mining.results import JobResult
from jobs.analyse.mining.source import Tables
from jobs.analyse.mining.wording import figure_names
from jobs.shared.pictures import charts_of
from models.policy.archive import ArchivePolicy
from streams.archive.catalog import LakePaths, reading

if TYPE_CHECKING:
    import ibis.expr.types as ir

VIEWS = {
    "alert_changes": "alerts",
    "alert_labels": "controls",
    "profile_history": "profiles",
    "segments": "compactions",
    "topic_changes": "topics",
}
"""View → the table that it is of, where it has another name."""
IDS = {"session_id", "user_id", "app_id"}
KEPT = {"overview": {"kind", "summarised_by"}, "topics": {"place"}, "memory": {"layer"}, "drift": {"mode", "model"}}
"""Job → what it keeps of a day as text beside ids: names of the product's own."""
NOT_DRAWN = {
    "Alerts per 1,000 sessions by day", "Topics by day", "Campaigns by day", "Day by day", "Probability and outcome",
}  # fmt: skip
"""Pictures of which the planted weeks have too little."""


@pytest.fixture(scope="module", params=job_names())
def job(request: pytest.FixtureRequest) -> Job:
    """Each job there is."""
    return job_of(request.param)


@pytest.fixture(scope="module")
def result(job: Job, week: Callable[[str], JobResult]) -> JobResult:
    """The second week held against the first."""
    return week(job.name)


def test_nothing_shown_names_a_session_or_user(result: JobResult) -> None:
    """Neither in words nor in evidence nor in tables."""
    tables = "".join(table.write_csv() for table in result.tables.values())
    shown = msgspec.json.encode(result.section).decode() + tables

    assert [mark for mark in ("s-07", "s-08", "s-13", "u-0", "u-1") if mark in shown] == []


def test_one_place_decides_what_is_shown() -> None:
    """What runs the jobs: none of them leaves something out by itself."""
    modules = Path(run.__file__).parent.glob("*.py")

    assert ["run.py"] == [file.name for file in modules if "mining.anonymity import" in file.read_text()]


def test_every_figure_has_its_words(week: Callable[[str], JobResult]) -> None:
    """Those that no job makes have none; users' episodes are not in this archive."""
    made = {each.name for name in job_names() for each in week(name).section.figures}

    assert figure_names() - {"users_episodes_tokens_kept_ratio"} == made


@pytest.mark.usefixtures("result")
def test_what_is_kept_of_a_day_holds_no_words(job: Job, mining_folder: Path) -> None:
    """Only ids and names of the product's own are strings."""
    kept = [pl.read_parquet_schema(file) for file in (mining_folder / job.name / "parts").rglob("*.parquet")]
    strings = {name for schema in kept for name, kind in schema.items() if kind == pl.String}

    assert IDS | KEPT.get(job.name, set()) == strings


def test_days_are_marked_by_all_that_is_read(job: Job, planted: LakePaths) -> None:
    """A day is made again when rows change that the job looks at: each view's table is among those it names."""
    asked: set[str] = set()
    with reading(planted) as con:
        views = ibis.duckdb.from_connection(con)

        def read(view: str) -> ir.Table:
            asked.add(VIEWS.get(view, view))
            return views.table(view)

        turns = views.table("turns")
        first_days = turns.group_by("session_id").agg(day=turns.date.min())
        job.heavy(Tables(read, grouped=job.grouped, cohort=first_days), ArchivePolicy())

    assert asked - set(job.reads) == set()


def test_pictures_are_drawn_of_what_is_shown(job: Job, result: JobResult) -> None:
    """Each described one is a chart that altair takes, but those of values that are all left out; of nothing none."""
    drawn = [picture.title for picture in job.pictures(result.tables) if picture.spec]
    described = charts_of("jobs/analyse/mining/pictures.yaml")[job.name]
    empty = {name: table.clear() for name, table in result.tables.items()}

    assert [about["title"] for about in described if about["title"] not in NOT_DRAWN] == drawn
    assert [] == [*job.pictures(empty), *job.pictures({})]
