"""The vector store that chaos harms: what the server store says to Qdrant is understood, and faults come when told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from jobs.lab.chaos.vector_server import create_vector_api
from models.retrieval.lexical import document_vector, query_vector
from streams.http.health import serve
from streams.index.edge import EdgeStore
from streams.index.server import ServerStore
from streams.ports import Point

AT_ONCE = (timedelta(0),)


def point(session_id: str, turn: int) -> Point:
    """A turn's point; one axis for each number."""
    vector = np.zeros(4, dtype=np.float32)
    vector[turn % 4] = 1.0
    return Point(f"{session_id}_{turn}", vector, {"session_id": session_id, "turn": turn, "risk": None})


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[ServerStore, EdgeStore]]:
    """The production store, speaking to a server over a socket, and what is behind that."""
    api, behind = create_vector_api(folder, embedder="test")
    async with serve(api) as port:
        store = ServerStore.connect(f"http://127.0.0.1:{port}", api_key=None, embedder="test")
        store._retry_delays = AT_ONCE
        yield store, behind
        await store.close()
    await behind.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ServerStore]:
    """One that is empty."""
    async with serving(tmp_path) as (store, _):
        yield store


async def test_a_repeat_changes_nothing_and_filters_hold(store: ServerStore) -> None:
    """Everything that the index role asks of a server."""
    batch = [point("a", turn) for turn in range(4)] + [point("b", 9)]
    before = await store.count("turns")
    await store.upsert("turns", batch)
    await store.upsert("turns", batch)
    newest = await store.latest("turns", where={"session_id": "a", "turn": (0, 2)}, by="turn", limit=2)
    await store.delete("turns", where={"session_id": "a"}, below=("turn", 3))

    assert (before, await store.count("turns"), await store.count("turns", where={"session_id": "a"})) == (0, 2, 1)
    assert [2, 1] == [payload["turn"] for payload in newest]
    assert {"session_id", "turn", "risk"} == newest[0].keys()


async def test_words_are_kept_beside_the_dense_vector(tmp_path: Path) -> None:
    """The sparse vector is the engine's, and any of several apps can be named."""
    axis, words = np.eye(4, dtype=np.float32)[0], document_vector("bread and salt")
    async with serving(tmp_path) as (store, behind):
        await store.upsert("episodes", [Point(f"{app}_0", axis, {"app_id": app, "turn": 0}, words) for app in "abc"])
        counted = await store.count("episodes", where={"app_id": ("a", "c")})
        found = await behind.search("episodes", query_vector("bread"), where={"app_id": "c"}, top_k=5)

    assert (counted, [hit.key for hit in found]) == (2, ["c_0"])


async def test_points_are_read_by_their_keys_also_by_the_next_process(tmp_path: Path) -> None:
    """Keys that were written, within the conditions; ids are all that the server is told of them."""
    batch = [point("a", 0), point("b", 1)]
    for stored in (batch, []):
        async with serving(tmp_path) as (store, _):
            await store.upsert("turns", stored)
            found = await store.read("turns", ["a_0", "b_1", "c_9"], where={"session_id": "b"})

        assert {"b_1": batch[1].payload} == found


async def test_batches_as_large_as_the_store_sends_them(store: ServerStore) -> None:
    """A server takes megabytes in a request; the API's own limit is not for it."""
    axis, content = np.eye(4, dtype=np.float32)[0], "x" * 8_000
    await store.upsert("turns", [Point(f"a_{n}", axis, {"turn": n, "content": content}) for n in range(100)])

    assert 100 == await store.count("turns")
