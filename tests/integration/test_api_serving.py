"""Serving over a real socket, inside somebody else's event loop."""

import asyncio
import logging
import signal

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from models.errors import ConfigurationError
from streams.http.answering import ServedRoute, served_routes
from streams.http.health import serve
from streams.http.route import Group
from tests.support.api_doubles import counted
from tests.support.http_api import api_of

_SLOW = Group("slow", "Routes that wait to be let go.", prefix="/v1")


class Slow:
    """A route that reads and one that changes something; `ended` says how the last request did."""

    def __init__(self) -> None:
        self.entered, self.release, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Queue[str]()

    @_SLOW.get("/slow", "read_slowly", audits="text_read")
    async def read(self) -> Response:
        """Wait."""
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.ended.put_nowait("given up")
            raise
        self.ended.put_nowait("done")
        return Response("done")

    @_SLOW.post("/slow", "change_slowly", audits="acted")
    async def change(self) -> Response:
        """Wait likewise."""
        return await self.read()


async def test_port_0_is_a_free_port_that_answers_at_once_and_closes() -> None:
    """The yielded port serves from the first moment, on loopback, alone; afterwards nobody listens.

    Signals stay the role's: uvicorn's handlers would swallow the SIGTERM on which it flushes.
    """
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serve(api_of()) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answer = await client.get("/readyz")
        during = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}.*http\."):
            async with serve(api_of(), port=port):
                pass

    assert (answer.status_code, answer.text, during) == (200, "ready", before)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_an_open_request_is_finished() -> None:
    """Stopping waits for the answer under way."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Response:
        entered.set()
        await release.wait()
        return Response("done")

    async with httpx.AsyncClient() as client:
        async with serve(api_of([ServedRoute("/slow", slow, ["GET"])])) as port:
            asking = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/slow"))
            await entered.wait()
            asyncio.get_running_loop().call_later(0.2, release.set)
        answer = await asking

    assert answer.text == "done"


@pytest.mark.parametrize(("method", "end", "status"), [("GET", "given up", "4xx"), ("POST", "done", "2xx")])
async def test_who_went_away_costs_no_answer(method: str, end: str, status: str) -> None:
    """What only reads ends when its client closes the connection, which is no failure; a change is carried out."""
    slow, counts = Slow(), {"route": "/v1/slow", "status": status}
    before = counted("http_requests_total", **counts)
    async with serve(api_of(served_routes(slow))) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{method} /v1/slow HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode())
        writer.write(b"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n")
        await slow.entered.wait()
        writer.close()
        async with httpx.AsyncClient() as client:
            await client.get(f"http://127.0.0.1:{port}/livez")  # the server has seen the end of the other connection
        slow.release.set()
        ended = await slow.ended.get()

    assert (end, 1) == (ended, counted("http_requests_total", **counts) - before)


async def test_queries_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A query is conversation text; an access log would keep it at any level."""

    async def echo(request: Request) -> Response:
        return Response(request.query_params["q"])

    with caplog.at_level(logging.DEBUG, "uvicorn"):
        async with serve(api_of([ServedRoute("/echo", echo, ["GET"])])) as port, httpx.AsyncClient() as client:
            answer = await client.get(f"http://127.0.0.1:{port}/echo", params={"q": "something-private"})

    assert answer.text == "something-private"
    assert [r.name for r in caplog.records if r.name.startswith("uvicorn") and "private" in r.getMessage()] == []


async def test_two_lengths_are_refused_by_the_server() -> None:
    """Also by uvicorn's parser, or by the guard behind it; what follows is not answered."""
    async with serve(api_of()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"POST /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
