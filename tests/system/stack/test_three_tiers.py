"""A hundred turns through the real topics, and memory answers over HTTP and MCP (issue 6's last test of a user)."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from models.events import Role, Turn
from tests.support.data_files import data_file
from tests.support.fault_driver import said
from tests.support.stack import Stack

pytestmark = pytest.mark.timeout(240)

_SUBJECTS = data_file("five_subjects")
_FIRST = "Hello! My name is Alex, I prefer Python and I'm vegetarian."


def turns() -> Iterator[Turn]:
    """Five sessions of twenty turns on a subject each, one after the other; databases are turns 61-80."""
    began = datetime.now(UTC) - timedelta(hours=6)
    for number, said_of in enumerate(_SUBJECTS.values()):
        for turn in range(20):
            asked = _FIRST if (number, turn) == (0, 0) else said_of["asked"].format(n=turn)
            yield said(
                turn,
                session_id=f"s-{number}",
                user_id="alex",
                app_id="assistant",
                role=Role.ASSISTANT if turn % 2 else Role.USER,
                content=said_of["answered"] if turn % 2 else asked,
                at=began + timedelta(hours=number, minutes=turn),
            )


async def _ask(http: httpx.AsyncClient, path: str, **body: Any) -> Any:
    answer = await http.post(path, json={"user_id": "alex", "app_id": "assistant", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _episodes(http: httpx.AsyncClient, wanted: int) -> tuple[list[str], dict[str, Any]]:
    """Turn ranges of the user's episodes and how far she is, once both know of so many: they come by two topics."""
    while True:
        answer = await http.get("/v1/users/alex/episodes?app_id=assistant")
        stats = (await http.get("/v1/users/alex?app_id=assistant")).json()
        if min(len(answer.json()), stats["episodes"]) >= wanted:
            return [episode["turn_range"] for episode in answer.json()], stats
        await asyncio.sleep(0.2)  # poll the index


async def _tool(url: str, name: str, **arguments: Any) -> str:
    async with httpx2.AsyncClient() as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
        result = await client.call_tool(name, {"user_id": "alex", **arguments})
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.behaviour("user-01", "user-03", "user-05", "user-22", "user-23", "card-04")
async def test_a_hundred_turns_are_remembered(stack: Stack) -> None:
    """The name from facts, databases from the right episode, over HTTP and MCP; five episodes, ten turns at hand."""
    await stack.send(turns())
    async with stack.client() as http:
        after = {"session_id": "s-4", "turn": 19, "timeout_ms": 10_000}
        named = await _ask(http, "/v1/retrieve", query="What's my name?", after=after, format=True)
        ranges, stats = await _episodes(http, 5)
        found = await _ask(http, "/v1/retrieve", query="What did we discuss about databases?", format=True)
        facts = await _tool(stack.url, "list_facts")
        searched = await _tool(stack.url, "search_memory", query="What did we discuss about databases?")
        context = await _tool(stack.url, "get_context", query="What's my name?")

        mode = {"mode": "off"}
        switched = (await http.put("/v1/users/alex/mode", params={"app_id": "assistant"}, json=mode)).json()
        off = await _ask(http, "/v1/retrieve", query="What's my name?", format=True)

    assert {"mode": "off", "changed": True, "pending": False} == switched
    assert ([], [], "off") == (off["structured_facts"], off["episodic_context"], off["memory_mode"])
    assert "- name: Alex\n" in named["injection"]
    assert [f"turns {first}-{first + 19}" for first in (81, 61, 41, 21, 1)] == ranges
    assert found["episodic_context"][0]["turn_range"] == "turns 61-80"
    assert "- turns 61-80: " in found["injection"].partition("## Recent Context")[2]
    assert (100, 100, 5, 10) == (
        stats["turn_count"], stats["compressed_turns"], stats["episodes"], len(stats["short_term"])
    )  # fmt: skip
    assert "Alex" in facts
    assert "vegetarian" in facts
    assert "turns 61-80" in searched
    assert "- name: Alex" in context
