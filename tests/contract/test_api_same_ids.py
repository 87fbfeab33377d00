"""Two tenants that call everything alike: neither sees, changes or removes anything of the other's.

Every route, every tool and the live feed: what a tenant is told where there are two is what it is told where it is
alone, before and after the other one did everything that it may.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
from msgspec import structs
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient

from models.events import (
    AlertAcknowledged,
    AlertLabelled,
    AlertTriaged,
    FeedbackGiven,
    Position,
    ProfileUpdated,
    TopicAdjusted,
    TurnCorrected,
)
from models.events.erase import ErasedSession, EraseScope, VectorsErasureDue
from models.events.topics import TURNS
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.live.hub import ReaderPosition
from streams.api.live.service import LivePage
from streams.api.mcp.endpoint import McpEndpoint
from streams.http.health import Api, Endpoint
from streams.index.app_memory import AppMemoryIndex
from streams.index.collections import OF_EVENTS, SEGMENTS
from streams.index.erasing import VectorErasing
from streams.index.project_memory import ProjectMemories
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.settings import load_settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_apps import Erasures
from tests.support.api_asked import Asked, asked_of
from tests.support.api_doubles import AT, Log, bearer, said, settings_of
from tests.support.api_tenants import (
    QUERY,
    SAME_NAMES,
    SHARED,
    TENANTS,
    Carrying,
    app_memory_of,
    app_space_of,
    canary,
    project_items_of,
    topic_of,
    user_events_of,
)
from tests.support.http_api import api_of, client_of
from tests.support.live_made import alert, at_ms, profile, segment
from tests.support.live_served import WrittenLog
from tests.support.loaded import loaded_embedder
from tests.support.projects_indexed import changed, index, stands

_PASSES = ("age_seconds", "inactive_seconds", "at", "exportedAt")
"""Fields that tell the time of the answer, or how long ago something was."""
_NAMED = ("request_id", "status", "offset")
"""Fields that hold a random name, or a place in a log that is everybody's."""
_Act = AlertAcknowledged | AlertLabelled | AlertTriaged | TurnCorrected
_Unsigned = TopicAdjusted | FeedbackGiven
"""Say not who did it: the audit does."""
ALL = "token-of-all-the-apps"
BOTH = "token-of-both-of-the-apps"


class Role(NamedTuple):
    """A role with the memory of some tenants, and where everything goes that it writes."""

    app: Api
    tools: Endpoint
    store: ServerStore
    page: LivePage
    commands: Carrying
    erasures: Erasures
    turns: WrittenLog
    audit: Log

    @asynccontextmanager
    async def client(self, headers: Mapping[str, str]) -> AsyncIterator[httpx.AsyncClient]:
        """A client with a token."""
        accepts = {"Accept": "application/json, text/event-stream"}
        async with self.tools.running(), client_of(self.app, {**headers, **accepts}) as made:
            yield made

    async def answers(self, app: str, asked: Iterable[Asked]) -> list[tuple[str, int, Any]]:
        """What a tenant is told: each request with its status and answer."""
        async with self.client(bearer(app)) as client:
            told = [(each, await client.request(each.method, each.path, json=each.body)) for each in asked]
        return [(f"{each.method} {each.path} {each.body}", got.status_code, _decoded(got.text)) for each, got in told]

    def feed(self, app: str) -> list[bytes]:
        """What the live stream sends a tenant from its beginning on."""
        at, sent = ReaderPosition(knows=0, began=self.page.board.version, snapshot=True, roles=0), list[bytes]()
        while (step := self.page.hub.next(at, frozenset({app}))) is not None and step[1]:
            at, content, _ = step
            sent.append(b"".join(each for each in content.splitlines(keepends=True) if not each.startswith(b"id:")))
        return sent


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def http_of() -> HttpSettings:
    """A token for each tenant, one of both, and one of all apps; each may do everything."""
    made = settings_of(*TENANTS, admin=True, requests_per_second=10_000)
    more = [(BOTH, list(TENANTS)), (ALL, [])]
    tokens = [
        *made.tokens,
        *(ApiToken(token=SecretStr(token), apps=apps, role=TokenRole.ADMIN, name=token) for token, apps in more),
    ]
    return made.model_copy(update={"tokens": tokens})


async def role_of(*tenants: str) -> Role:
    """A role with the memory of these tenants, at the same places of the log."""
    store, embedder, log = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama"), loaded_embedder(), Log()
    apps, projects = AppMemoryIndex(store, embedder), ProjectMemories(store, embedder, Policy().projects)
    http, written, erasures = http_of(), WrittenLog(), Erasures()
    page, commands = (
        LivePage(load_settings(http=http.model_dump()), written),
        Carrying(apps, projects, UserMemory(store, embedder)),
    )
    for app in tenants:
        await remember(store, apps, projects, app)
        watch(page, app)
    to = {"commands": commands, "erasures": erasures, "audit": log, "live": page, "writer": written}
    made = memory_api(store, embedder, Policy(), http, topic_prefix="test", **to)  # type: ignore[arg-type]
    tools = next(each for each in made.endpoints if isinstance(each, McpEndpoint))
    api = api_of(made.routes, endpoints=[log, tools], http=http)
    return Role(api, tools, store, page, commands, erasures, written, log)


async def remember(store: ServerStore, apps: AppMemoryIndex, projects: ProjectMemories, app: str) -> None:
    """Everything that can be remembered of a tenant's one user, session and project."""
    embedder, ids = loaded_embedder(), {"session_id": SHARED, "user_id": SHARED}
    turns, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    spoken = [said(n, f"{canary(app)}: {QUERY} {n}", app=app, user=SHARED, session=SHARED) for n in (0, 1)]
    spoken[0] = structs.replace(spoken[0], message_id=canary(app))
    await turns.add_turns(
        spoken, embedder.embed([each.content for each in spoken]), None, [Position("turns.v1", 0, n) for n in (0, 1)]
    )
    topic = structs.replace(topic_of(app, SHARED), topic_id=SAME_NAMES.topic, user_id=SHARED, turn=1, session_topics=1)
    await TopicMemory(store, embedder, turns).add_changes([(topic, 0)], embedder.embed([topic.title]))
    fact, episode, standing = user_events_of(app, SHARED, SHARED)
    await users.add_facts([(fact, 0)])
    await users.add_episodes([(episode, 0)])
    await users.add_stats([(structs.replace(standing, seen={"0": 9}), 0)])
    await apps.add_changes([(structs.replace(app_memory_of(app), **ids), 0)])
    await apps.add_stats([(app_space_of(app), 0)])
    await OF_EVENTS[ProfileUpdated].note(store, embedder.dim, [(profile(SHARED, app=app, user=SHARED), 0)])
    await SEGMENTS.note(store, embedder.dim, [(structs.replace(segment(SHARED, app=app), summary=canary(app)), 0)])
    slots: dict[type, int] = {}
    events = []
    for item in project_items_of(app, SHARED):
        slots[type(item)] = slot = slots.get(type(item), -1) + 1
        events.append(changed(item, slot, app=app, project=SHARED, session_id=SHARED))
    await index(projects, *events, stands(app=app, project=SHARED))


def watch(page: LivePage, app: str) -> None:
    """A session on the board, with an alert; their ids alone are of a place in the log, so no two tenants share one."""
    page.board.take_profile(profile(SHARED, app=app, user=SHARED), at_ms())
    page.board.take_segment(segment(SHARED, app=app), at_ms())
    page.board.take_alert(alert(SHARED, f"alert-{app}", app=app, user=SHARED, reason=canary(app)), at_ms())


def unlike(told: Any, expected: Any, at: str = "") -> list[str]:
    """Where two answers differ, but for time and random names."""
    if isinstance(told, dict) and isinstance(expected, dict):
        names = [each for each in {**told, **expected} if each not in (*_PASSES, *_NAMED)]
        return [each for n in names for each in unlike(told.get(n), expected.get(n), f"{at}.{n}")]
    if isinstance(told, list) and isinstance(expected, list):
        pairs = enumerate(zip_longest(told, expected))
        return [each for n, pair in pairs for each in unlike(*pair, f"{at}[{n}]")]
    if isinstance(told, float) and isinstance(expected, float):
        return [] if told == pytest.approx(expected, abs=1e-3) else [f"{at}: {told} is not {expected}"]
    return [] if told == expected else [f"{at}: {told!r} is not {expected!r}"]


def differences(told: list[tuple[str, int, Any]], expected: list[tuple[str, int, Any]]) -> list[str]:
    """Requests that are answered in another way."""
    return [
        f"{mine[0]}{where}"
        for mine, alone in zip(told, expected, strict=True)
        for where in unlike([*mine[1:]], [*alone[1:]])
    ]


@pytest.fixture
async def roles() -> AsyncIterator[dict[str, Role]]:
    """One with both tenants, and one with each alone."""
    made = {"both": await role_of(*TENANTS), **{app: await role_of(app) for app in TENANTS}}
    yield made
    for each in made.values():
        await each.store.close()


def asked(role: Role, app: str) -> list[Asked]:
    """Everything that a tenant may ask, by the names that both have; counters of the process are nobody's."""
    found = asked_of(role.app.openapi(), app, SAME_NAMES)
    return [each for each in found if each.route not in {"/metrics", "/readyz", "/livez"}]


async def test_who_has_the_same_ids_is_as_if_alone(roles: dict[str, Role]) -> None:
    """A does all it may, then B: each is answered as where it is alone, and what is written names its writer's app."""
    both = roles["both"]
    for app, other in zip(TENANTS, TENANTS[::-1], strict=True):
        told = await both.answers(app, asked(both, app))
        alone = await roles[app].answers(app, asked(roles[app], app))
        crossing = await both.answers(app, asked(both, other))

        assert differences(told, alone) == []
        assert len([each for each in told if each[1] < 300 and canary(app) in str(each[2])]) > 50
        assert [each for each in [*told, *crossing] if canary(other) in str(each[2])] == []
        assert both.feed(app) == (fed := roles[app].feed(app))
        assert canary(app).encode() in b"".join(fed)
        assert canary(other).encode() not in b"".join(fed)
        # Episodes are of no session: nothing else that a tenant asks for its own ids is refused.
        assert {request.split("?")[0] for request, status, _ in alone if status >= 300} == {"POST /v1/search"}

    all_written = [msgspec.json.decode(each.value or b"", type=_Act | _Unsigned) for _, each in both.turns.records]
    written = [each for each in all_written if isinstance(each, _Act)]
    assert {each.app_id for each in all_written} == set(TENANTS)
    of_sessions = [each for each in both.audit.events if each.status < 300 and (each.session_id or each.user_id)]
    assert {topic for topic, _ in both.turns.records} == {TURNS.name}
    assert {each.app_id for each in both.commands.sent} == set(TENANTS)
    for said_by in (both.erasures.asked, written, of_sessions):
        assert {(each.by, each.app_id) for each in said_by} == {(f"admin-{app}", app) for app in TENANTS}


@pytest.mark.parametrize("scope", ["session", "user", "app"])
async def test_an_erasure_takes_nothing_of_who_has_the_same_ids(roles: dict[str, Role], scope: EraseScope) -> None:
    """What is asked by A's token, carried out in the index and on the board, leaves B what it had, and A nothing."""
    both, alone = roles["both"], roles["b"]
    named = {"app": {"app_id": "a"}, "user": {"app_id": "a", "user_id": SHARED}, "session": {"session_id": SHARED}}
    async with both.client(bearer("a")) as client:
        assert (await client.post("/v1/erase", json=named[scope])).status_code == 202
    (wanted,) = both.erasures.asked
    due = VectorsErasureDue(
        request_id="r",
        timestamp=AT,
        scope=wanted.scope,
        app_id=wanted.app_id,
        user_id=wanted.user_id,
        sessions=[ErasedSession("a", SHARED)],
    )
    both.page.board.erase(wanted, at_ms() + 1)
    await VectorErasing(both.store).erase([due])
    told, expected = await both.answers("b", asked(both, "b")), await alone.answers("b", asked(alone, "b"))
    left = await both.answers("a", [each for each in asked(both, "a") if "/sessions/" in each.route])

    assert wanted.app_id == "a"
    assert differences(told, expected) == []
    assert both.feed("b") == alone.feed("b")
    assert [each for each in left if canary("a") in str(each[2])] == []
    assert both.feed("a") == (await role_of()).feed("a")


@pytest.mark.parametrize("token", [BOTH, ALL])
async def test_who_may_read_both_names_the_app(roles: dict[str, Role], token: str) -> None:
    """Then a session is that app's alone; without its name nothing is mixed and nothing is guessed."""
    both = roles["both"]
    asking = [each for each in asked(both, "a") if each.method == "GET" and "{session_id}" in each.route]
    named = [each for each in asking if "app_id=a" in each.path]
    async with both.client({"Authorization": f"Bearer {token}"}) as client:
        told = [(await client.get(each.path)).text for each in named]
        unnamed = [(await client.get(each.path)) for each in asking if "app_id" not in each.path]
        searched = {"query": QUERY, "session_id": SHARED}
        posted = [
            await client.post("/v1/context", json={**searched, "user_id": SHARED}),
            await client.post("/v1/search", json=searched),
        ]
        erased = await client.post("/v1/erase", json={"session_id": SHARED})
    mine = await both.answers("a", named)

    assert len(named) > 8
    assert differences([("", 200, _decoded(text)) for text in told], [("", *each[1:]) for each in mine]) == []
    assert {(each.status_code, each.json()["code"]) for each in [*unnamed, *posted, erased]} == {(422, "ambiguous_app")}
    assert len(unnamed) >= len(named)
    assert both.erasures.asked == []


async def test_what_an_app_shares_crosses_the_border_and_nothing_else() -> None:
    """In B's prompts stand the memories of A that name B; of the rest, and of where they are from, B learns nothing."""
    role, told = await role_of(*TENANTS), {}
    shared = structs.replace(
        app_memory_of("a"), slot=1, memory_id=2, content="shared words", tags=[], shared_with=["b"]
    )
    await AppMemoryIndex(role.store, loaded_embedder()).add_changes([(shared, 9)])
    for app in TENANTS:
        async with role.client(bearer(app)) as client:
            prompt = await client.post("/v1/context", json={"user_id": "u", "query": "x", "app_memories": True})
            listed = await client.get(f"/apps/{app}/memories?include_shared=true")
            told[app] = prompt.text + listed.text
    await role.store.close()

    assert [("shared words" in told[app], canary("a") in told[app]) for app in TENANTS] == [(True, True), (True, False)]
    assert "session-a" not in told["b"]
