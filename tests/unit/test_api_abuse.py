"""Too often, too large, too slow, with wrong tokens, and with ids that lead elsewhere; errors of the router itself."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import structlog
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from streams.http import guard
from streams.http.answering import ServedRoute
from streams.http.guard import Buckets, Rates
from streams.http.limits import extend_deadline
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Log, Served, bearer, called, counted, settings_of
from tests.support.data_files import data_file
from tests.support.http_api import api_of, client_of
from tests.unit.test_api_rules import RULES

SLOW: dict[str, Any] = {"requests_per_second": 0.001, "burst": 2}


async def test_a_token_that_asks_too_often_waits_and_others_do_not() -> None:
    """429 says how long; probes and metrics are never refused. Without tokens everybody on this machine is one."""
    served, before = Served(settings=settings_of("a", "b", **SLOW)), counted("http_refused_total", reason="rate")
    async with served.client() as client:
        mine = [await client.get("/v1/index", headers=bearer("a")) for _ in range(3)]
        other = await client.get("/v1/index", headers=bearer("b"))
        probes = [(await client.get(path)).status_code for path in ("/livez", "/readyz", "/metrics") for _ in range(3)]
    async with Served(settings=HttpSettings(**SLOW)).client() as client:
        untold = [(await client.get("/v1/index")).status_code for _ in range(3)]

    assert [200, 200, 429] == untold
    assert [200, 200, 429, 200] == [answer.status_code for answer in (*mine, other)]
    assert (mine[2].json()["code"], mine[2].headers["retry-after"]) == ("rate_limited", "1000")
    assert mine[2].headers["ratelimit"] == '"requests";r=0;t=1000'
    assert mine[2].headers["ratelimit-policy"] == '"requests";q=2;w=2000'
    assert probes == [200] * 9
    assert counted("http_refused_total", reason="rate") - before == 2


async def test_guessing_is_limited_and_locks_out_nobody_who_was_right() -> None:
    """After some wrong ones no new token of the address is looked at, not even a right one."""
    served = Served(settings=settings_of("a", "b", failed_tokens_per_minute=3))
    refused = counted("http_refused_total", reason="failed_tokens")
    async with served.client() as client:
        before = await client.get("/v1/index", headers=bearer("a"))
        wrong = [await client.get("/v1/index", headers={"Authorization": f"Bearer wrong-{n}"}) for n in range(4)]
        known, new = [await client.get("/v1/index", headers=bearer(app)) for app in ("a", "b")]

    assert [200, 401, 401, 401, 429, 200, 429] == [each.status_code for each in (before, *wrong, known, new)]
    assert new.json()["code"] == "too_many_failed_tokens"
    assert counted("http_refused_total", reason="failed_tokens") - refused == 2


def test_what_is_known_of_callers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asked longest ago is forgotten."""
    monkeypatch.setattr(guard, "MOST_KNOWN", 3)
    buckets, tried = Buckets(per_second=1.0, burst=2), Rates(HttpSettings())
    for who in range(10):
        buckets.take(who)
        tried.right(str(who), b"")

    assert (len(buckets._left), len(tried._trusted)) == (3, 3)


@pytest.mark.parametrize("address", data_file("api_abuse")["addresses"])
async def test_a_token_in_the_address_is_refused_and_not_logged(
    address: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """400 says what to do, whether the header has one too; the answer does not repeat it."""
    secret, before = "a-secret-in-the-address", counted("http_refused_total", reason="secret_in_url")
    served = Served(settings=settings_of("a"))
    with structlog.testing.capture_logs() as logs:
        async with served.client(bearer("a")) as client:
            answer = await client.get(address.format(secret))

    assert (answer.status_code, answer.json()["code"]) == (400, "secret_in_url")
    assert "Authorization: Bearer" in answer.json()["detail"]
    assert counted("http_refused_total", reason="secret_in_url") - before == 1
    assert secret not in f"{answer.text}{answer.headers}{logs}{caplog.text}{capsys.readouterr()}"


@pytest.mark.parametrize(
    "scope", [{"raw_path": b"http://me:secret@host/v1/index"}, {"headers": [(b"host", b"me:s@h")]}]
)
async def test_credentials_in_the_authority_are_refused(scope: dict[str, Any]) -> None:
    """A proxy's form of a request, or a strange host."""
    served = Served(settings=settings_of("a"))
    head, *_ = await called(served.app, **{"path": "/v1/index", "raw_path": b"/v1/index", **scope})

    assert head["status"] == 400


ELSEWHERE = ("../../etc/passwd", "..%2f..%2fx", "%2e%2e/%2e%2e/x", "a\x00b", "/etc/passwd", "..\\..\\x", "x" * 5_000)


async def test_no_id_leads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id is a text: every route takes it or refuses it, none fails on it, and no file is made or read."""
    monkeypatch.chdir(tmp_path)
    token = ApiToken(token=SecretStr("a-token-of-an-admin"), role=TokenRole.ADMIN)
    served = Served(settings=HttpSettings(tokens=[token], request_timeout=timedelta(seconds=5)), log=Log())
    failed: list[tuple[str, str, int]] = []
    async with served.client({"Authorization": "Bearer a-token-of-an-admin"}) as client:
        for name in (name for name in RULES if "{" in name and "/v1/live/" not in name):
            method, template = name.split(" ")
            for bad in ELSEWHERE:
                path = "/".join(quote(bad, safe="") if "{" in part else part for part in template.split("/"))
                answer = await client.request(method, f"{path}?q=x&kind=memory")
                if answer.status_code >= 500 or "root:" in answer.text:
                    failed.append((name, bad[:20], answer.status_code))

    assert (failed, [*tmp_path.iterdir()]) == ([], [])  # noqa: ASYNC240 - nobody waits


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


async def test_the_routers_own_errors_are_problems() -> None:
    """Also where no route was reached."""
    async with Role(HttpSettings()).client as client:
        answers = [await client.get(path) for path in ("/v2/nothing", "/v1/read")]

    assert [(each.status_code, each.json()["code"], each.headers["content-type"]) for each in answers] == [
        (404, "not_found", "application/problem+json"),
        (405, "method_not_allowed", "application/problem+json"),
    ]
    assert answers[1].headers["allow"] == "POST"
