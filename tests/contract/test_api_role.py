"""Role api: reading over a Qdrant server, without Kafka and without state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from jobs.shared.broker_config import free_port
from models.errors import ConfigurationError, StoreUnavailable
from models.policy import Policy
from streams.index.server import ServerStore
from streams.index.user_memory import UserMemory
from streams.ports import Condition, PayloadValue
from streams.roles.api import ApiRole
from streams.settings import Settings, load_settings
from streams.wiring import ROLES, embedder_of
from tests.support.api_tenants import user_events_of

EMBEDDER = embedder_of(Settings())
NAME = user_events_of("a", "u", "s")[0]


class Failing(ServerStore):
    """A server that can be gone."""

    gone = False

    async def latest(
        self, collection: str, *, where: Mapping[str, Condition], by: str, limit: int
    ) -> list[dict[str, PayloadValue]]:
        """As the store does, while it is there."""
        if self.gone:
            raise StoreUnavailable("Qdrant did not answer")
        return await super().latest(collection, where=where, by=by, limit=limit)


@asynccontextmanager
async def serving(store: ServerStore) -> AsyncIterator[httpx.AsyncClient]:
    """The role over a store, and a client of it."""
    port, stop = free_port(), asyncio.Event()
    role = asyncio.create_task(ApiRole(load_settings(http={"api_port": port}), Policy(), EMBEDDER, store).run(stop))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        async with asyncio.timeout(30):
            while not await _answers(client):  # noqa: ASYNC110 - another task's server has no event for us
                await asyncio.sleep(0.05)  # until it listens
        yield client
    stop.set()
    await role


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/livez")).is_success
    except httpx.TransportError:
        return False


async def _ready(client: httpx.AsyncClient, wanted: int) -> httpx.Response:
    async with asyncio.timeout(30):
        while (answer := await client.get("/readyz")).status_code != wanted:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.1)  # it looks at the store every two seconds
    return answer


@pytest.fixture
async def store() -> Failing:
    """A server in this process, which knows a name."""
    made = Failing(AsyncQdrantClient(":memory:"), embedder=EMBEDDER.name, retry_delays=())
    await UserMemory(made, EMBEDDER).add_facts([(NAME, 0)])
    return made


async def test_it_serves_what_the_index_role_serves(store: Failing) -> None:
    """Ready once the store answers; facts and tools are there."""
    async with serving(store) as client:
        await _ready(client, 200)
        retrieved: Any = (await client.post("/v1/retrieve", json={"user_id": "u", "query": "my name?"})).json()
        paths: Any = (await client.get("/openapi.json")).json()["paths"]

    assert [NAME.value] == [fact["value"] for fact in retrieved["structured_facts"]]
    assert {"/v1/retrieve", "/v1/context", "/v1/search"} <= paths.keys()


async def test_a_store_that_is_gone(store: Failing) -> None:
    """Readers are told when to come again, and whoever balances the load that it is not ready."""
    async with serving(store) as client:
        store.gone = True
        answer = await client.post("/v1/retrieve", json={"user_id": "u", "query": "my name?"})
        unready = await _ready(client, 503)
        store.gone = False
        await _ready(client, 200)

    assert (503, "application/problem+json") == (answer.status_code, answer.headers["content-type"])
    assert int(answer.headers["retry-after"]) > 0
    assert "Qdrant did not answer" in unready.text


async def test_without_a_server_it_does_not_start() -> None:
    """Qdrant Edge belongs to the index role; the message says where that serves."""
    with pytest.raises(ConfigurationError, match=r"set vectors\.url.*port 8702"):
        await ROLES["api"](Settings(), asyncio.Event())
