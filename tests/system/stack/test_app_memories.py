"""App memory's scenarios by their names, from turns on the topic to the admin API; the limit: test_app_scenarios."""

import asyncio
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from models.events import InputEvent, Role, SessionEnded
from tests.support.fault_driver import said as said_by
from tests.support.stack import Stack

pytestmark = pytest.mark.timeout(240)

OF_USER = {"user_id": "u"}
"""Whose turns they are, and so whose memories."""
_SAID = (
    "I prefer meetings after 2pm on weekdays.",
    "We decided to move the shop to Bergen in May.",
    "My order 5512 arrived with a broken lamp.",
)


async def converse(stack: Stack, app_id: str, said: Iterable[str]) -> None:
    """One conversation of the app for each thing said, each ended."""
    began = datetime.now(UTC) - timedelta(hours=1)
    events: list[InputEvent] = []
    for text in said:
        session_id = f"{app_id}-{uuid.uuid4().hex[:8]}"
        talk: dict[str, Any] = {"session_id": session_id, "app_id": app_id, "at": began}
        events += [
            said_by(0, content=text, **talk),
            said_by(1, content="Noted, thank you.", role=Role.ASSISTANT, **talk),
            SessionEnded(session_id=session_id, timestamp=began),
        ]
    await stack.send(events)


async def memories(http: httpx.AsyncClient, app_id: str, *, created: int = 0) -> list[dict[str, Any]]:
    """Memories of the app, once so many were made of all time."""
    while True:
        if (await http.get(f"/apps/{app_id}/memories/stats", params=OF_USER)).json().get("created", 0) >= created:
            found: list[dict[str, Any]] = (await http.get(f"/apps/{app_id}/memories", params=OF_USER)).json()[
                "memories"
            ]
            return found
        await asyncio.sleep(0.1)  # poll the index


async def prompt(http: httpx.AsyncClient, app_id: str, **more: Any) -> str:
    """The prompt that is assembled for a question in the app."""
    asked = {**OF_USER, "app_id": app_id, "query": "When do we meet?", **more}
    answered: str = (await http.post("/v1/context", json=asked)).json()["prompt"]
    return answered


@pytest.mark.behaviour("app-01", "app-02")
async def test_creates_memory_when_conversation_ends(stack: Stack) -> None:
    """Send message, get response, end conversation: the memory is there, and says where it is from."""
    async with stack.client() as http:
        before = await memories(http, "creates")
        await converse(stack, "creates", _SAID[:1])
        (memory,) = await memories(http, "creates", created=1)

    assert before == []
    assert "2pm" in memory["content"]
    assert memory["sourceConversationId"].startswith("creates-")
    assert 0 < memory["metadata"]["importance"] <= 10


@pytest.mark.behaviour("app-14", "app-22")
async def test_includes_memories_in_context_of_their_app_alone(stack: Stack) -> None:
    """Whatever the point at which a prompt is assembled; not in app B's context or list, nor in another user's."""
    async with stack.client() as http:
        await converse(stack, "includes", _SAID[:1])
        await memories(http, "includes", created=1)
        points = ("unanswered_conversation", "conversation_review", "conversation_selection")
        told = [await prompt(http, "includes", injection_point=point) for point in points]
        isolated = await prompt(http, "isolates", app_memories=True)
        private = await prompt(http, "includes", injection_point=points[0], user_id="somebody-else")
        (await http.put("/v1/apps/includes/injection", json={"inject": True})).raise_for_status()
        told.append(await prompt(http, "includes"))
        listed = await memories(http, "isolates")

    for each in told:
        assert each.startswith("(memories for app: includes)\nThe following are memories from previous conversat")
        assert "2pm" in each
    assert "2pm" not in isolated + private
    assert listed == []


@pytest.mark.behaviour("app-17")
async def test_retains_memories_after_app_uninstall(stack: Stack) -> None:
    """They stay unless asked otherwise."""
    async with stack.client() as http:
        await converse(stack, "retains", _SAID[:2])
        before = await memories(http, "retains", created=2)
        answer = await http.post("/apps/retains/uninstall", json={"purgeMemories": False})
        after = await memories(http, "retains")

    assert answer.json()["success"] is True
    assert len(before) == 2
    assert after == before


@pytest.mark.behaviour("app-09", "app-16")
async def test_purges_memories_on_admin_request(stack: Stack) -> None:
    """The caller sees it at once; a second time there is nothing to purge."""
    async with stack.client() as http:
        await converse(stack, "purges", _SAID[:3])
        await memories(http, "purges", created=3)
        first, left, second = [
            (await http.delete("/apps/purges/memories")).json(),
            await memories(http, "purges"),
            (await http.delete("/apps/purges/memories")).json(),
        ]

    assert (first["success"], first["deletedCount"], left, second["deletedCount"]) == (True, 3, [], 0)


@pytest.mark.behaviour("app-33")
async def test_memories_persist_across_system_restarts(stack: Stack) -> None:
    """Killed and started anew, the memory role goes on with what it had: the next memory has the next number."""
    async with stack.client() as http:
        await converse(stack, "persists", _SAID[:1])
        await memories(http, "persists", created=1)
        await converse(stack, "persists", _SAID[1:2])
        await stack.kill_memory()
        found = await memories(http, "persists", created=2)

    assert sorted(memory["id"] for memory in found) == [1, 2]
