"""Over a real socket: who sends no whole request is let go, and who does is answered meanwhile, at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import MagicMock

import httpx
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.config import Config
from uvicorn.server import ServerState

from streams.http import health
from streams.http.answering import ServedRoute
from streams.http.health import bounded_protocol, serve
from streams.settings.http import ApiToken, HttpSettings
from tests.support.api_doubles import counted
from tests.support.http_api import api_of

HEAD = b"POST /v1/read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
IMPATIENT = HttpSettings(head_timeout=timedelta(milliseconds=600), request_timeout=timedelta(milliseconds=600))
BOUNDED = HttpSettings(max_connections=8)


@asynccontextmanager
async def serving(settings: HttpSettings) -> AsyncIterator[int]:
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
    async with serving(IMPATIENT) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
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
    async with serving(BOUNDED) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
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
