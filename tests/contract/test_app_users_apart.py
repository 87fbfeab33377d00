"""Two users of one app, and two tenants that call them alike: what one says in private is in nobody else's prompt.

From their turns through the folds and the index to every way in which an assistant asks: HTTP and the tools.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import pytest
from msgspec import structs
from qdrant_client import AsyncQdrantClient

from models.entities import entity_key
from models.events import AppMemoryChanged, ConversationEnded, Position, Role, Turn
from models.policy import Policy
from models.policy.app import AppPolicy
from streams.api.assembly import memory_api
from streams.api.mcp.endpoint import McpEndpoint
from streams.index.app_memory import AppMemoryIndex
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory
from tests.support.api_doubles import bearer, settings_of
from tests.support.app_driver import Space
from tests.support.http_api import api_of, client_of
from tests.support.loaded import loaded_embedder
from tests.support.session_driver import NOON, Session, said

APPS, USERS = ("a", "b"), ("anna", "bo")
DETAILS = {("a", "anna"): "peanuts", ("a", "bo"): "shellfish", ("b", "anna"): "latex", ("b", "bo"): "pollen"}
"""What each is allergic to."""
OF_BEFORE = "penicillin"
"""In a memory of the app's own, which a release made whose default was another."""
SHARED = Policy(apps=AppPolicy(spaces=("app",)))


class Told(NamedTuple):
    """Turns of conversations, and memories of spaces that were made of them."""

    turns: list[Turn]
    memories: list[AppMemoryChanged]


def converse(details: Mapping[tuple[str, str], str], policy: Policy) -> Told:
    """Conversations in which users tell of an allergy; those of all apps are called alike."""
    turns, spaces = list[Turn](), dict[str, Space]()
    for (app, user), detail in details.items():
        session = Session(policy)
        told = [f"I am allergic to {detail}.", "I will keep that in mind.", "What can I eat?", "Bread."]
        ids = {"app_id": app, "user_id": user, "session_id": f"s-{user}"}
        turns += [said(n, text, role=Role.ASSISTANT if n % 2 else Role.USER, **ids) for n, text in enumerate(told)]
        for turn in turns[-len(told) :]:
            session.put(turn)
        session.end()
        for ended in session.of(ConversationEnded):
            key = entity_key(ended)
            whose = user if ended.space == "user" else ""
            source = structs.replace(ended.source, offset=len(turns))
            spaces.setdefault(key, Space(policy, app=app, user=whose)).put(structs.replace(ended, source=source))
    return Told(turns, [memory for space in spaces.values() for memory in space.active.values()])


class Asking(NamedTuple):
    """A client with the token of app a."""

    http: httpx.AsyncClient

    async def everything(self, user: str) -> dict[str, str]:
        """Every answer to an assistant that asks for a user."""
        query = "What am I allergic to?"
        asked = {"user_id": user, "app_id": "a", "query": query}
        points = ("unanswered_conversation", "conversation_review", "conversation_selection")
        posts: list[tuple[str, dict[str, Any]]] = [
            *(("/v1/context", asked | {"injection_point": point}) for point in points),
            ("/v1/context", asked | {"app_memories": True}),
            ("/v1/retrieve", asked),
            ("/v1/search", asked),
            ("/v1/search", asked | {"kind": "episodes"}),
            ("/mcp", _tool("get_context", {**asked, "app_memories": True})),
            ("/mcp", _tool("search_memory", asked)),
        ]
        told = {f"{path} {body}": await self.http.post(path, json=body) for path, body in posts}
        for path in ("facts", "episodes", "recent", "standing"):
            told[path] = await self.http.get(f"/v1/users/{user}/{path}", params={"app_id": "a"})
        path = f"/apps/a/memories?user_id={user}&include_shared=true"
        told[path] = await self.http.get(path)
        assert {answer.status_code for answer in told.values()} == {200}, told
        return {name: answer.text for name, answer in told.items()}


def _tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = {key: value for key, value in arguments.items() if key != "kind"}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": asked}}


@asynccontextmanager
async def asking(policy: Policy) -> AsyncIterator[Asking]:
    """Everybody's conversation, folded and indexed by a policy, beside what an older release's default left."""
    store, embedder = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama"), loaded_embedder()
    told, before = converse(DETAILS, policy), converse({("a", "bo"): OF_BEFORE}, SHARED)
    vectors = embedder.embed([turn.content for turn in told.turns])
    places = [Position("turns.v1", 0, n) for n in range(len(told.turns))]
    await SessionVectorMemory(store, embedder).add_turns(told.turns, vectors, None, places)
    changes = [(memory, n) for n, memory in enumerate([*before.memories, *told.memories])]
    await AppMemoryIndex(store, embedder).add_changes(changes)
    http = settings_of(*APPS, admin=True, requests_per_second=10_000)
    made = memory_api(store, embedder, policy, http, topic_prefix="test")
    tools = next(each for each in made.endpoints if isinstance(each, McpEndpoint))
    headers = {**bearer("a"), "Accept": "application/json, text/event-stream"}
    async with tools.running(), client_of(api_of(made.routes, endpoints=[tools], http=http), headers) as client:
        yield Asking(client)
    await store.close()


@pytest.mark.behaviour("app-31")
@pytest.mark.parametrize("user", USERS)
async def test_what_a_user_said_is_in_nobody_else_s_prompt(user: str) -> None:
    """By default memories are of a user in an app; those that the app has from before are shown to nobody."""
    async with asking(Policy()) as made:
        told = await made.everything(user)
    mine, others = DETAILS["a", user], {OF_BEFORE, *DETAILS.values()} - {DETAILS["a", user]}

    assert [(name, other) for name, text in told.items() for other in others if other in text] == []
    assert [name for name, text in told.items() if "injection" in name and f"allergic to {mine}" not in text] == []


async def test_a_policy_shares_an_app_s_memories_with_all_its_users() -> None:
    """The one line that keeps what was the default; another tenant sees nothing all the same."""
    async with asking(SHARED) as made:
        told = await made.everything("anna")
    shared = [text for name, text in told.items() if "injection_point" in name]

    assert [DETAILS["a", "bo"] in text for text in shared] == [True] * 3
    assert [name for name, text in told.items() if DETAILS["b", "bo"] in text] == []


def test_conversations_of_several_users_become_nobody_s_memory() -> None:
    """By default; what one of them said would be told to the other."""
    session = Session()
    session.say(0, "I am allergic to peanuts.", user_id="anna", timestamp=NOON)
    session.say(1, "I am allergic to pollen.", user_id="bo")
    session.end()

    assert session.of(ConversationEnded) == []
