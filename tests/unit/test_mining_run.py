"""Running mining jobs: which days are made, what is kept and left out, what is printed, and what a failure does."""

import json
import shlex
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from jobs.analyse.mining import command
from jobs.analyse.mining.coverage import COUNTED, about
from jobs.analyse.mining.job import (
    Figure,
    Finding,
    Frames,
    Job,
    JobFindings,
    JobResult,
    JobWording,
    MiningInput,
    Period,
    TableWording,
)
from jobs.analyse.mining.run import failure_text, run
from jobs.analyse.mining.source import MiningSource, Tables
from models.errors import StoreUnavailable
from models.events import Turn
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import LakePaths, reading
from streams.archive.maintenance import maintain
from streams.archive.writer import LakeWriter
from tests.support.command_line import turntide
from tests.support.golden_text import assert_text
from tests.support.lake_records import buffer_of, paths
from tests.support.lake_records import turn as lake_turn

MONDAY = date(2026, 3, 2)
WEEK = Period(MONDAY, MONDAY + timedelta(days=6))
POLICY = ArchivePolicy()


def said(session: int, number: int, day: int, *, user: int | None = None) -> tuple[int, Turn]:
    """A turn of a session, received on a day of the week; every session has a user of its own unless told."""
    time = datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(days=day, seconds=number)
    owner = session if user is None else user
    turn = replace(lake_turn(number, session_id=f"s-{session}"), user_id=f"u-{owner}", timestamp=time)
    return day, turn


def put(place: LakePaths, said_turns: Iterable[tuple[int, Turn]], *, first: int = 0) -> None:
    """Land turns at the offsets from `first` on."""
    with closing(LakeWriter(place)) as writer:
        for _, of_day in groupby(said_turns, key=lambda each: each[0]):
            turns = [turn for _, turn in of_day]
            at = turns[0].timestamp
            writer.land(buffer_of(turns, first=first, expected=first or None, received=at), now=at)
            first += len(turns)


def counted(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, Any]:
    """Turns of each session."""
    turns = tables["turns"]
    return {"sessions": turns.group_by("day", "session_id", "user_id").agg(turns=turns.count())}


def summed(parts: Frames, asked: MiningInput) -> JobFindings:
    """Sessions by their number of turns."""
    sessions = parts["sessions"]
    before = asked.parts(asked.period.earlier).get("sessions", sessions.clear())
    whom = about(sessions)
    return JobFindings(
        figures=[
            Figure(name="turns", value=float(sessions["turns"].sum()), meaning="Turns.", **whom),
            Figure(
                name="turns_before", value=float(before["turns"].sum()), meaning="Turns of the week before.", **whom
            ),
        ],
        findings=[
            Finding(title="everything", text="", evidence="SELECT session_id, user_id FROM turns", strength=0.1),
            Finding(title="one", text="", evidence="SELECT session_id, user_id FROM turns LIMIT 1", strength=0.9),
        ],
        tables={"lengths": sessions.group_by("turns").agg(*COUNTED).sort("turns")},
    )


JOB = Job(
    name="lengths",
    about=JobWording(
        title="Lengths",
        question="How long are sessions?",
        grouped="session",
        reads=("turns",),
        tables={"lengths": TableWording("Lengths", "Sessions by turns.")},
    ),
    version=1,
    heavy=counted,
    find=summed,
)


class Mined:
    """Runs the job and remembers which days it made."""

    def __init__(self, folder: Path) -> None:
        self.place, self._root = paths(folder), folder / "mining"
        self.made: list[tuple[date, ...]] = []

    def __call__(self, job: Job = JOB, *, period: Period = WEEK, policy: ArchivePolicy = POLICY) -> JobResult:
        """Run it."""

        def remembered(frames: Frames, _policy: ArchivePolicy) -> Frames:
            self.made.append(tuple(sorted(frames["sessions"]["day"].unique())))
            return frames

        with reading(self.place) as con:
            return run(job._replace(refine=remembered), MiningSource(con), period, root=self._root, policy=policy)


@pytest.fixture
def mined(tmp_path: Path) -> Mined:
    """Six sessions of two turns on Monday, six of three from Tuesday to Wednesday."""
    runner = Mined(tmp_path)
    monday = [said(session, number, 0) for session in range(6) for number in range(2)]
    later = [said(session, number, 1 + number // 2) for session in range(10, 16) for number in range(3)]
    put(runner.place, [*monday, *later])
    return runner


def test_a_session_belongs_to_the_day_of_its_first_turn(mined: Mined) -> None:
    """Two days, though rows came on three; with other rules or another version all days are made again."""
    result = mined()
    mined(JOB._replace(version=2))
    mined(JOB._replace(version=2), policy=ArchivePolicy(mining_batch_rows=12))

    assert (MONDAY, MONDAY + timedelta(days=1)) == mined.made[0]
    assert [2, 2, 1, 1] == [len(days) for days in mined.made]
    assert [(2, 6), (3, 6)] == result.tables["lengths"].select("turns", "sessions").rows()


def test_late_rows_and_not_files_make_a_day_again(mined: Mined) -> None:
    """What was made is read again, for another period, too; a late row makes its session's day again alone."""
    first = mined()

    assert first.section == mined().section

    tuesday = mined(period=Period(MONDAY + timedelta(days=1), MONDAY + timedelta(days=1)))

    assert 1 == len(mined.made)
    assert [18.0, 12.0] == [figure.value for figure in tuesday.section.figures]

    put(mined.place, [said(3, 2, 4)], first=30)
    with closing(LakeWriter(mined.place)) as writer:
        now = datetime(2026, 3, 9, tzinfo=UTC)
        assert maintain(writer, now=now, keep_replaced=timedelta(0), everything=True).merged_files > 0

    result = mined()

    assert [(MONDAY,)] == mined.made[1:]
    assert 31.0 == result.section.figures[0].value


def test_a_run_that_was_cut_short_goes_on(mined: Mined) -> None:
    """The day that was made before it died is not made again."""
    one_day_each = ArchivePolicy(mining_batch_rows=1)

    class DiedError(Exception):
        """Stands for a kill."""

    def refine(frames: Frames, _policy: ArchivePolicy) -> Frames:
        if frames["sessions"]["day"][0] != MONDAY:
            raise DiedError
        return frames

    with reading(mined.place) as con, pytest.raises(DiedError):
        run(JOB._replace(refine=refine), MiningSource(con), WEEK, root=mined._root, policy=one_day_each)
    mined(policy=one_day_each)

    assert [(MONDAY + timedelta(days=1),)] == mined.made


def test_what_is_about_too_few_is_left_out(mined: Mined) -> None:
    """Sessions of one user are no pattern, nor are four users'; such a figure is empty. A table must say its users."""
    put(mined.place, [said(session, number, 3, user=99) for session in range(30, 40) for number in range(4)], first=30)
    put(mined.place, [said(session, number, 3) for session in range(50, 54) for number in range(5)], first=70)

    result = mined()

    with pytest.raises(ValueError, match="users"):
        mined(JOB._replace(find=lambda *_: JobFindings(tables={"lengths": pl.DataFrame({"turns": [1]})}), version=2))
    assert [2, 3] == result.tables["lengths"]["turns"].to_list()
    assert (2, 1) == (result.section.tables["lengths"].left_out, result.section.findings_left_out)
    assert ["everything"] == [shown.finding.title for shown in result.section.findings]

    (figure, *_) = mined(policy=ArchivePolicy(anonymity=AnonymityPolicy(min_users=18))).section.figures
    assert (None, 0, 0) == (figure.value, figure.sessions, figure.users)


def test_a_day_that_is_gone_is_forgotten(mined: Mined) -> None:
    """What an erasure took leaves the kept days with the next run."""
    mined()
    with closing(LakeWriter(mined.place)) as writer:
        writer.con.execute("DELETE FROM raw.turns WHERE date = ?", [MONDAY])

    result = mined()

    assert 18.0 == result.section.figures[0].value
    assert [str(MONDAY + timedelta(days=1))] == [place.name for place in (mined._root / "lengths" / "parts").iterdir()]


def test_days_whose_files_are_damaged_are_left_out_and_named(mined: Mined) -> None:
    """The rest is mined."""
    with reading(mined.place) as con:
        result = run(JOB, MiningSource(con, without={MONDAY}), WEEK, root=mined._root, policy=POLICY)

    assert ([MONDAY], 18.0) == (result.section.days_left_out, result.section.figures[0].value)


@pytest.fixture
def two_jobs(planted_home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """All jobs are two: escalation, of which the archive has findings, and the overview."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(planted_home))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(command, "JOB_NAMES", ("escalation", "overview"))
    return monkeypatch


def _failing(broken: str) -> object:
    done = command.mined

    def mined(name: str, source: MiningSource, period: Period) -> JobResult:
        if name == broken:
            raise ValueError("what somebody said")
        return done(name, source, period)

    return mined


@pytest.mark.usefixtures("two_jobs")
def test_findings_are_part_of_the_result_and_their_evidence_can_be_pasted() -> None:
    """On standard output, each query one word of a shell's line that the archive answers."""
    printed = turntide("mine", "escalation").stdout
    assert_text("mine-escalation", printed)

    evidence = shlex.split(printed[printed.index("turntide query ") :])[2]
    asked = turntide("query", evidence, "--output", "json")

    assert 0 == asked.exit_code
    assert {"session_id", "user_id"} <= json.loads(asked.stdout)[0].keys()


def test_job_that_fails_is_told_in_a_line_and_the_others_go_on(two_jobs: pytest.MonkeyPatch) -> None:
    """Without what its error says, which may be somebody's words; in JSON beside sections with the same fields."""
    two_jobs.setattr(command, "mined", _failing("escalation"))
    ran = turntide("mine", "all")
    failed, made = json.loads(turntide("mine", "all", "--output", "json").stdout)

    assert 1 == ran.exit_code
    assert "Overview, " in ran.stdout
    assert ["escalation could not be made: ValueError"] == [
        line.partition(" in ")[0] for line in ran.stderr.splitlines()
    ]
    assert "somebody" not in ran.output
    assert failed.keys() == made.keys()
    assert ("escalation", "overview", None) == (failed["job"], made["job"], made["failure"])
    assert failed["failure"].startswith("ValueError")


def test_our_own_errors_are_told_as_they_are_and_ctrl_c_is_none() -> None:
    """They hold no words of turns; DuckDB tells Ctrl-C as an error that was caused by it."""
    error = RuntimeError("Query interrupted")
    error.__cause__ = KeyboardInterrupt()

    assert "disk is full" == failure_text(StoreUnavailable("disk is full"))
    with pytest.raises(KeyboardInterrupt):
        failure_text(error)
