"""What mining keeps goes with every removal; a run that is at work is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

import pytest
from filelock import FileLock

from models.erasure import Subject
from models.errors import StoreUnavailable
from models.events.erase import ErasedStore
from streams.archive import mined
from streams.archive.catalog import reading
from streams.archive.mined import LOCK, forget_mined
from streams.archive.writer import LakeWriter
from streams.erase.archive import WriterArchive
from tests.lake_records import NOW, buffer_of, paths, turn


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

    with patch.object(mined, "FileLock", Lock):
        yield waited


def test_days_and_results_go(folder: Path) -> None:
    """Counted are days; the job's folder, its lock and foreign files may stay."""
    forgotten = forget_mined(folder)

    assert ErasedStore(store="mined days", looked_at=3, removed=3, remaining=0) == forgotten
    assert {LOCK, "notes.txt"} == {path.name for path in folder.rglob("*") if path.is_file()}


def test_nothing_was_mined(tmp_path: Path) -> None:
    """There is no folder, and none is made."""
    forgotten = forget_mined(tmp_path / "mining")

    assert ErasedStore(store="mined days", looked_at=0, removed=0, remaining=0) == forgotten
    assert [] == list(tmp_path.iterdir())


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
        forgotten = forget_mined(folder)
    asked.set()
    running.join()

    assert ["drift", "topics"] == waited
    assert ErasedStore(store="mined days", looked_at=4, removed=4, remaining=0) == forgotten
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
            proof = await archive.erase(Subject("session", session_ids=frozenset({"s-1"})))

    assert [(False, 1), (False, 1)] == seen
    assert ErasedStore(store="mined days", looked_at=3, removed=3, remaining=0) == proof[-1]


def test_what_is_mined_anew_meanwhile_is_nobodys(folder: Path) -> None:
    """A job that begins once its folder is forgotten, while another one is waited for, reads what is left."""
    with _waiting(lambda job: _keep(folder / "drift/parts/2026-03-09") if job.name == "topics" else None):
        forgotten = forget_mined(folder)

    assert ErasedStore(store="mined days", looked_at=3, removed=3, remaining=0) == forgotten
    assert ["drift"] == [path.parents[2].name for path in folder.rglob("*.parquet")]


def test_days_that_cannot_be_removed_are_told(folder: Path) -> None:
    """The proof is not complete then."""
    with patch("shutil.rmtree"):
        forgotten = forget_mined(folder)

    assert ErasedStore(store="mined days", looked_at=3, removed=0, remaining=3) == forgotten


def test_a_run_that_does_not_end_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the erasure stays pending and is tried again; nothing of that job is touched meanwhile."""
    monkeypatch.setattr(mined, "_TIMEOUT_S", 0)

    with FileLock(folder / "topics" / LOCK), pytest.raises(StoreUnavailable, match="`turntide mine topics` is at work"):
        forget_mined(folder)

    assert 3 == len(list(folder.glob("topics/*/*")))
    assert 2 == forget_mined(folder).removed
