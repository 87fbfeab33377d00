"""No tenant reads another: a canary of each, and every route asked with one's token for the other's ids.

A route that is added is asked too; one that takes what `tests/support/api_asked.py` knows nothing for fails the suite.
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

from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.mcp.server import McpEndpoint
from streams.http.health import Api, Endpoint, create_api
from streams.http.security import access_of
from streams.index.app_memory import AppMemoryIndex
from streams.index.edge import EdgeStore
from streams.index.project_memory import ProjectMemories
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import VectorStore
from tests.support.api_apps import Erasures, memory, space
from tests.support.api_asked import asked_of, shown_of
from tests.support.api_doubles import Served, bearer, episode, fact, settings_of, stats
from tests.support.api_tenants import (
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

URL = "http://127.0.0.1"
ADMINS = settings_of(*TENANTS, admin=True)
"""What only admins may, they may with their own apps."""
WITHOUT_MEMORY = ("/livez", "/readyz", "/metrics")
_EMBEDDER = cache(WordLlamaEmbedder)
"""Loading its weights takes longer than most tests."""


class Role(NamedTuple):
    """A role that has both tenants' memory."""

    app: Api
    tools: Endpoint
    store: VectorStore


async def _real(store: VectorStore) -> Role:
    """What the index role fills, and what it serves of it."""
    embedder = _EMBEDDER()
    turns, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    topics, apps = TopicMemory(store, embedder, turns), AppMemoryIndex(store, embedder)
    projects = ProjectMemories(store, embedder, Policy().projects)
    for offset, app in enumerate(TENANTS):
        mine = turns_of(app)
        await turns.add_turns(mine, embedder.embed([turn.content for turn in mine]))
        await apps.add_changes([(app_memory_of(app), offset)])
        await apps.add_stats([(app_space_of(app), offset)])
        await index_projects(projects, app)
        changes = [(topic_of(app, session), offset) for session in (SHARED, f"session-{app}")]
        await topics.add_changes(changes, embedder.embed([topic.title for topic, _ in changes]))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            changed, compressed, stands = user_events_of(app, user, session)
            await users.add_facts([(changed, offset)])
            await users.add_episodes([(compressed, offset)])
            await users.add_stats([(stands, offset)])
    made = memory_api(
        store,
        embedder,
        Policy(),
        ADMINS,
        topic_prefix="test",
        commands=Carrying(apps, projects),
        erasures=Erasures(),
    )
    tools = next(each for each in made.endpoints if isinstance(each, McpEndpoint))
    api = create_api(
        ready=lambda: (True, "ready"),
        registry=CollectorRegistry(),
        routes=made.routes,
        access=access_of(ADMINS),
        endpoints=[tools],
    )
    return Role(api, tools, store)


async def _careless(served: Served) -> Role:
    """Memories of users and a search that give whatever they have, so that the API's own guard is what holds."""
    for app in TENANTS:
        await served.say(*turns_of(app))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            served.users.known_facts.append(fact("name", canary(app), app=app, user=user, importance=0.9))
            served.users.known_episodes.append(episode(1, f"{canary(app)}: {QUERY}", app=app, user=user))
            served.users.known_users.append(stats((session, 0), (session, 1), app=app, user=user))
            topic = topic_of(app, session)
            await served.topics.add_changes([(topic, TENANTS.index(app))], _EMBEDDER().embed([topic.title]))
        served.apps.known.append(memory(1, f"{canary(app)}: {QUERY}", app=app))
        served.apps.all_stats.append(space(app))
        for project, session in ((f"project-{app}", f"session-{app}"), (SHARED, SHARED)):
            served.projects.put(app, project, project_items_of(app, session))
    return Role(served.app, served.tools, served.store)


@pytest.fixture(params=["real", "careless"])
async def role(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Role]:
    """Each kind of memories."""
    if request.param == "careless":
        served = Served(settings=ADMINS)
        yield await _careless(served)
        await served.close()
        return
    store = EdgeStore(tmp_path, embedder="wordllama")
    yield await _real(store)
    await store.close()


REAL = pytest.mark.parametrize("role", ["real"], indirect=True)


async def answers(role: Role, *, of: str, to: str, route: str = "") -> list[tuple[str, str]]:
    """What a tenant is told when it asks for some tenant's ids, and by which route."""
    headers = {**bearer(to), "Accept": "application/json, text/event-stream"}
    asked = [each for each in asked_of(role.app.openapi(), of) if route in {"", each.route}]
    transport = httpx.ASGITransport(role.app)
    async with role.tools.running(), httpx.AsyncClient(transport=transport, base_url=URL, headers=headers) as client:
        return [(each.route, (await client.request(each.method, each.path, json=each.body)).text) for each in asked]


async def test_no_route_gives_another_tenants_memory(role: Role) -> None:
    """Asked with A's token for B's ids, in each parameter, nothing of B's comes back."""
    told = await answers(role, of="b", to="a")

    assert [] == [each for each in told if shown_of(each[0], "b") in each[1] or canary("b") in each[1]]


async def test_every_route_gives_a_tenants_own_memory(role: Role) -> None:
    """The same requests with B's own token do find the canary: the test above could fail."""
    told = await answers(role, of="b", to="b")
    found = {route for route, text in told if shown_of(route, "b") in text}

    assert {route for route, _ in told} - found == {"/v1/index", "/v1/erase/{request_id}", *WITHOUT_MEMORY}


@REAL
async def test_a_tenant_counts_its_own_turns(role: Role) -> None:
    """How much another tenant says is its own affair."""
    ((_, told),) = await answers(role, of="a", to="a", route="/v1/index")

    assert told == '{"topic_prefix":"test","turns":2}'


@REAL
async def test_a_shared_id_leads_each_tenant_to_its_own(role: Role) -> None:
    """Users of one id in two apps are two users; a session's turns of another app are not there."""
    told = {app: await answers(role, of=app, to=app, route="/v1/users/{user_id}/recent") for app in TENANTS}

    assert [(text.count(canary("a")), text.count(canary("b"))) for _, text in told["a"]] == [(1, 0)] * 4
    assert [(text.count(canary("a")), text.count(canary("b"))) for _, text in told["b"]] == [(0, 1)] * 4


@REAL
async def test_what_an_app_shares_crosses_the_border_and_nothing_else(role: Role) -> None:
    """In B's prompts stand the memories of A that name B; of the rest, and of where they are from, B learns nothing."""
    shared = structs.replace(
        app_memory_of("a"), slot=1, memory_id=2, content="shared words", tags=[], shared_with=["b"]
    )
    await AppMemoryIndex(role.store, _EMBEDDER()).add_changes([(shared, 9)])
    told = {}
    for app in TENANTS:
        transport = httpx.ASGITransport(role.app)
        async with httpx.AsyncClient(transport=transport, base_url=URL, headers=bearer(app)) as client:
            prompt = await client.post("/v1/context", json={"user_id": "u", "query": "x", "app_memories": True})
            listed = await client.get(f"/apps/{app}/memories?include_shared=true")
            told[app] = prompt.text + listed.text

    assert [("shared words" in told[app], canary("a") in told[app]) for app in TENANTS] == [(True, True), (True, False)]
    assert "session-a" not in told["b"]
