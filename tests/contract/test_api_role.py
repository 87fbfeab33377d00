"""Role api over a Qdrant server and a real socket, without Kafka and without state."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.config import Config
from uvicorn.server import ServerState

from jobs.shared.role_process import free_port
from models.errors import ConfigurationError, StoreUnavailable
from models.policy import Policy
from streams.http import health
from streams.http.answering import ServedRoute
from streams.http.health import bounded_protocol, serve
from streams.index.server import ServerStore
from streams.index.user_memory import UserMemory
from streams.ports import Condition, PayloadValue
from streams.roles.api import serve_memory
from streams.settings import Settings, load_settings
from streams.settings.http import ApiToken, HttpSettings
from streams.wiring import ROLES, embedder_of
from tests.support.api_doubles import counted
from tests.support.api_tenants import user_events_of
from tests.support.http_api import api_of

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
    settings = load_settings(http={"api_port": port})
    role = asyncio.create_task(serve_memory(settings, Policy(), EMBEDDER, store, stop))
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


HEAD = b"POST /v1/read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
IMPATIENT = HttpSettings(head_timeout=timedelta(milliseconds=600), request_timeout=timedelta(milliseconds=600))
BOUNDED = HttpSettings(max_connections=8)


@asynccontextmanager
async def listening(settings: HttpSettings) -> AsyncIterator[int]:
    """Port of a role that reads bodies."""

    async def read(request: Request) -> Response:
        return JSONResponse(len(await request.body()))

    routes = [ServedRoute("/v1/read", read, ["POST"])]
    async with serve(api_of(routes, http=settings)) as found:
        yield found


async def _until_closed(port: int, *sent: bytes) -> bytes:
    """Everything that a connection is told until the other side closes it; each is sent when the last was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told = b""
    for number, each in enumerate(sent):
        writer.write(each)
        if number + 1 < len(sent):
            told += await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok"), 30)
    told += await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return told


async def test_whoever_sends_no_whole_head_is_let_go() -> None:
    """Nothing at all, half a head, half a second head, half a body: each is closed, and probes are answered."""
    whole = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with listening(IMPATIENT) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        slow = asyncio.gather(
            _until_closed(port),
            _until_closed(port, HEAD),
            _until_closed(port, whole, HEAD),
            _until_closed(port, HEAD + b"Content-Type: application/json\r\n\r\nx"),
        )
        alive = await client.get("/livez")
        silent, head, second, body = await slow

    assert alive.status_code == 200
    assert [silent[:12], head[:12]] == [b"HTTP/1.1 408"] * 2
    assert (second[:12], second.count(b"HTTP/1.1 408")) == (b"HTTP/1.1 200", 1)
    assert body.startswith(b"HTTP/1.1 504")


async def test_connections_are_bounded() -> None:
    """One more than may be open is told so and counted, and a closed one makes room."""
    before = counted("http_refused_total", reason="connections")
    async with listening(BOUNDED) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(BOUNDED.max_connections)]
        refused = await _until_closed(port)
        counts = counted("http_refused_total", reason="connections") - before
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        after = await client.get("/livez")

    assert (refused[:12], counts) == (b"HTTP/1.1 503", 1)
    assert after.status_code == 200


async def test_a_head_that_comes_byte_by_byte_gains_no_time() -> None:
    """Slowloris: what is waited for is the end of the headers, whatever comes before it."""
    settings = HttpSettings()
    made: Any = bounded_protocol(settings.head_timeout, settings.max_connections)
    protocol = made(Config(Starlette(), log_config=None), ServerState(), {})
    protocol.connection_made(MagicMock(is_closing=lambda: False, get_extra_info=lambda _name, default=None: default))
    began = protocol._waiting_for_head
    for byte in HEAD:
        protocol.data_received(bytes([byte]))

    assert protocol._waiting_for_head is began
    assert not began.cancelled()
    protocol.connection_lost(None)
    assert began.cancelled()


async def test_an_address_is_the_connections_not_what_a_client_says() -> None:
    """`X-Forwarded-For` would give each guess at a token an address, and so a limit, of its own."""
    settings = HttpSettings(tokens=[ApiToken(token=SecretStr("a-token-of-somebody"))], failed_tokens_per_minute=2)
    async with serve(api_of(http=settings)) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        guesses = [{"Authorization": f"Bearer {n}", "X-Forwarded-For": f"192.0.2.{n}"} for n in range(3)]
        statuses = [(await client.get("/v1/index", headers=each)).status_code for each in guesses]

    assert statuses == [401, 401, 429]


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Without it every answer on a kept connection took 40 ms: head and body are two packets."""
    listener = health._listen("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()) as _, listener.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
