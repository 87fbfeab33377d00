"""HTTP routes, without a socket: health, metrics, reading a session's turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from urllib.parse import quote

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from qdrant_client import AsyncQdrantClient

from models.events import Role, Turn
from streams.api.sessions.turns import SessionReader
from streams.http.answering import served_routes
from streams.http.health import Api, create_api
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory
from streams.inference.wordllama import WordLlamaEmbedder

SESSIONS = ["plain", "a/b", "/", "..", "a/similar", "x/turns", "naïve 東京 🌙", "100%", "q?a=b&c#d", "a\\b", "x" * 256]


def client_of(app: Api) -> httpx.AsyncClient:
    """A client that calls the app directly."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://role")


@pytest.fixture
async def store() -> AsyncIterator[ServerStore]:
    """A store without network."""
    made = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")
    yield made
    await made.close()


@pytest.fixture
async def reader(store: ServerStore) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a role that has indexed three turns of each session."""
    embedder = WordLlamaEmbedder()
    memory = SessionVectorMemory(store, embedder)
    contents = ["the weather in Oslo", "how do I reset my password", "thanks"]
    turns = [
        Turn(
            session_id=session,
            user_id="u",
            app_id="a",
            turn=number,
            role=Role.USER,
            content=content,
            timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for session in SESSIONS
        for number, content in enumerate(contents)
    ]
    await memory.add_turns(turns, embedder.embed([turn.content for turn in turns]))
    app = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routes=served_routes(SessionReader(memory, topic_prefix="test")),
    )
    async with client_of(app) as client:
        yield client


async def test_readiness_follows_the_role_and_says_why() -> None:
    """An orchestrator sends no work before recovery; liveness does not depend on it."""
    state = (False, "recovering partition 3: 120 of 4000 records")
    app = create_api(ready=lambda: state, registry=CollectorRegistry())
    async with client_of(app) as client:
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
    async with client_of(create_api(ready=lambda: (True, ""), registry=registry)) as client:
        answer = await client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "turntide_turns_folded_total 5.0" in answer.text
    assert "python_info" not in answer.text


@pytest.mark.parametrize("session", SESSIONS, ids=range(len(SESSIONS)))
async def test_any_session_id_can_be_asked_for(reader: httpx.AsyncClient, session: str) -> None:
    """Ids are the producer's: slashes, dots, percent signs and other scripts reach the store unchanged."""
    base = f"/v1/sessions/{quote(session, safe='').replace('.', '%2E')}"
    similar = await reader.get(f"{base}/similar", params={"q": "reset my password", "top_k": 1})
    turns = await reader.get(f"{base}/turns", params={"last": 2})

    assert [(session, 1)] == [(t["session_id"], t["turn"]) for t in similar.json()]
    assert [(session, 1), (session, 2)] == [(t["session_id"], t["turn"]) for t in turns.json()]


@pytest.mark.parametrize(
    "path",
    [
        "s/similar",
        "s/similar?q=",
        f"s/similar?q={'x' * 8_001}",
        "s/similar?q=a&top_k=0",
        "s/similar?q=a&top_k=101",
        "s/similar?q=a&top_k=five",
        "s/turns?last=0",
        "s/turns?last=1001",
        f"{'x' * 257}/turns",
        "/turns",
    ],
)
async def test_wrong_input_is_refused(reader: httpx.AsyncClient, path: str) -> None:
    """422 with the field, before anything is asked of the store."""
    answer = await reader.get(f"/v1/sessions/{path}")

    assert answer.status_code == 422


async def test_no_page_loads_scripts_from_elsewhere(reader: httpx.AsyncClient) -> None:
    """The contract is there as JSON and as a page of its own; the usual pages around it would fetch from a CDN."""
    contract, docs = await reader.get("/openapi.json"), await reader.get("/docs")

    assert docs.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "<code>GET /v1/sessions/{session_id}/similar</code>" in docs.text
    assert "<script" not in docs.text
    assert "/v1/sessions/{session_id}/similar" in contract.json()["paths"]
