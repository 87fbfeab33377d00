"""Tenants' border in the API itself: over memories that give whatever they have, no route gives another tenant's.

What the stores hold back, and tenants that call everything alike: `test_api_same_ids`.
"""

from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from models.events import ProfileUpdated
from streams.index.collections import OF_EVENTS, SEGMENTS
from tests.support.api_apps import memory, space
from tests.support.api_asked import asked_of, shown_of
from tests.support.api_doubles import Served, bearer, episode, fact, settings_of, stats
from tests.support.api_tenants import QUERY, SHARED, TENANTS, canary, project_items_of, topic_of, turns_of
from tests.support.live_made import profile, segment

ADMINS = settings_of(*TENANTS, admin=True)
"""What only admins may, they may with their own apps."""
WITHOUT_MEMORY = ("/livez", "/readyz", "/metrics")
WRITTEN = (
    "/v1/sessions/{session_id}/feedback",
    "/v1/sessions/{session_id}/turns/{turn}",
    "/v1/users/{user_id}/mode",
)
"""Are answered by a place in the log."""


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """Memories of users and a search that give whatever they have, so that the API's own guard is what holds."""
    served = Served(settings=ADMINS)
    for app in TENANTS:
        await served.say(*turns_of(app))
        for user, session in ((SHARED, SHARED), (f"user-{app}", f"session-{app}")):
            served.users.known_facts.append(fact("name", canary(app), app=app, user=user, importance=0.9))
            served.users.known_episodes.append(episode(1, f"{canary(app)}: {QUERY}", app=app, user=user))
            served.users.known_users.append(stats((session, 0), (session, 1), app=app, user=user))
            topic = topic_of(app, session)
            known = (
                profile(session, app=app, user=user),
                structs.replace(segment(session, app=app), summary=canary(app)),
            )
            for points, event in zip((OF_EVENTS[ProfileUpdated], SEGMENTS), known, strict=True):
                await points.note(served.store, served.embedder.dim, [(event, 0)])
            await served.topics.add_changes([(topic, TENANTS.index(app))], served.embedder.embed([topic.title]))
        served.apps.known.append(memory(1, f"{canary(app)}: {QUERY}", app=app))
        served.apps.all_stats.append(space(app))
        for project, session in ((f"project-{app}", f"session-{app}"), (SHARED, SHARED)):
            served.projects.put(app, project, project_items_of(app, session))
    yield served
    await served.close()


async def answers(served: Served, *, of: str, to: str) -> list[tuple[str, str]]:
    """What a tenant is told when it asks for some tenant's ids, and by which route."""
    headers = {**bearer(to), "Accept": "application/json, text/event-stream"}
    asked = asked_of(served.app.openapi(), of)
    async with served.tools.running(), served.client(headers) as client:
        return [(each.route, (await client.request(each.method, each.path, json=each.body)).text) for each in asked]


async def test_no_route_gives_another_tenants_memory(served: Served) -> None:
    """Asked with A's token for B's ids, in each parameter, nothing of B's comes back."""
    told = await answers(served, of="b", to="a")

    assert [] == [each for each in told if shown_of(each[0], "b") in each[1] or canary("b") in each[1]]


async def test_every_route_gives_a_tenants_own_memory(served: Served) -> None:
    """The same requests with B's own token do find the canary: the test above could fail."""
    told = await answers(served, of="b", to="b")
    found = {route for route, text in told if shown_of(route, "b") in text}

    assert {route for route, _ in told} - found == {"/v1/index", "/v1/erase/{request_id}", *WITHOUT_MEMORY, *WRITTEN}
