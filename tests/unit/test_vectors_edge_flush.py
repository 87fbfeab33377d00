"""Qdrant Edge: what is flushed after a writing, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from models.errors import StoreUnavailable
from streams.index.edge import EdgeStore
from streams.index.edge_shard import EdgeCollection
from streams.ports import Point

NORTH = np.array([1.0, 0.0], dtype=np.float32)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EdgeStore]:
    """With a turn of session a."""
    made = EdgeStore(tmp_path, embedder="e")
    await made.upsert("turns", [Point("a_0", NORTH, {"session_id": "a", "turn": 0})])
    yield made
    await made.close()


async def test_only_what_was_written_is_flushed(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that failed again with the next."""
    await store.upsert("facts", [Point("f", NORTH, {"user_id": "u"})])
    flushed: list[EdgeCollection] = []
    flush = EdgeCollection.flush
    failing = [OSError("no space")]

    def noted(collection: EdgeCollection) -> None:
        flushed.append(collection)
        if failing:
            raise failing.pop()
        flush(collection)

    monkeypatch.setattr(EdgeCollection, "flush", noted)
    with pytest.raises(StoreUnavailable, match="no space"):
        await store.upsert("turns", [Point("a_1", NORTH, {"session_id": "a", "turn": 1})])
    await store.delete("facts", where={"user_id": "v"})
    turns, facts = store._open["turns"], store._open["facts"]

    assert flushed[0] is turns
    assert {id(collection) for collection in flushed[1:]} == {id(turns), id(facts)}
