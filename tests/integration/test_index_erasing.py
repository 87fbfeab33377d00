"""The index role and an erasure, over a real broker: asked on `erasures.v1`, answered there."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from models.events import ErasedStore, VectorsErased, VectorsErasureDue
from models.events.topics import ERASURES, MEMORIES
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from models.wire.envelope import headers_for, key_of
from streams.erase.logs import opened
from streams.erase.record import PLACE, ErasureRecords, recorded
from streams.kafka.producer import Record
from streams.roles.index import IndexRole
from streams.settings import Settings
from streams.wiring import embedder_of, policy_of, vector_store_of
from tests.apps_indexed import memory
from tests.bytes_left import files_with
from tests.fault_driver import until, working, write

CANARY = "zanzibarcanary"


async def answered(settings: Settings, request_id: str) -> VectorsErased | None:
    """What the index said to a request."""
    records = ErasureRecords()
    async with opened(settings, policy_of(settings).intake) as logs:
        await records.refresh(logs)
    return records.vectors.get(request_id)


@pytest.mark.kafka
async def test_the_index_removes_who_is_to_be_forgotten_and_says_so(settings: Settings, tmp_path: Path) -> None:
    """What was indexed of them is in no file any more, and the counts stand where the erasure is carried out."""
    embedder = embedder_of(settings)
    store = vector_store_of(settings, embedder)
    role = IndexRole(settings, policy_of(settings), embedder, RuleScorer(), store)
    async with working(role.run):
        for event in (memory(0, f"Likes {CANARY}."), memory(1)):
            await write(settings, MEMORIES, [Record(key_of(event), encode(event), headers_for(event))], partition=1)

        async def indexed() -> bool:
            return await store.count("memories") == 2

        await until(indexed, "both memories are indexed")
        due = VectorsErasureDue(request_id="r", timestamp=datetime.now(UTC), scope="session", session_ids=["s0"])
        await write(settings, ERASURES, [recorded(due)], partition=PLACE)
        answer = await until(partial(answered, settings, "r"), "the index answers")
        left = [await store.count("memories"), files_with(tmp_path, CANARY)]

    assert answer.stores == [ErasedStore(store="vectors memories", looked_at=2, removed=1, remaining=0)]
    assert left == [1, []]
