"""What is left of deleted and replaced points: nothing, in the files of a store that has its own."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.errors import StoreUnavailable
from models.retrieval.lexical import query_vector, terms, weights_of
from streams.index import edge, edge_shard
from streams.index.edge import EdgeStore
from streams.ports import PayloadValue, Point, VectorStore
from tests.support.bytes_left import files_with

DIM = 16
TURNS = "turns"
CANARY = "zanzibarcanary"
KEPT = range(40)


def point(session: str, turn: int, content: str = "a letter about boats") -> Point:
    """A turn's point with words; its vector is drawn by its number."""
    vector = np.random.default_rng(turn).normal(size=DIM).astype(np.float32)
    payload: dict[str, PayloadValue] = {"session_id": session, "turn": turn, "content": content}
    return Point(f"{session}_{turn}", vector / np.linalg.norm(vector), payload, weights_of(terms(content)))


async def fill(store: VectorStore) -> None:
    """Points that stay, one that is deleted, and one whose words are replaced; all in one collection."""
    await store.upsert(TURNS, [point("kept", turn) for turn in KEPT])
    await store.upsert(TURNS, [point(f"s-{CANARY}", 77, f"call me {CANARY}"), point("kept", 3, f"it is {CANARY}")])
    await store.upsert(TURNS, [point("kept", 3)])
    await store.delete(TURNS, where={"session_id": f"s-{CANARY}"})


async def everything(store: VectorStore) -> list[object]:
    """What readers see of the points that stay."""
    where = {"session_id": "kept"}
    near = await store.search(TURNS, point("kept", 5).vector, where=where, top_k=3)
    words = await store.search(TURNS, query_vector("boats"), where=where, top_k=100, fields=())
    latest = await store.latest(TURNS, where={**where, "turn": (10, 12)}, by="turn", limit=9)
    return [
        await store.count(TURNS),
        [(hit.key, round(hit.score, 5), hit.payload) for hit in near],
        sorted((hit.key, round(hit.score, 5)) for hit in words),
        latest,
    ]


def of_the_deleted() -> list[bytes]:
    """Bytes that only what is to be forgotten has: its text, its vector and the number of its word."""
    (word,) = weights_of(terms(CANARY)).indices
    return [CANARY.encode(), point("", 77).vector.astype("<f4").tobytes(), int(word).to_bytes(4, "little")]


async def test_forgetting_changes_nothing_for_readers(store: VectorStore) -> None:
    """Whatever is there stays, with its vectors, words and indexes; also when nothing was deleted, and again."""
    await fill(store)
    before = await everything(store)
    await store.forget(TURNS)
    await store.forget(TURNS)

    assert before == await everything(store)
    assert await store.count(TURNS, where={"session_id": f"s-{CANARY}"}) == 0


async def test_no_byte_of_it_is_left(tmp_path: Path) -> None:
    """Not in segments, indexes nor logs of the folder, at once and after opening it again; others are found."""
    store = EdgeStore(tmp_path, embedder="test")
    await fill(store)
    before, there = await everything(store), files_with(tmp_path, *of_the_deleted())
    await store.forget(TURNS)
    left = files_with(tmp_path, *of_the_deleted())
    await store.upsert(TURNS, [point("kept", 39)])
    await store.close()
    again = EdgeStore(tmp_path, embedder="test")
    after = await everything(again)
    await again.close()

    assert there
    assert (before, [], []) == (after, left, files_with(tmp_path, *of_the_deleted()))


async def test_what_is_written_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers and deleters come between the pages, before and behind the one that is copied."""
    monkeypatch.setattr(edge, "_PAGE_POINTS", 2)
    store = EdgeStore(tmp_path, embedder="test")
    await fill(store)

    async def write() -> None:
        for turn in range(100, 110):
            await store.upsert(TURNS, [point("new", turn)])
            await store.delete(TURNS, where={"session_id": "kept", "turn": turn - 100})

    await asyncio.gather(store.forget(TURNS), write())
    kept = await store.latest(TURNS, where={"session_id": ("kept", "new")}, by="turn", limit=100)
    await store.close()

    assert [*range(109, 99, -1), *range(39, 9, -1)] == [payload["turn"] for payload in kept]
    assert files_with(tmp_path, CANARY.encode()) == []


def shards(folder: Path) -> list[str]:
    """Those of the collection: the one that counts, and what is left of another."""
    return sorted(path.name for path in (folder / TURNS).iterdir() if path.is_dir())


@pytest.mark.parametrize("step", ["_new_shard", "_sync", "_write_durably", "_remove_other"])
async def test_dying_while_forgetting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """At each step: whoever opens the folder finds all points in one shard, and forgetting again leaves no byte."""
    store = EdgeStore(tmp_path, embedder="test")
    await fill(store)
    before = await everything(store)
    with monkeypatch.context() as dying:

        def die(*_: Any) -> None:
            raise OSError("killed")

        dying.setattr(edge_shard, step, die)
        dying.setattr(edge_shard.EdgeCollection, "abandon_anew", lambda _: None)
        with pytest.raises(StoreUnavailable, match="killed"):
            await store.forget(TURNS)
        await store.close()
    again = EdgeStore(tmp_path, embedder="test")
    after, opened = await everything(again), shards(tmp_path)
    await again.forget(TURNS)
    forgotten = await everything(again)
    await again.close()

    assert before == after == forgotten
    assert files_with(tmp_path, *of_the_deleted()) == []
    assert opened == (["shard-anew"] if step == "_remove_other" else ["shard"])
    assert shards(tmp_path) in (["shard"], ["shard-anew"])
