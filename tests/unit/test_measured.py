"""What is counted of requests, of calls to language models, and of the archive's upkeep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import httpx
import msgspec
import pytest
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from streams.archive import maintenance
from streams.archive.maintenance import Maintained
from streams.http.answering import RequestMeasures, ServedRoute
from streams.http.health import Api
from streams.inference.llm_client import count_usage
from streams.observe.telemetry import metrics
from streams.settings.archive import ArchiveSettings
from streams.settings.telemetry import TelemetrySettings


def shown(name: str, **labels: str) -> float:
    """Of this process."""
    return metrics.registry.get_sample_value(f"turntide_{name}", labels) or 0


async def test_requests_are_counted_by_route() -> None:
    """Under the template, so that no id becomes a label; a stream's length is not a time of ours."""

    async def turns(request: Request) -> Response:
        if (session_id := request.path_params["session_id"]) == "broken":
            raise ValueError
        if session_id == "unknown":
            raise HTTPException(404)
        return PlainTextResponse(session_id)

    async def stream(_request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b": ping\n\n"

        return StreamingResponse(pieces(), media_type="text/event-stream")

    routes = [
        ServedRoute("/test/{session_id:path}/turns", turns, ["GET"]),
        ServedRoute("/test-stream", stream, ["GET"]),
    ]
    app = Api(routes, [Middleware(RequestMeasures)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    asked = [
        "/test/a/b/turns",
        "/test/c/turns",
        "/test/unknown/turns",
        "/test/broken/turns",
        "/test-stream",
        "/no/such",
    ]
    others = shown("http_requests_total", route="other", status="4xx")
    async with httpx.AsyncClient(transport=transport, base_url="http://role") as client:
        for path in asked:
            await client.get(path)
    route = "/test/{session_id:path}/turns"

    assert [shown("http_requests_total", route=route, status=f"{n}xx") for n in (2, 4, 5)] == [2, 1, 1]
    assert shown("http_request_seconds_count", route=route) == 4
    assert shown("http_requests_total", route="/test-stream", status="2xx") == 1
    assert shown("http_request_seconds_count", route="/test-stream") == 0
    assert shown("http_requests_total", route="other", status="4xx") == others + 1


def test_tokens_have_their_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """By direction; a count that is none, or none at all, costs nothing and raises nothing."""
    prices = TelemetrySettings(price_in_per_million=2, price_out_per_million=10)
    monkeypatch.setattr(metrics, "settings", prices)
    for usage in (b'{"prompt_tokens":500000,"completion_tokens":100000,"total_tokens":600000}', b"null", b"[1]", b"{}"):
        count_usage("priced", msgspec.Raw(usage))

    assert shown("llm_tokens_total", service="priced", direction="in") == 500_000
    assert shown("llm_tokens_total", service="priced", direction="out") == 100_000
    assert shown("llm_cost_total", service="priced") == 2.0


async def test_an_upkeep_that_does_not_settle_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one does."""
    ends = iter([False, True])

    def maintain(*_: object, **__: object) -> Maintained:
        return Maintained(0, 0, 0, 0, next(ends))

    monkeypatch.setattr(maintenance, "maintain", maintain)
    upkeep = maintenance.ArchiveUpkeep(cast("Any", None), ArchiveSettings(merge_every=timedelta(seconds=0)))
    before = shown("archive_upkeep_total", result="not_settled")
    await upkeep.maintain()
    unsettled = shown("archive_unsettled")
    await upkeep.maintain()

    assert (unsettled, shown("archive_unsettled")) == (1, 0)
    assert shown("archive_upkeep_total", result="not_settled") == before + 1
    assert shown("archive_upkeep_timestamp_seconds") > 0
