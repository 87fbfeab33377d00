"""No tenant reads another: a canary of each, and every route asked with one's token for the other's ids.

A route that is added without a case here fails the suite.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry
from starlette.routing import Route

from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.health import Endpoint, create_api
from streams.api.mcp import PATH as MCP_PATH
from streams.api.mcp import McpEndpoint
from streams.api.memory import memory_router
from streams.api.security import access_of
from streams.embed.wordllama import WordLlamaEmbedder
from streams.ports import VectorStore
from streams.vectors.edge import EdgeStore
from streams.vectors.session_memory import SessionVectorMemory
from streams.vectors.topic_memory import LoggedChange, TopicMemory
from streams.vectors.user_memory import UserMemory
from tests.api_doubles import Served, bearer, episode, fact, settings_of, standing
from tests.api_tenants import QUERY, SHARED, TENANTS, canary, topic_of, turns_of, user_events_of

WITHOUT_A_CASE = {"/openapi.json", "/livez", "/readyz", "/metrics"}
"""What everybody may read: it holds no memory."""


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: dict[str, Any] | None = None


def _of_user(name: str) -> Callable[[str], list[Asked]]:
    """A look-up of each of the tenant's users, with its app, without one, and with another's."""

    def asked(app: str) -> list[Asked]:
        end = f"/{name}" if name else ""
        users = (SHARED, f"user-{app}")
        return [Asked("GET", f"/v1/users/{user}{end}{query}") for user in users for query in ("", f"?app_id={app}")]

    return asked


def _of_session(end: str, **params: str) -> Callable[[str], list[Asked]]:
    """A look-up of each of the tenant's sessions."""

    def asked(app: str) -> list[Asked]:
        query = "&".join(f"{key}={quote(value)}" for key, value in {**params, "include_gone": "true"}.items())
        paths = [end.format(app=app)]
        return [
            Asked("GET", f"/v1/sessions/{session}/{path}?{query}{more}")
            for session in (SHARED, f"session-{app}")
            for path in paths
            for more in ("", f"&topic=topic-{app}")
        ]

    return asked


def _bodies(app: str, *, with_session: bool = True) -> Iterator[dict[str, Any]]:
    """Requests that name the tenant's ids in each field that there is, alone and together."""
    for user in (SHARED, f"user-{app}"):
        for app_id in ({}, {"app_id": app}):
            yield {"query": QUERY, "user_id": user, **app_id}
            if with_session:
                for session in (SHARED, f"session-{app}"):
                    yield {"query": QUERY, "user_id": user, "session_id": session, **app_id}


def _retrieve(app: str) -> list[Asked]:
    after = {"after": {"session_id": f"session-{app}", "turn": 0, "timeout_ms": 0}}
    asked = [{**body, "max_distance": 2.0} for body in _bodies(app, with_session=False)]
    return [Asked("POST", "/v1/retrieve", {**body, **more}) for body in asked for more in ({}, after)]


def _context(app: str) -> list[Asked]:
    return [Asked("POST", "/v1/context", body) for body in _bodies(app)]


def _search(app: str) -> list[Asked]:
    bodies = [*_bodies(app), {"query": QUERY, "app_id": app}, {"query": QUERY, "session_id": f"session-{app}"}]
    return [Asked("POST", "/v1/search", {**body, "kind": kind}) for body in bodies for kind in ("turns", "episodes")]


def _tools(app: str) -> list[Asked]:
    calls = [
        *(("search_memory", body) for body in _bodies(app, with_session=False)),
        *(("get_context", body) for body in _bodies(app)),
        *(("list_facts", {**body, "query": None}) for body in _bodies(app, with_session=False)),
    ]
    return [Asked("POST", MCP_PATH, _call(name, arguments)) for name, arguments in calls]


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in arguments.items() if value is not None}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}


def _index(_app: str) -> list[Asked]:
    return [Asked("GET", "/v1/index")]


CASES: dict[str, Callable[[str], list[Asked]]] = {
    "/v1/retrieve": _retrieve,
    "/v1/context": _context,
    "/v1/search": _search,
    "/v1/users/{user_id:path}/facts": _of_user("facts"),
    "/v1/users/{user_id:path}/episodes": _of_user("episodes"),
    "/v1/users/{user_id:path}/recent": _of_user("recent"),
    "/v1/users/{user_id:path}/standing": _of_user("standing"),
    "/v1/users/{user_id:path}": _of_user(""),
    "/v1/sessions/{session_id:path}/similar": _of_session("similar", q=QUERY),
    "/v1/sessions/{session_id:path}/turns": _of_session("turns"),
    "/v1/sessions/{session_id:path}/topics": _of_session("topics"),
    "/v1/sessions/{session_id:path}/topics/search": _of_session("topics/search", q=QUERY),
    "/v1/sessions/{session_id:path}/context": _of_session("context"),
    "/v1/sessions/{session_id:path}/history": _of_session("history"),
    "/v1/sessions/{session_id:path}/stats": _of_session("stats"),
    "/v1/sessions/{session_id:path}/topics/{topic}": _of_session("topics/topic-{app}"),
    "/v1/index": _index,
    MCP_PATH: _tools,
}
"""What is asked with a tenant's ids, by the route's path."""
SHOWN = {
    "/v1/users/{user_id:path}/standing": '"app_id":"b","known":true',
    "/v1/users/{user_id:path}": '"app_id":"b","known":true',
}
"""What tells that a route found something of B's, where its answer holds no text."""


class Role(NamedTuple):
    """A role that has both tenants' memory."""

    app: FastAPI
    routers: list[APIRouter]
    endpoint: Endpoint

    def paths(self) -> set[str]:
        """Every path that it answers."""
        routes = chain(self.app.routes, *(each.routes for each in self.routers))
        return {route.path for route in routes if isinstance(route, APIRoute | Route)}


async def _real(store: VectorStore) -> Role:
    """What the index role fills, and what it serves of it."""
    embedder = WordLlamaEmbedder()
    turns, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    topics = TopicMemory(store, embedder, turns)
    for offset, app in enumerate(TENANTS):
        mine = turns_of(app)
        await turns.add_turns(mine, embedder.embed([turn.content for turn in mine]))
        changes = [LoggedChange(topic_of(app, session), offset) for session in (SHARED, f"session-{app}")]
        await topics.add_changes(changes, embedder.embed([change.event.title for change in changes]))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            changed, compressed, stands = user_events_of(app, user, session)
            await users.add_facts([(changed, offset)])
            await users.add_episodes([(compressed, offset)])
            await users.add_standings([(stands, offset)])
    made = memory_api(store, embedder, Policy(), settings_of(*TENANTS), topic_prefix="test")
    (endpoint,) = made.endpoints
    return _role(list(made.routers), endpoint)


async def _careless(served: Served) -> Role:
    """Memories of users and a search that give whatever they have, so that the API's own guard is what holds."""
    for app in TENANTS:
        await served.say(*turns_of(app))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            served.users.known_facts.append(fact("name", canary(app), app=app, user=user, importance=0.9))
            served.users.known_episodes.append(episode(1, f"{canary(app)}: {QUERY}", app=app, user=user))
            served.users.known_users.append(standing((session, 0), (session, 1), app=app, user=user))
    return _role([memory_router(served.reader)], McpEndpoint(served.reader))


def _role(routers: list[APIRouter], endpoint: Endpoint) -> Role:
    settings = settings_of(*TENANTS)
    app = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routers=routers,
        access=access_of(settings),
        endpoints=[endpoint],
    )
    return Role(app, routers, endpoint)


@pytest.fixture(params=["real", "careless"])
async def role(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Role]:
    """Each kind of memories."""
    if request.param == "careless":
        served = Served()
        yield await _careless(served)
        await served.close()
        return
    store = EdgeStore(tmp_path, embedder="wordllama")
    yield await _real(store)
    await store.close()


async def answers(role: Role, path: str, *, of: str, to: str) -> list[str]:
    """What a tenant is told when it asks for some tenant's ids."""
    transport = httpx.ASGITransport(role.app)
    headers = {**bearer(to), "Accept": "application/json, text/event-stream"}
    async with (
        role.endpoint.running(),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client,
    ):
        return [(await client.request(ask.method, ask.path, json=ask.body)).text for ask in CASES[path](of)]


async def test_every_route_has_a_case(role: Role) -> None:
    """A route that nobody tried to cross is not served; nor is a case kept for one that is gone."""
    missing = role.paths() - set(CASES) - WITHOUT_A_CASE
    wanted = {path for path in CASES if path.startswith(("/v1/sessions", "/v1/index"))}

    assert missing == set()
    assert set(CASES) - role.paths() <= wanted


@pytest.mark.parametrize("path", CASES)
async def test_no_route_gives_another_tenants_memory(role: Role, path: str) -> None:
    """Asked with A's token for B's ids, in each parameter, nothing of B's comes back."""
    if path not in role.paths():
        return
    told = await answers(role, path, of="b", to="a")

    assert [] == [text for text in told if SHOWN.get(path, canary("b")) in text or canary("b") in text]


@pytest.mark.parametrize("path", sorted(set(CASES) - {"/v1/index"}))
async def test_every_route_gives_a_tenants_own_memory(role: Role, path: str) -> None:
    """The same requests with B's own token do find the canary: the test above could fail."""
    if path not in role.paths():
        return
    told = await answers(role, path, of="b", to="b")

    assert [text for text in told if SHOWN.get(path, canary("b")) in text] != []


async def test_a_tenant_counts_its_own_turns(tmp_path: Path) -> None:
    """How much another tenant says is its own affair."""
    store = EdgeStore(tmp_path, embedder="wordllama")
    role = await _real(store)
    (told,) = await answers(role, "/v1/index", of="a", to="a")
    await store.close()

    assert told == '{"topic_prefix":"test","turns":2}'


async def test_a_shared_id_leads_each_tenant_to_its_own(tmp_path: Path) -> None:
    """Users of one id in two apps are two users; a session's turns of another app are not there."""
    store = EdgeStore(tmp_path, embedder="wordllama")
    role = await _real(store)
    told = {app: await answers(role, "/v1/users/{user_id:path}/recent", of=app, to=app) for app in TENANTS}
    await store.close()

    assert [(text.count(canary("a")), text.count(canary("b"))) for text in told["a"]] == [(1, 0)] * 4
    assert [(text.count(canary("a")), text.count(canary("b"))) for text in told["b"]] == [(0, 1)] * 4
