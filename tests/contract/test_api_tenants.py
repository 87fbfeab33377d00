"""No tenant reads another: a canary of each, and every route asked with one's token for the other's ids.

A route that is added without a case in `tests/api_asked.py` fails the suite.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry
from starlette.routing import Route

from models.policy import Policy
from streams.api.assembly import admin_routes, memory_api
from streams.api.mcp.server import McpEndpoint
from streams.http.answering import ServedRoute, served_routes
from streams.http.health import Api, Endpoint, create_api
from streams.http.security import access_of
from streams.index.app_memory import AppMemories
from streams.index.edge import EdgeStore
from streams.index.project_memory import ProjectMemories
from streams.index.session_memory import SessionVectorMemory
from streams.index.topic_memory import TopicMemory
from streams.index.user_memory import UserMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import VectorStore
from tests.api_apps import Erasures, memory, space
from tests.api_asked import CASES, SHOWN
from tests.api_doubles import Served, bearer, episode, fact, settings_of, standing
from tests.api_tenants import (
    QUERY,
    SHARED,
    TENANTS,
    Carrying,
    app_memory_of,
    app_space_of,
    canary,
    index_projects,
    project_items_of,
    topic_of,
    turns_of,
    user_events_of,
)

WITHOUT_A_CASE = {"/openapi.json", "/docs", "/livez", "/readyz", "/metrics"}
"""What everybody may read: it holds no memory."""


_OF_PROJECTS = tuple(path for path in CASES if path.startswith("/v1/projects"))
_READS = tuple(
    path
    for path, asks in CASES.items()
    if path in ("/v1/retrieve", "/v1/context", "/v1/search")
    or (path not in _OF_PROJECTS and {ask.method for ask in asks("b")} == {"GET"})
)
GROUPS = [_READS, *((path,) for path in CASES if path not in {*_READS, *_OF_PROJECTS}), _OF_PROJECTS]
"""Paths that are asked of one role, for filling one takes long: what reads, each that changes something, projects."""


_EMBEDDER = cache(WordLlamaEmbedder)
"""Loading its weights takes longer than most tests."""


class Role(NamedTuple):
    """A role that has both tenants' memory."""

    app: Api
    endpoint: Endpoint

    def paths(self) -> set[str]:
        """Every path that it answers."""
        return {route.path for route in self.app.routes if isinstance(route, Route)}


async def _real(store: VectorStore) -> Role:
    """What the index role fills, and what it serves of it."""
    embedder = _EMBEDDER()
    turns, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    topics, apps = TopicMemory(store, embedder, turns), AppMemories(store, embedder)
    projects = ProjectMemories(store, embedder, Policy().projects)
    for offset, app in enumerate(TENANTS):
        mine = turns_of(app)
        await turns.add_turns(mine, embedder.embed([turn.content for turn in mine]))
        await apps.add_changes([(app_memory_of(app), offset)])
        await apps.add_standings([(app_space_of(app), offset)])
        await index_projects(projects, app)
        changes = [(topic_of(app, session), offset) for session in (SHARED, f"session-{app}")]
        await topics.add_changes(changes, embedder.embed([topic.title for topic, _ in changes]))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            changed, compressed, stands = user_events_of(app, user, session)
            await users.add_facts([(changed, offset)])
            await users.add_episodes([(compressed, offset)])
            await users.add_standings([(stands, offset)])
    made = memory_api(
        store,
        embedder,
        Policy(),
        settings_of(*TENANTS),
        topic_prefix="test",
        commands=Carrying(apps, projects),
        erasures=Erasures(),
    )
    endpoint = next(each for each in made.endpoints if isinstance(each, McpEndpoint))
    return _role(list(made.routes), endpoint)


async def _careless(served: Served) -> Role:
    """Memories of users and a search that give whatever they have, so that the API's own guard is what holds."""
    for app in TENANTS:
        await served.say(*turns_of(app))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            served.users.known_facts.append(fact("name", canary(app), app=app, user=user, importance=0.9))
            served.users.known_episodes.append(episode(1, f"{canary(app)}: {QUERY}", app=app, user=user))
            served.users.known_users.append(standing((session, 0), (session, 1), app=app, user=user))
        served.apps.known.append(memory(1, f"{canary(app)}: {QUERY}", app=app))
        served.apps.standings.append(space(app))
        for project, session in ((f"project-{app}", f"session-{app}"), (SHARED, SHARED)):
            served.projects.put(app, project, project_items_of(app, session))
    admins = admin_routes(served.apps, Policy().apps, served.apps, served.erasures)
    routes = [*served_routes(served.reader), *served.project_routes, *admins]
    return _role(routes, McpEndpoint(served.asked))


def _role(routes: list[ServedRoute], endpoint: Endpoint) -> Role:
    settings = settings_of(*TENANTS, admin=True)  # what only admins may, they may with their own apps
    app = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routes=routes,
        access=access_of(settings),
        endpoints=[endpoint],
    )
    return Role(app, endpoint)


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


def served_of(role: Role, paths: tuple[str, ...]) -> list[str]:
    """Those of the paths that the role has."""
    has = role.paths()
    return [path for path in paths if path in has]


async def test_every_route_has_a_case(role: Role) -> None:
    """A route that nobody tried to cross is not served; nor is a case kept for one that is gone."""
    missing = role.paths() - set(CASES) - WITHOUT_A_CASE
    wanted = {path for path in CASES if path.startswith(("/v1/sessions", "/v1/index"))}

    assert missing == set()
    assert set(CASES) - role.paths() <= wanted


@pytest.mark.parametrize("paths", GROUPS, ids=lambda paths: paths[0])
async def test_no_route_gives_another_tenants_memory(role: Role, paths: tuple[str, ...]) -> None:
    """Asked with A's token for B's ids, in each parameter, nothing of B's comes back."""
    told = [(path, text) for path in served_of(role, paths) for text in await answers(role, path, of="b", to="a")]

    assert [] == [each for each in told if SHOWN.get(each[0], canary("b")) in each[1] or canary("b") in each[1]]


@pytest.mark.parametrize("paths", GROUPS, ids=lambda paths: paths[0])
async def test_every_route_gives_a_tenants_own_memory(role: Role, paths: tuple[str, ...]) -> None:
    """The same requests with B's own token do find the canary: the test above could fail."""
    silent = []
    for path in served_of(role, paths):
        told = await answers(role, path, of="b", to="b")
        if not any(SHOWN.get(path, canary("b")) in text for text in told):
            silent.append(path)

    assert set(silent) <= {"/v1/index", "/v1/erase/{request_id}"}


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


async def test_what_an_app_shares_crosses_the_border_and_nothing_else(tmp_path: Path) -> None:
    """In B's prompts stand the memories of A that name B; of the rest, and of where they are from, B learns nothing."""
    store = EdgeStore(tmp_path, embedder="wordllama")
    role = await _real(store)
    shared = structs.replace(
        app_memory_of("a"), slot=1, memory_id=2, content="shared words", tags=[], shared_with=["b"]
    )
    await AppMemories(store, WordLlamaEmbedder()).add_changes([(shared, 9)])
    told = {}
    for app in TENANTS:
        transport = httpx.ASGITransport(role.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=bearer(app)) as client:
            prompt = await client.post("/v1/context", json={"user_id": "u", "query": "x", "app_memories": True})
            listed = await client.get(f"/apps/{app}/memories?include_shared=true")
            told[app] = prompt.text + listed.text
    await store.close()

    assert [("shared words" in told[app], canary("a") in told[app]) for app in TENANTS] == [(True, True), (True, False)]
    assert "session-a" not in told["b"]
