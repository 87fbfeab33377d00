"""What every mining job promises, on the planted archive and at the edges: no words, nobody named, nothing raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import ibis
import msgspec
import polars as pl
import pytest
from msgspec.structs import replace

from jobs.analyse.mining import run
from jobs.analyse.mining.job import JOB_NAMES, Job, JobResult, Period, job_of
from jobs.analyse.mining.pictures import pictures_of
from jobs.analyse.mining.source import Tables
from jobs.analyse.mining.wording import FIGURES
from jobs.shared.pictures import charts_of
from models.events import SessionEnded, Turn
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import LakePaths, reading
from tests.support.lake_records import turn as lake_turn
from tests.support.mined_archive import landed, mined
from tests.support.mined_plan import BEGIN, FIRST

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
KEPT = {
    "overview": {"kind", "summarised_by", "unread"},
    "alerts": {"category"},
    "topics": {"place"},
    "memory": {"layer"},
    "drift": {"mode", "model"},
}
"""Job → what it keeps of a day as text beside ids: names and codes of the product's own."""
NOT_DRAWN = {
    "Alerts per 1,000 sessions by day", "Topics by day", "Campaigns by day", "Day by day", "Probability and outcome",
    "Sessions by hour", "Share of right alerts by kind of harm",
}  # fmt: skip
"""Pictures of which the planted weeks have too little; hours are those of a single day."""


@pytest.fixture(scope="module", params=JOB_NAMES)
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
    made = {each.name for name in JOB_NAMES for each in week(name).section.figures}

    assert set(FIGURES) - {"users_episodes_tokens_kept_ratio"} == made


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
        job.heavy(Tables(read, grouped=job.about.grouped, cohort=first_days), ArchivePolicy())

    assert asked - set(job.about.reads) == set()


def test_pictures_are_drawn_of_what_is_shown(job: Job, result: JobResult) -> None:
    """Each described one is a chart that altair takes, but those of values that are all left out; of nothing none."""
    drawn = [picture.title for picture in pictures_of(job.name, result.tables) if picture.spec]
    described = charts_of("jobs/analyse/mining/pictures.yaml")[job.name]
    empty = {name: table.clear() for name, table in result.tables.items()}

    assert [about["title"] for about in described if about["title"] not in NOT_DRAWN] == drawn
    assert [] == [*pictures_of(job.name, empty), *pictures_of(job.name, {})]


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


def whispers(folder: Path) -> LakePaths:
    """Four users of an app of their own, who all alert, beside thirty sessions of others, of which half do."""
    others = [session(n, HOT if n % 4 < 2 else [0.05] * 12) for n in range(30)]
    return landed(folder, [*others, *(session(100 + n, HOT, app="whisper", users=200) for n in range(4))])


BOTH_DAYS = Period(FIRST, SECOND_DAY)
AGAINST_THE_FIRST = Period(SECOND_DAY, SECOND_DAY)
AFTER_THE_END = Period(FIRST + timedelta(days=30), FIRST + timedelta(days=31))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "periods"),
    [
        # After its end every archive is alike.
        (alone, [BOTH_DAYS, AGAINST_THE_FIRST, AFTER_THE_END]),
        (alike, [BOTH_DAYS, AGAINST_THE_FIRST]),
        (calm, [BOTH_DAYS, AGAINST_THE_FIRST]),
    ],
)
def test_no_job_raises_at_the_edges(
    tmp_path: Path, build: Callable[[Path], LakePaths], periods: Sequence[Period]
) -> None:
    """Every job of every period, its pictures too; figures are numbers or nothing."""
    place, jobs = build(tmp_path / "archive"), [job_of(name) for name in JOB_NAMES]
    results = [(job, mined(job, place, tmp_path / "mined", period=period)) for period in periods for job in jobs]
    drawn = [picture.spec for job, result in results for picture in pictures_of(job.name, result.tables)]
    figures = [figure for _, result in results for figure in result.section.figures]

    assert all("data" in chart for chart in drawn)
    assert all(isfinite(figure.value) for figure in figures if figure.value is not None)
    if build is alone:
        # Counts of alerts are always shown.
        assert {(True, 0), (False, None)} == {(figure.always, figure.value) for figure in figures}


def test_a_small_group_appears_nowhere(tmp_path: Path) -> None:
    """Neither in a finding, nor in a table, nor in a picture of any job; where one user is enough it does."""
    place = whispers(tmp_path / "archive")

    found = {}
    for least in (1, 5):
        policy = ArchivePolicy(anonymity=AnonymityPolicy(min_sessions=least, min_users=least))
        jobs = JOB_NAMES if least > 1 else ("overview", "escalation")
        shown = {name: everything_shown(job_of(name), place, tmp_path / str(least), policy) for name in jobs}
        found[least] = {name for name, text in shown.items() if "whisper" in text}

    assert {1: {"overview", "escalation"}, 5: set()} == found


def everything_shown(job: Job, place: LakePaths, folder: Path, policy: ArchivePolicy) -> str:
    """A job's section, tables and pictures in one text."""
    result = mined(job, place, folder, period=BOTH_DAYS, policy=policy)
    tables = [table.write_json() for table in result.tables.values()]
    pictures = [f"{picture.spec}" for picture in pictures_of(job.name, result.tables)]
    return "".join([f"{result.section}", *tables, *pictures])
