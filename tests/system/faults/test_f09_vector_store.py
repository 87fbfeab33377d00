"""F9: Qdrant is down, slow or answers 5xx. Sessions and alerts go on; the index retries and misses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest
from qdrant_client import AsyncQdrantClient

from jobs.shared.broker_config import free_port
from models.events import Turn
from models.events.topics import ALERTS
from streams.index.server import ServerStore
from streams.roles import index
from streams.roles.index import IndexRole
from streams.settings import Settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of, scorer_of
from tests.support.fault_driver import (
    assert_equal_to_replay,
    events,
    recorded,
    said,
    send,
    sessions_role,
    until,
    working,
)
from tests.support.qdrant_stand_in import Fault, StandIn, standing_in

pytestmark = [pytest.mark.kafka, pytest.mark.system, pytest.mark.fault("F9")]

TURNS = 12
CLIENT_TIMEOUT_S = 1
RETRY = (timedelta(milliseconds=50),)


def alarming(name: str) -> list[Turn]:
    """A session of its own that raises an alert at its end."""
    return [said(n, session_id=name, risk=0.1 if n < TURNS - 1 else 0.95) for n in range(TURNS)]


async def alerted(settings: Settings, session_id: str) -> bool:
    """Whether an alert of the session is on the topic."""
    return any(event.session_id == session_id for event in await events(settings, ALERTS))


def present(store: StandIn, session_id: str) -> set[int]:
    """Turn numbers of a session that the store has."""
    return {payload["turn"] for payload in store.points.values() if payload.get("session_id") == session_id}


def retried(store: StandIn, refused: int) -> bool:
    """Whether so many requests were refused."""
    return store.refused >= refused


@asynccontextmanager
async def index_role(settings: Settings, store: StandIn) -> AsyncIterator[asyncio.Future[None]]:
    """The index role in this process on the stand-in, with a client that is soon out of patience."""
    mine = settings.model_copy(update={"http": HttpSettings(index_port=0)})
    embedder = embedder_of(mine)
    client = AsyncQdrantClient(url=store.url, timeout=CLIENT_TIMEOUT_S, check_compatibility=False)
    points = ServerStore(client, embedder=embedder.name, retry_delays=RETRY)
    role = IndexRole(mine, policy_of(mine), embedder, scorer_of(mine, embedder), points)
    async with working(role.run) as (task,):
        yield task


async def test_the_index_catches_up_and_nothing_else_waits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Down, slow, 5xx, one after the other, each until an alert has passed it by; in the end every turn is a point."""
    monkeypatch.setattr(index, "RETRY_S", 0.2)
    phases = (Fault.NONE, Fault.ERRORS, Fault.DOWN, Fault.SLOW)
    async with standing_in(free_port()) as store, index_role(settings, store) as indexing, sessions_role(settings):
        for fault in phases:
            await store.become(fault)
            refused = store.refused
            await send(settings, [recorded(turn) for turn in alarming(fault)])
            await until(partial(alerted, settings, fault), f"the alert while the store is {fault}")
            if fault in {Fault.ERRORS, Fault.SLOW}:
                await until(partial(retried, store, refused + 3), f"retries while the store is {fault}")
            assert fault is Fault.NONE or not present(store, fault)
        await store.become(Fault.NONE)
        everything = {fault: set(range(TURNS)) for fault in phases}
        await until(lambda: {f: present(store, f) for f in phases} == everything, "every turn is a point")
        await assert_equal_to_replay(settings)
        assert not indexing.done()
