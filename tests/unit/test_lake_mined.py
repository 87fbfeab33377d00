"""What mining keeps goes with every removal and does not come back; a run that is at work is waited for."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

import pytest
from filelock import FileLock

from jobs.analyse.mining.campaigns import JOB as CAMPAIGNS
from jobs.analyse.mining.job import Job
from jobs.analyse.mining.memory import JOB as MEMORY
from jobs.analyse.mining.run import DayParts
from jobs.analyse.mining.source import Day, MiningSource
from models.errors import ConfigurationError, StoreUnavailable
from models.events.erase import ErasedStore
from models.policy.archive import ArchivePolicy, RetentionPolicy
from streams.archive import removal
from streams.archive.catalog import LakePaths, reading, spill_folder
from streams.archive.removal import LOCK, forget_mined
from streams.archive.retention import retain
from streams.archive.writer import LakeWriter
from streams.erase.archive import WriterArchive
from tests.support.lake_records import NOW, buffer_of, paths, turn
from tests.support.subjects import of_session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs, three kept days, a result, a file that is nobody's."""
    for kept in ("drift/parts/2026-03-04", "topics/parts/2026-03-04", "topics/parts/2026-03-05", "topics/results/a"):
        _keep(tmp_path / kept)
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def _keep(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "sessions.parquet").write_text("s-1")


@contextmanager
def _waiting(work: Callable[[Path], None]) -> Iterator[list[str]]:
    """While a lock is waited for, something happens in its folder; the names of the folders, as they come."""
    waited: list[str] = []

    class Lock(FileLock):
        def acquire(self, *arguments: Any, **options: Any) -> Any:
            job = Path(self.lock_file).parent
            waited.append(job.name)
            work(job)
            return super().acquire(*arguments, **options)

    with patch.object(removal, "FileLock", Lock):
        yield waited


def forgotten(looked_at: int, removed: int) -> ErasedStore:
    """What is told of days."""
    return ErasedStore(store="mined days", looked_at=looked_at, removed=removed, remaining=looked_at - removed)


def test_days_and_results_go(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Counted are days, and those that cannot be removed told; where nothing was mined no folder is made."""
    nothing = tmp_path_factory.mktemp("nothing")
    with patch("shutil.rmtree"):
        assert forgotten(3, 0) == forget_mined(folder)

    assert forgotten(3, 3) == forget_mined(folder)
    assert {LOCK, "notes.txt"} == {path.name for path in folder.rglob("*") if path.is_file()}
    assert forgotten(0, 0) == forget_mined(nothing / "mining")
    assert [] == list(nothing.iterdir())


def test_what_a_run_at_work_writes_goes_too(folder: Path) -> None:
    """It read the rows before they went; what it writes before it lets go of the lock is removed with the rest."""
    holds, asked = Event(), Event()

    def mine() -> None:
        with FileLock(folder / "topics" / LOCK):
            holds.set()
            asked.wait()
            _keep(folder / "topics" / "parts" / "2026-03-09")

    running = Thread(target=mine)
    running.start()
    holds.wait()
    with _waiting(lambda job: asked.set() if job.name == "topics" else None) as waited:
        found = forget_mined(folder)
    asked.set()
    running.join()

    assert ["drift", "topics"] == waited
    assert forgotten(4, 4) == found
    assert [] == list(folder.rglob("*.parquet"))


async def test_the_role_lands_on_while_it_waits(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The archive's rows have gone by then, and nobody holds its writer."""
    place, alone = paths(tmp_path_factory.mktemp("archive")), asyncio.Lock()
    seen: list[tuple[bool, int]] = []

    def look(_job: Path) -> None:
        with reading(place) as con:
            seen.append((alone.locked(), len(con.execute("FROM turns").fetchall())))

    with closing(LakeWriter(place)) as writer:
        writer.land(buffer_of([turn(0), turn(0, session_id="s-2")]), now=NOW)
        archive = WriterArchive(writer, alone, lambda: None, folder)
        with _waiting(look):
            proof = await archive.erase(of_session("s-1"))

    assert [(False, 1), (False, 1)] == seen
    assert forgotten(3, 3) == proof[-1]


def test_what_is_mined_anew_meanwhile_is_nobodys(folder: Path) -> None:
    """A job that begins once its folder is forgotten, while another one is waited for, reads what is left."""
    with _waiting(lambda job: _keep(folder / "drift/parts/2026-03-09") if job.name == "topics" else None):
        found = forget_mined(folder)

    assert forgotten(3, 3) == found
    assert ["drift"] == [path.parents[2].name for path in folder.rglob("*.parquet")]


def test_a_run_that_does_not_end_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the erasure stays pending and is tried again; nothing of that job is touched meanwhile."""
    monkeypatch.setattr(removal, "_TIMEOUT_S", 0)

    with (
        FileLock(folder / "topics" / LOCK),
        pytest.raises(StoreUnavailable, match="`turntide analyse mine topics` is working"),
    ):
        forget_mined(folder)

    assert 3 == len(list(folder.glob("topics/*/*")))
    assert 2 == forget_mined(folder).removed


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
        return MiningSource(con).days(job)


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

    DayParts(tmp_path, CAMPAIGNS, ArchivePolicy()).stale({_DAY: Day("mark", 1)})

    assert not half.exists()


@pytest.mark.parametrize("theirs", ["open to others", "a link"])
def test_rows_are_not_spilt_for_others_to_read(tmp_path: Path, theirs: str) -> None:
    """A folder that somebody else put there first is refused: its name can be guessed."""
    root = tmp_path / "spill"
    if theirs == "a link":
        root.symlink_to(tmp_path)
    else:
        root.mkdir()
        root.chmod(0o755)

    with pytest.raises(ConfigurationError, match="not private to this user"):
        spill_folder(root)


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
    """A folder for each, of one process as well, in one that only the own user may enter."""
    monkeypatch.setattr("tempfile.tempdir", str(Path(place.data).parent))
    setting = "SELECT current_setting('temp_directory')"
    with reading(place) as one, reading(place) as other:
        found = {Path(str(con.execute(setting).fetchall()[0][0])) for con in (one, other)}
        (root,) = {folder.parent for folder in found}

    assert (2, f"turntide-spill-{os.getuid()}", 0o700) == (len(found), root.name, root.stat().st_mode & 0o777)
