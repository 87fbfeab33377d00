"""`turntide analyse report` and the notebook on the planted archive: what is written, what fails, what is empty."""

import json
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from typer.testing import Result

from jobs.analyse.mining.command import mined
from jobs.analyse.mining.job import JobResult as Mined
from jobs.analyse.mining.job import Period, job_of
from jobs.analyse.mining.source import MiningSource
from jobs.analyse.report import command as command_module
from jobs.analyse.report import notebook_command
from models.errors import ConfigurationError
from streams.archive.writer import LakeWriter
from tests.support.command_line import turntide
from tests.support.golden_text import assert_text
from tests.support.lake_records import paths
from tests.support.mined_archive import WEEK
from tests.support.mined_plan import PLAN


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Where the page goes."""
    return tmp_path / "report.html"


def reported(data_dir: Path, page: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Run the command on an archive, of the overview alone unless told."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(data_dir))
    return turntide("report", "--to", str(page), "--job", "overview", *arguments)


def test_page_is_written_and_told(planted_home: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest week is held against the one before; what is kept is used as it is, unless asked otherwise."""
    marker = planted_home / "mining" / "overview" / "parts" / "2026-03-09" / "made-of.txt"
    ran = reported(planted_home, page, monkeypatch, "--output", "json")

    first = marker.stat().st_mtime_ns
    again = reported(planted_home, page, monkeypatch)
    kept = marker.stat().st_mtime_ns
    reported(planted_home, page, monkeypatch, "--refresh")

    told = json.loads(ran.stdout)
    assert ran.exit_code == 0
    assert ("2026-03-09", "2026-03-15", str(page)) == (told["since"], told["until"], told["page"])
    assert first == kept < marker.stat().st_mtime_ns
    assert 70 == told["figures"]["sessions"]
    assert "9 March to 15 March 2026, held against 2 March to 8 March 2026" in page.read_text("utf-8")
    assert_text("report", again.stdout, volatile={r"/\S+": "PAGE"})


def test_failing_jobs_spoil_nothing(planted_home: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that raises is told by its error's kind, never by what it says, which may be somebody's words.

    One that fails for the earlier period costs the comparison alone: what was made is shown, with its pictures.
    """
    words = "what somebody said"

    def failing(name: str, source: MiningSource, period: Period) -> Mined:
        if name == "drift":
            raise duckdb.ConversionException(words)
        if period == WEEK.earlier:
            raise ZeroDivisionError
        return mined(name, source, period)

    monkeypatch.setattr(command_module, "job_of", lambda _: job_of("overview"))
    monkeypatch.setattr(command_module, "mined", failing)
    ran = reported(planted_home, page, monkeypatch, "--job", "drift", "--output", "json")

    told, written = json.loads(ran.stdout), page.read_text("utf-8")
    assert ran.exit_code == 1
    assert ["ConversionException", "ZeroDivisionError"] == [
        told["failed"][name].partition(" in ")[0] for name in ("drift", "overview")
    ]
    assert 70 == told["figures"]["sessions"]
    assert "could not be made as a whole: ConversionException in " in written
    assert 4 == written.count('class="picture"')
    assert words not in ran.output + written


def test_periods_and_archives_without_rows_are_pages_that_say_so(
    planted_home: Path, page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing was received in 2020, or nothing landed yet: no error."""
    ran = reported(planted_home, page, monkeypatch, "--since", "2020-01-01", "--until", "2020-01-02")

    assert ran.exit_code == 0
    assert "holds nothing of this period" in page.read_text("utf-8")

    (tmp_path / "archive").mkdir()
    with closing(LakeWriter(paths(tmp_path / "archive"))):
        pass

    ran = reported(tmp_path, page, monkeypatch)

    assert ran.exit_code == 0
    assert "The archive is empty" in page.read_text("utf-8")


@pytest.mark.parametrize(
    "arguments",
    [["--job", "nonsense"], ["--pdf", "/nowhere/at/all.pdf"], ["--since", "2026-03-09", "--until", "2026-03-01"]],
)
def test_wrong_asking_is_refused_before_anything_is_written(
    planted_home: Path, page: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """A job that does not exist, a folder that does not, a period that is none."""
    ran = reported(planted_home, page, monkeypatch, *arguments)

    assert isinstance(ran.exception, ConfigurationError)
    assert not page.exists()


def test_notebook_runs_on_the_archive(planted_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell runs, and its values are those of the plan."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(planted_home))

    found = notebook_command.checked()

    assert len(PLAN) == found["sessions"]
    assert 2 * sum(each.questions for each in PLAN) == found["turns"]
    assert {"users": 31, "apps": 3, "points": 10} == {name: found[name] for name in ("users", "apps", "points")}


def test_notebook_of_yours_is_kept(tmp_path: Path) -> None:
    """A copy is made once; what somebody changed in it stays."""
    place = tmp_path / "notebook.py"

    notebook_command.copied(place)
    fresh = place.read_text("utf-8")
    place.write_text("mine", "utf-8")
    notebook_command.copied(place)

    assert "marimo.App" in fresh
    assert "mine" == place.read_text("utf-8")
