"""What Qdrant Edge promises beyond the port: one owner, and nothing acknowledged is lost."""

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from models.errors import ConfigurationError, StoreUnavailable
from streams.index.edge import EdgeStore
from streams.index.edge_shard import SPARE_BYTES, EdgeCollection
from streams.ports import Point
from tests.support import edge_child


def _points(turns: range) -> list[Point]:
    return [Point(f"a_{turn}", np.ones(4, dtype=np.float32), {"session_id": "a", "turn": turn}) for turn in turns]


@pytest.mark.parametrize("turns", [1, 20, 200])
async def test_a_killed_writer_loses_nothing_it_was_told_is_durable(tmp_path: Path, turns: int) -> None:
    """Kill -9 in the midst of writing: every acknowledged turn is there, and the lock is free."""
    arguments = [sys.executable, "-m", edge_child.__name__, str(tmp_path), "0", "100000", "0"]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220, S603 - our own module
    assert writer.stdout
    for _ in range(turns):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    acknowledged = turns + len(writer.stdout.read().split())
    writer.wait()
    store = EdgeStore(tmp_path, embedder="test")
    latest = await store.latest("turns", where={"session_id": "s"}, by="turn", limit=1_000_000)
    await store.upsert("turns", [])
    await store.close()

    assert set(range(acknowledged)) <= {payload["turn"] for payload in latest}
    assert len(latest) - acknowledged in {0, 1}


async def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    """A second opener reads which process has the folder and what to do; after closing it is free."""
    owner = EdgeStore(tmp_path, embedder="test")
    with pytest.raises(ConfigurationError, match=r"is open in process \d+.*vectors\.url"):
        EdgeStore(tmp_path, embedder="test")
    await owner.close()
    await owner.close()
    successor = EdgeStore(tmp_path, embedder="test")

    assert await successor.count("turns") == 0
    await successor.close()


async def test_a_collection_half_made_is_made_anew(tmp_path: Path) -> None:
    """A process that died while creating leaves a shard without its info file."""
    first = EdgeStore(tmp_path, embedder="test")
    await first.upsert("turns", _points(range(3)))
    await first.close()
    (tmp_path / "turns" / "collection.json").unlink()
    again = EdgeStore(tmp_path, embedder="test")

    assert await again.count("turns") == 0
    await again.upsert("turns", _points(range(2)))
    assert await again.count("turns") == 2
    await again.close()


async def test_writers_at_the_same_time_are_all_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait share a flush, and no write returns before a flush that began after it."""
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert("turns", _points(range(1)))
    events: list[str] = []
    write, flush = store._upsert, store._flush_one

    def recorded_write(collection: str, points: Sequence[Point]) -> None:
        write(collection, points)
        events.append(points[0].key)

    def recorded_flush(collection: str) -> None:
        events.append("flush")
        flush(collection)

    monkeypatch.setattr(store, "_upsert", recorded_write)
    monkeypatch.setattr(store, "_flush_one", recorded_flush)
    flushed_at_return: list[bool] = []

    async def upsert(turn: int) -> None:
        await store.upsert("turns", _points(range(turn, turn + 1)))
        flushed_at_return.append("flush" in events[events.index(f"a_{turn}") :])

    await asyncio.gather(*(upsert(turn) for turn in range(1, 31)))
    await store.close()

    assert flushed_at_return == [True] * 30
    assert events.count("flush") < 10


async def test_others_have_their_turn_between_pages(tmp_path: Path) -> None:
    """A reader of all pages, of whom no call waits for a write, must not keep the event loop to itself."""
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert("turns", _points(range(40)))
    done, turns_of_others = asyncio.Event(), 0

    async def count() -> None:
        nonlocal turns_of_others
        while not done.is_set():
            turns_of_others += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(count())
        await asyncio.sleep(0)
        before, (_, after) = turns_of_others, await store.page("turns", "", 4)
        while after:
            _, after = await store.page("turns", after, 4)
            await store.latest("turns", where={"session_id": "a"}, by="turn", limit=4)
        between = turns_of_others - before
        done.set()
    await store.close()

    assert between >= 20


async def test_what_is_held_back_is_read_at_once_and_flushed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One flush for many writes, none where nothing was written; a deletion is durable at once, with all before it."""
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert("turns", _points(range(1)))
    flushes: list[str] = []
    monkeypatch.setattr(EdgeCollection, "flush", lambda _: flushes.append("turns"))
    store.hold_back()
    await store.upsert("turns", _points(range(1, 2)))
    await store.upsert("turns", _points(range(2, 3)))

    assert (await store.count("turns"), flushes) == (3, [])
    await store.flush()
    await store.flush()
    assert flushes == ["turns"]
    await store.upsert("turns", _points(range(3, 4)))
    await store.delete("turns", where={"turn": 0})
    assert flushes == ["turns", "turns"]


async def test_a_flush_lets_readers_in_and_takes_what_is_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection at a time; one that is written to after its turn is flushed again before the flush is over."""
    store, loop = EdgeStore(tmp_path, embedder="test"), asyncio.get_running_loop()
    store.hold_back()
    for collection in ("a", "b"):
        await store.upsert(collection, _points(range(1)))
    events: list[str] = []
    began = asyncio.Event()

    def flush(of: EdgeCollection) -> None:
        events.append(str(of._folder.name))
        loop.call_soon_threadsafe(began.set)

    monkeypatch.setattr(EdgeCollection, "flush", flush)
    flushing = asyncio.ensure_future(store.flush())
    await began.wait()
    await store.upsert("a", _points(range(1, 2)))
    events.append("written")
    await flushing

    assert events[0] == "a"
    assert events[-1] == "a" or events[-2:] == ["a", "b"]
    assert events.index("written") < len(events) - 1
    assert not store._unflushed


@pytest.mark.fault("F10")
async def test_a_disk_that_is_almost_full_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full one the engine's maps end the process by a signal: so the store refuses before, and still answers."""
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert("turns", _points(range(3)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: SimpleNamespace(free=SPARE_BYTES - 1))
    for write in (
        store.upsert("turns", _points(range(3, 4))),
        store.upsert("another", _points(range(1))),
        store.delete("turns", where={"turn": 1}),
        store.forget("turns"),
    ):
        with pytest.raises(StoreUnavailable, match=rf"{tmp_path}.*has 63 MiB free, writing needs 64"):
            await write
    assert await store.count("turns") == 3
    monkeypatch.undo()
    await store.upsert("turns", _points(range(3, 4)))
    await store.forget("turns")

    assert await store.count("turns") == 4
    assert await store.collections() == ["turns"]
    await store.close()


async def test_only_what_was_written_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that failed again with the next; whatever the engine raises, the role sees the error it retries on."""
    store = EdgeStore(tmp_path, embedder="test")
    for collection in ("turns", "facts"):
        await store.upsert(collection, _points(range(1)))
    flushed: list[EdgeCollection] = []
    flush = EdgeCollection.flush
    failing = [OSError("no space")]

    def noted(collection: EdgeCollection) -> None:
        flushed.append(collection)
        if failing:
            raise failing.pop()
        flush(collection)

    monkeypatch.setattr(EdgeCollection, "flush", noted)
    with pytest.raises(StoreUnavailable, match=r"no space\. Check disk space"):
        await store.upsert("turns", _points(range(1, 2)))
    await store.delete("facts", where={"session_id": "b"})
    turns, facts = store._open["turns"], store._open["facts"]

    assert flushed[0] is turns
    assert {id(collection) for collection in flushed[1:]} == {id(turns), id(facts)}
    await store.close()
