"""F9: Qdrant is down, slow or answers 5xx. Sessions and alerts go on; the index retries and misses nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

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

pytestmark = pytest.mark.fault("F9")

TURNS = 12
SLOW_S = 1.0
RETRY = (timedelta(milliseconds=50),)


class Fault(StrEnum):
    """What is wrong with the server."""

    NONE = "none"
    ERRORS = "5xx"
    SLOW = "slow"
    DOWN = "down"


TROUBLE = {
    Fault.ERRORS: UnexpectedResponse(503, "as told", b"", httpx.Headers()),
    Fault.SLOW: ResponseHandlingException(httpx.ReadTimeout("as told")),
    Fault.DOWN: ResponseHandlingException(httpx.ConnectError("as told")),
}
"""As Qdrant's client tells of it."""


class FaultyStore(ServerStore):
    """Qdrant's in-memory imitation behind requests that fail as told; `refused` counts them."""

    def __init__(self, embedder: str) -> None:
        self.client = AsyncQdrantClient(":memory:")
        super().__init__(self.client, embedder=embedder, retry_delays=RETRY)
        self.fault, self.refused = Fault.NONE, 0

    async def _call(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        async def sent(*args: Any, **kwargs: Any) -> Any:
            if self.fault is Fault.NONE:
                return await request(*args, **kwargs)
            self.refused += 1
            await asyncio.sleep(SLOW_S if self.fault is Fault.SLOW else 0.0)
            raise TROUBLE[self.fault]

        return await super()._call(sent, *args, **kwargs)


def alarming(name: str) -> list[Turn]:
    """A session of its own that raises an alert at its end."""
    return [said(n, session_id=name, risk=0.1 if n < TURNS - 1 else 0.95) for n in range(TURNS)]


async def alerted(settings: Settings, session_id: str) -> bool:
    """Whether an alert of the session is on the topic."""
    return any(event.session_id == session_id for event in await events(settings, ALERTS))


async def present(store: FaultyStore, session_id: str) -> set[int]:
    """Turn numbers of a session that the store has."""
    if not await store.client.collection_exists("turns"):
        return set()
    found = [point.payload or {} for point in (await store.client.scroll("turns", limit=999))[0]]
    return {each["turn"] for each in found if each["session_id"] == session_id}


def retried(store: FaultyStore, refused: int) -> bool:
    """Whether so many requests were refused."""
    return store.refused >= refused


@asynccontextmanager
async def index_role(settings: Settings) -> AsyncIterator[tuple[FaultyStore, asyncio.Future[None]]]:
    """The index role in this process, and its store."""
    mine = settings.model_copy(update={"http": HttpSettings(index_port=0)})
    embedder = embedder_of(mine)
    store = FaultyStore(embedder.name)
    role = IndexRole(mine, policy_of(mine), embedder, scorer_of(mine, embedder), store)
    async with working(role.run) as (task,):
        yield store, task


@pytest.mark.behaviour("app-20")
async def test_the_index_catches_up_and_nothing_else_waits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Down, slow, 5xx, one after the other, each until an alert has passed it by; in the end every turn is a point."""
    monkeypatch.setattr(index, "RETRY_S", 0.2)
    phases = (Fault.NONE, Fault.ERRORS, Fault.DOWN, Fault.SLOW)

    async def whole(store: FaultyStore) -> bool:
        return [await present(store, fault) for fault in phases] == [set(range(TURNS))] * len(phases)

    async with index_role(settings) as (store, indexing), sessions_role(settings):
        for fault in phases:
            store.fault, refused = fault, store.refused
            await send(settings, [recorded(turn) for turn in alarming(fault)])
            await until(partial(alerted, settings, fault), f"the alert while the store is {fault}")
            if fault in {Fault.ERRORS, Fault.SLOW}:
                await until(partial(retried, store, refused + 3), f"retries while the store is {fault}")
            assert fault is Fault.NONE or not await present(store, fault)
        store.fault = Fault.NONE
        await until(partial(whole, store), "every turn is a point")
        await assert_equal_to_replay(settings)
        assert not indexing.done()
