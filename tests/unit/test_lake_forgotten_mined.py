"""What must not come back by way of mining: words that retention took, half-made days, what was spilt to disk."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from jobs.analyse.mining.campaigns import JOB as CAMPAIGNS
from jobs.analyse.mining.job import Job
from jobs.analyse.mining.memory_health import JOB as MEMORY
from jobs.analyse.mining.run import Parts
from jobs.analyse.mining.source import Day, Source
from models.policy.archive import ArchivePolicy, RetentionPolicy
from streams.archive.catalog import LakePaths, reading, spill_folder
from streams.archive.retention import retain
from streams.archive.writer import LakeWriter
from tests.lake_records import NOW, buffer_of, paths, turn

_YOUNG = NOW + timedelta(days=20)
_DAY = date(2026, 3, 4)


@pytest.fixture
def place(tmp_path: Path) -> LakePaths:
    """A turn that is old enough to lose its words, and one that is not; of two sessions."""
    at = paths(tmp_path)
    with closing(LakeWriter(at)) as writer:
        writer.land(buffer_of([turn(0, session_id="s-1")], received=NOW), now=NOW)
        writer.land(buffer_of([turn(0, session_id="s-2")], first=1, expected=1, received=_YOUNG), now=_YOUNG)
    return at


def marks(place: LakePaths, job: Job) -> dict[date, Day]:
    """Of each day."""
    with reading(place) as con:
        return Source(con).days(job)


@pytest.mark.parametrize("job", [CAMPAIGNS, MEMORY], ids=["by session", "by date"])
def test_days_whose_words_went_are_made_again_everywhere(place: LakePaths, job: Job) -> None:
    """Rows stay where they are, yet an analyst's machine that kept signatures of words makes just that day again."""
    before = marks(place, job)
    with closing(LakeWriter(place)) as writer:
        retain(writer, RetentionPolicy(content_days=15), now=NOW + timedelta(days=25), policy_version="p-7")

    after = marks(place, job)

    assert [NOW.date(), _YOUNG.date()] == list(after)
    assert [True, False] == [before[day].mark != after[day].mark for day in after]


def test_a_half_made_day_of_a_killed_run_goes_with_the_next(tmp_path: Path) -> None:
    """It has ids of sessions, under a name that nobody asks for."""
    half = tmp_path / "parts" / f"{_DAY}.new"
    half.mkdir(parents=True)
    (half / "sessions.parquet").write_text("s-1")

    Parts(tmp_path, CAMPAIGNS, ArchivePolicy()).stale({_DAY: Day("mark", 1)})

    assert not half.exists()


def test_what_is_spilt_is_nobody_elses(tmp_path: Path) -> None:
    """Each connection has a folder of its own, in one that only the own user may enter."""
    root = tmp_path / "spill"

    folders = {spill_folder(root) for _ in range(2)}

    assert (2, {root}, 0o700) == (len(folders), {each.parent for each in folders}, root.stat().st_mode & 0o777)


def test_what_a_killed_process_spilt_goes_with_the_next_connection(tmp_path: Path) -> None:
    """What a living one has spilt stays."""
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left, kept = (tmp_path / f"{pid}-x" for pid in (int(dead.stdout), os.getpid()))
    for folder in (left, kept):
        folder.mkdir()
        (folder / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("what somebody said")

    spill_folder(tmp_path)

    assert [kept] == list(tmp_path.iterdir())


def test_connections_spill_there(place: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for each, of one process as well."""
    monkeypatch.setattr("tempfile.tempdir", str(Path(place.data).parent))
    setting = "SELECT current_setting('temp_directory')"
    with reading(place) as one, reading(place) as other:
        found = {Path(str(con.execute(setting).fetchall()[0][0])) for con in (one, other)}

    assert (2, {f"turntide-spill-{os.getuid()}"}) == (len(found), {folder.parent.name for folder in found})
