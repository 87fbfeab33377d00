"""What every role answers over HTTP: health, metrics, its contract, and which route an id leads to."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Counter
from starlette.responses import Response
from starlette.routing import Route

from streams.http.answering import Matching
from tests.support.api_doubles import Log, Served
from tests.support.http_api import api_of, client_of

IDS = ["plain", "a/b", "/", "..", "naïve 東京 🌙", "100%", "q?a=b&c#d", "a\\b", 'shop/eu ü%2F"memories/7', "x" * 256]
LIKE_ROUTES = [
    "topics",
    "/topics",
    "a/similar",
    "x/turns",
    "plain/topics",
    "plain/topics/search",
    "a/facts",
    "x/standing",
]


async def test_readiness_follows_the_role_and_says_why() -> None:
    """An orchestrator sends no work before recovery; liveness does not depend on it."""
    state = (False, "recovering partition 3: 120 of 4000 records")
    async with client_of(api_of(ready=lambda: state)) as client:
        not_ready, alive = await client.get("/readyz"), await client.get("/livez")
        reason, state = state[1], (True, "ready")
        ready = await client.get("/readyz")

    assert (503, reason) == (not_ready.status_code, not_ready.text)
    assert (ready.status_code, ready.text) == (200, "ready")
    assert alive.status_code == 200


async def test_metrics_are_the_registrys() -> None:
    """Prometheus reads its own text format, of this registry only."""
    registry = CollectorRegistry()
    Counter("turntide_turns_folded", "Turns.", registry=registry).inc(5)
    async with client_of(api_of(registry=registry)) as client:
        answer = await client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "turntide_turns_folded_total 5.0" in answer.text
    assert "python_info" not in answer.text


async def test_any_id_can_be_asked_for() -> None:
    """Ids are the producers': slashes, dots, percent signs and words of our own paths in it reach every route."""
    found: list[tuple[Route, dict[str, str]]] = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        route, child = scope["turntide.matched"]
        found.append((route, child.get("path_params")))
        await Response()(scope, receive, send)

    routes = [each for each in Served(log=Log()).app.routes if isinstance(each, Route) and ":path}" in each.path]
    assert len(routes) > 20
    async with client_of(Matching(noted, routes)) as client:
        for route in routes:
            for name in IDS if route.path.endswith(":path}") else [*IDS, *LIKE_ROUTES]:
                ids = {each: name if way else "1" for each, way in re.findall(r"{(\w+)(:path)?}", route.path)}
                sent = {key: quote(value, safe="").replace(".", "%2E") for key, value in ids.items()}
                path = route.path.replace(":path", "").format(**sent)
                for method in route.methods or ():
                    await client.request(method, path)
                    assert found.pop() == (route, ids)


async def test_no_page_loads_scripts_from_elsewhere() -> None:
    """The contract is there as JSON and as a page of its own; the usual pages around it would fetch from a CDN."""
    async with client_of(Served().app) as client:
        contract, docs = await client.get("/openapi.json"), await client.get("/docs")

    assert docs.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "<code>GET /v1/sessions/{session_id}/similar</code>" in docs.text
    assert "<script" not in docs.text
    assert "/v1/sessions/{session_id}/similar" in contract.json()["paths"]
