"""Size, time and number of requests; and every error of the router itself as problem details."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from streams.http.answering import ServedRoute
from streams.http.limits import extend_deadline
from streams.settings.http import HttpSettings
from tests.support.http_api import api_of, client_of


class Role:
    """A role whose one route waits to be let go."""

    def __init__(self, settings: HttpSettings) -> None:
        self.entered, self.release = asyncio.Semaphore(0), asyncio.Event()
        self.read_bytes = -1

        async def slow(request: Request) -> Response:
            extend_deadline(float(request.query_params.get("more_s", "0")))
            self.entered.release()
            await self.release.wait()
            return JSONResponse("done")

        async def read(request: Request) -> Response:
            self.read_bytes = len(await request.body())
            return JSONResponse(self.read_bytes)

        routes = [ServedRoute("/v1/slow", slow, ["GET"]), ServedRoute("/v1/read", read, ["POST"])]
        self.client = client_of(api_of(routes, http=settings), {"Content-Type": "application/json"})


async def chunks(n_bytes: int) -> AsyncIterator[bytes]:
    """A body whose length no header tells."""
    for _ in range(n_bytes // 1_000):
        yield b"x" * 1_000


async def test_a_large_body_is_refused_unread() -> None:
    """413 at the limit, whether the head tells the size or not; its connection cannot serve another request."""
    role = Role(HttpSettings())
    async with role.client as client:
        told = await client.post("/v1/read", content=b"x" * 1_000_000)
        untold = await client.post("/v1/read", content=chunks(66_000))
        before = role.read_bytes
        fits = await client.post("/v1/read", content=b"x" * 65_536)

    assert [(413, "close")] * 2 == [(each.status_code, each.headers["connection"]) for each in (told, untold)]
    assert (told.json()["code"], told.headers["content-type"]) == ("too_large", "application/problem+json")
    assert (before, fits.json()) == (-1, 65_536)


async def test_a_slow_request_is_given_up() -> None:
    """504 problem details; its place is free again."""
    role = Role(HttpSettings(request_timeout=timedelta(milliseconds=30), max_concurrent_requests=1))
    async with role.client as client:
        answers = [await client.get("/v1/slow") for _ in range(2)]

    assert [(504, "timeout")] * 2 == [(answer.status_code, answer.json()["code"]) for answer in answers]


async def test_too_many_requests_at_once_are_told_to_come_again() -> None:
    """503 with Retry-After beyond the limit, while probes and metrics are answered; afterwards there is room."""
    role = Role(HttpSettings(max_concurrent_requests=2))
    async with role.client as client:
        under_way = [asyncio.create_task(client.get("/v1/slow")) for _ in range(2)]
        for _ in under_way:
            await role.entered.acquire()
        refused = await client.get("/v1/slow")
        probes = [(await client.get(path)).status_code for path in ("/livez", "/readyz", "/metrics")]
        role.release.set()
        done = [(await task).status_code for task in under_way]
        after = await client.get("/v1/slow")

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["code"] == "too_many_requests"
    assert ([200] * 3, [200] * 2, 200) == (probes, done, after.status_code)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/v2/nothing", 404, "not_found"), ("GET", "/v1/read", 405, "method_not_allowed")],
)
async def test_the_routers_own_errors_are_problems(method: str, path: str, status: int, code: str) -> None:
    """Also where no route was reached."""
    async with Role(HttpSettings()).client as client:
        answer = await client.request(method, path)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert {key: answer.json()[key] for key in ("type", "status", "code")} == {
        "type": f"urn:turntide:problem:{code}",
        "status": status,
        "code": code,
    }
    assert (status == 405) == ("allow" in answer.headers)
