"""`turntide analyse mine`: what is printed, what a job's failure does to the rest, and what Ctrl-C does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from jobs.analyse.mining import command
from jobs.analyse.mining.command import quoted
from jobs.analyse.mining.job import Period
from jobs.analyse.mining.results import JobResult as Mined
from jobs.analyse.mining.results import failure_text
from jobs.analyse.mining.source import MiningSource
from models.errors import StoreUnavailable
from tests.support.command_line import turntide
from tests.support.golden_text import assert_text


@pytest.fixture
def two_jobs(planted_home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """All jobs are two: escalation, of which the archive has findings, and the overview."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(planted_home))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(command, "job_names", lambda: ("escalation", "overview"))
    return monkeypatch


def _failing(broken: str) -> object:
    done = command.mined

    def mined(name: str, source: MiningSource, period: Period) -> Mined:
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


@pytest.mark.parametrize("sql", ["SELECT 'a'", 'SELECT "a b"', "SELECT $1, 'a', \"b\"", "SELECT 'a'\nFROM `b` \\ !"])
def test_quoted_is_one_word(sql: str) -> None:
    """Whatever stands in it."""
    assert [sql] == shlex.split(quoted(sql))


def test_our_own_errors_are_told_as_they_are_and_ctrl_c_is_none() -> None:
    """They hold no words of turns; DuckDB tells Ctrl-C as an error that was caused by it."""
    error = RuntimeError("Query interrupted")
    error.__cause__ = KeyboardInterrupt()

    assert "disk is full" == failure_text(StoreUnavailable("disk is full"))
    with pytest.raises(KeyboardInterrupt):
        failure_text(error)
