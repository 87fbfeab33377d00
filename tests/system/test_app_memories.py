"""The six scenarios of app memory by their names, from turns on the topic to the admin API, and a restart."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.events import InputEvent, Role, SessionEnded
from streams.settings import Settings
from tests.fault_driver import recorded, started
from tests.fault_driver import said as said_by

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

PARTITIONS = 2

_WITHIN_S = 60.0
_SAID = (
    "I prefer meetings after 2pm on weekdays.",
    "We decided to move the shop to Bergen in May.",
    "My order 5512 arrived with a broken lamp.",
    "I am allergic to peanuts.",
    "Let's take the blue paint for the kitchen then.",
    "The deadline of the Phoenix project is November 1.",
    "I live in Lisbon and work from home.",
    "We agreed to pay the invoice in two parts.",
    "The printer works again after the new driver.",
    "I always fly with one small bag.",
    "My sister teaches piano on Saturdays.",
    "I decided to cancel the magazine.",
)


class System:
    """The roles that make and serve memories, as processes."""

    def __init__(self, settings: Settings, tmp_path: Path) -> None:
        self.settings = settings
        self.roles = {name: RoleProcess(name, settings, log=tmp_path / f"{name}.log") for name in _ROLES}

    async def converse(self, app_id: str, said: Iterable[str]) -> None:
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
        await send_to_turns(self.settings, map(recorded, events))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """To the index role, which serves the API."""
        async with httpx.AsyncClient(base_url=self.roles["index"].url, timeout=30) as http, asyncio.timeout(_WITHIN_S):
            yield http

    async def memories(self, http: httpx.AsyncClient, app_id: str, *, created: int = 0) -> list[dict[str, Any]]:
        """Memories of the app, once so many were made of all time."""
        while True:
            if (await http.get(f"/apps/{app_id}/memories/stats")).json().get("created", 0) >= created:
                found: list[dict[str, Any]] = (await http.get(f"/apps/{app_id}/memories")).json()["memories"]
                return found
            await asyncio.sleep(0.1)  # poll the index


_ROLES = ("sessions", "memory", "index")


@asynccontextmanager
async def running(settings: Settings, tmp_path: Path) -> AsyncIterator[System]:
    """All roles ready."""
    system = System(settings, tmp_path)
    async with started(*system.roles.values()):
        yield system


async def test_memory_feature(settings: Settings, tmp_path: Path) -> None:
    """One system for all scenarios, since starting it takes longer than they do; each has an app of its own."""
    async with running(settings, tmp_path) as system:
        await creates_memory_when_conversation_ends(system)
        await includes_memories_in_context_for_same_app(system)
        await isolates_memories_between_apps(system)
        await compacts_memories_when_limit_reached(system)
        await retains_memories_after_app_uninstall(system)
        await purges_memories_on_admin_request(system)
        await memories_persist_across_system_restarts(system)


async def creates_memory_when_conversation_ends(system: System) -> None:
    """Send message, get response, end conversation: the memory is there, and says where it is from."""
    async with system.client() as http:
        assert [] == await system.memories(http, "creates")
        await system.converse("creates", _SAID[:1])
        (memory,) = await system.memories(http, "creates", created=1)

    assert "2pm" in memory["content"]
    assert memory["sourceConversationId"].startswith("creates-")
    assert 0 < memory["metadata"]["importance"] <= 10


async def includes_memories_in_context_for_same_app(system: System) -> None:
    """Whatever the point at which a prompt is assembled."""
    async with system.client() as http:
        for point in ("unanswered_conversation", "conversation_review", "conversation_selection"):
            asked = {"user_id": "u", "app_id": "creates", "query": "When do we meet?", "injection_point": point}
            prompt = (await http.post("/v1/context", json=asked)).json()["prompt"]

            assert prompt.startswith("(memories for app: creates)\nThe following are memories from previous conversat")
            assert "2pm" in prompt


async def isolates_memories_between_apps(system: System) -> None:
    """App A's memory is not in app B's context, nor in its list."""
    async with system.client() as http:
        asked = {"user_id": "u", "app_id": "isolates", "query": "When do we meet?", "app_memories": True}
        prompt = (await http.post("/v1/context", json=asked)).json()["prompt"]

        assert [] == await system.memories(http, "isolates")
        assert "2pm" not in prompt


async def compacts_memories_when_limit_reached(system: System) -> None:
    """Ten, one more, and ten again; all at once."""
    async with system.client() as http:
        await system.converse("compacts", _SAID)
        found = await system.memories(http, "compacts", created=len(_SAID))
        stats = (await http.get("/apps/compacts/memories/stats")).json()

    assert len(found) == 10
    assert stats["compactions"] == len(_SAID) - 10


async def retains_memories_after_app_uninstall(system: System) -> None:
    """They stay unless asked otherwise."""
    async with system.client() as http:
        await system.converse("retains", _SAID[:2])
        before = await system.memories(http, "retains", created=2)
        answer = await http.post("/apps/retains/uninstall", json={"purgeMemories": False})
        after = await system.memories(http, "retains")

    assert answer.json()["success"] is True
    assert len(before) == 2
    assert after == before


async def purges_memories_on_admin_request(system: System) -> None:
    """The caller sees it at once; a second time there is nothing to purge."""
    async with system.client() as http:
        await system.converse("purges", _SAID[:3])
        await system.memories(http, "purges", created=3)
        first = (await http.delete("/apps/purges/memories")).json()
        left = await system.memories(http, "purges")
        second = (await http.delete("/apps/purges/memories")).json()

    assert {"success": True, "deletedCount": 3} == {name: first[name] for name in ("success", "deletedCount")}
    assert left == []
    assert second["deletedCount"] == 0


async def memories_persist_across_system_restarts(system: System) -> None:
    """Killed and started anew, the memory role goes on with what it had: the next memory has the next number."""
    async with system.client() as http:
        system.roles["memory"].kill()
        await system.converse("creates", _SAID[1:2])
        system.roles["memory"].start()
        await system.roles["memory"].ready()
        found = await system.memories(http, "creates", created=2)

    assert sorted(memory["id"] for memory in found) == [1, 2]
