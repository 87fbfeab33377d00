"""The MCP tools, asked by the SDK's own client: over HTTP from a served role, and over standard input and output."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from models.events import Role
from streams.api.mcp.session_tools import SHOWN_CHARS
from streams.api.mcp.tools import AskedMemory, tools_of
from streams.api.users.messages import Found
from streams.http.health import serve
from streams.http.route import RouteAnswer
from streams.settings.http import HttpSettings
from tests.support.api_doubles import Served, bearer, episode, fact, said, settings_of, stats, token_of

TOOLS = [
    "search_memory",
    "get_context",
    "list_facts",
    "project_context",
    "search_project",
    "add_project_memory",
    "get_session_history",
    "get_session_summary",
    "get_session_app",
    "correct_fact",
    "correct_turn",
    "adjust_topic",
    "give_feedback",
    "add_turns",
    "forget",
]
READING = {*TOOLS[:5], "get_session_history", "get_session_summary", "get_session_app"}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("list_facts", {"user_id": "u", "app_id": "b"}, "not valid for the app"),
    ("list_facts", {}, "user_id"),
    ("get_context", {"user_id": "u", "query": ""}, "query"),
    ("search_memory", {"user_id": "u", "query": "x", "top_k": 0}, "top_k"),
    ("search_memory", {"user_id": "u", "query": "x", "private text": 1}, "fields are query, user_id, app_id, top_k"),
    ("drop_everything", {}, "no such tool"),
]
"""Tools, arguments that they refuse, and a part of what is said."""
MODES = ["auto", "legacy"]
"""The protocol of 2026 without a handshake, and those before it."""


async def _filled(settings: HttpSettings | None) -> Served:
    made = Served(settings=settings)
    made.users.known_facts += [fact("name", "Alex", importance=0.9), fact("name", "Bo", app="b")]
    made.users.known_episodes.append(episode(1, "the user asked about vector databases"))
    made.users.known_users.append(stats(("s", 0), ("s", 1)))
    await made.say(said(0, "which vector databases exist"), said(1, "long " * 1_000, role=Role.ASSISTANT))
    return made


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Where the tools of the apps `a` and `b` are served over HTTP."""
    made = await _filled(settings_of("a", "b"))
    async with serve(made.app) as port:
        yield port
    await made.close()


@pytest.fixture
def asking(port: int) -> Any:
    """How to reach the tools of app `a`: a function that gives a connected client."""
    return _over_http(port, "a")


def _over_http(port: int, app: str) -> Any:
    @asynccontextmanager
    async def connected(mode: str = "auto") -> AsyncIterator[Client]:
        async with httpx2.AsyncClient(headers=bearer(app)) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client

    return connected


def _over_stdio(port: int) -> Any:
    @asynccontextmanager
    async def connected(mode: str = "auto") -> AsyncIterator[Client]:
        called = f"from jobs.memory.mcp import mcp; mcp(url='http://127.0.0.1:{port}', variable='MY_TOKEN')"
        command = StdioServerParameters(
            command=sys.executable,
            args=["-c", called],
            env={"MY_TOKEN": token_of("a"), "PATH": os.environ["PATH"]},
            cwd=Path(__file__).parents[2],
        )
        async with Client(command, mode=mode) as client:
            yield client

    return connected


def text_of(result: CallToolResult) -> str:
    """What a model is shown."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", MODES)
async def test_the_tools_are_listed_with_what_they_take_and_give(asking: Any, mode: str) -> None:
    """A description, both schemas, and that they change nothing."""
    async with asking(mode) as client:
        tools = (await client.list_tools()).tools

    assert {*TOOLS} - {"add_turns"} <= {tool.name for tool in tools} <= {*TOOLS}
    for tool in tools:
        assert tool.description
        assert tool.annotations
        assert tool.annotations.read_only_hint is (tool.name in READING)
        assert {"user_id", "project_id", "session_id"} & {*tool.input_schema["properties"]}
        assert tool.output_schema


@pytest.mark.parametrize("mode", MODES)
async def test_over_standard_input_and_output_all_is_as_over_http(port: int, mode: str) -> None:
    """Lists, answers to models and programs, what refusals are about, and that they repeat nothing private."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_facts", {"user_id": "u", "category": "identity"}),
        ("search_memory", {"user_id": "u", "query": "long vector databases"}),
        ("get_context", {"user_id": "u", "query": "databases?", "token_budget": 100}),
    ]
    told = []
    for connected in (_over_http(port, "a"), _over_stdio(port)):
        async with connected(mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools if tool.name != "add_turns"}
            given = [await client.call_tool(*call) for call in calls]
            refused = [(await client.call_tool(tool, wrong), about) for tool, wrong, about in WRONG]
        answers = [(text_of(result), result.structured_content) for result in given]
        refusals = [
            (result.is_error, about in text_of(result), "private" in text_of(result)) for result, about in refused
        ]
        told.append((tools, answers, refusals))

    assert told[0] == told[1]


async def test_the_tools_answer_for_models_and_programs(asking: Any) -> None:
    """The name from facts, what was discussed from the right episode, and turns cut to a length."""
    async with asking() as client:
        facts = await client.call_tool("list_facts", {"user_id": "u", "category": "identity"})
        found = await client.call_tool("search_memory", {"user_id": "u", "query": "long vector databases"})
        context = await client.call_tool("get_context", {"user_id": "u", "query": "databases?", "token_budget": 100})

    assert (text_of(facts), facts.structured_content["facts"][0]["value"]) == ("- identity name: Alex", "Alex")
    assert text_of(found).startswith("- turns 1-20 (2026-03-01): the user asked about vector databases\n")
    assert [len(hit["turn"]["content"]) for hit in found.structured_content["turns"]] == [28, SHOWN_CHARS]
    assert text_of(context) == context.structured_content["prompt"]
    assert text_of(context).startswith("# Long-term Memory\n## User Profile\n- name: Alex\n")
    assert context.structured_content["tokens"] <= 100


async def test_what_is_wrong_is_told_to_the_model(asking: Any) -> None:
    """As a tool's failure, which it can mend, without what it had sent; another tenant's app among them."""
    async with asking() as client:
        results = [await client.call_tool(tool, arguments) for tool, arguments, _ in WRONG]

    assert [told for *_, told in WRONG] == [
        told if told in text_of(result) else text_of(result) for result, (*_, told) in zip(results, WRONG, strict=True)
    ]
    assert all(result.is_error for result in results)
    assert [result for result in results if "private" in text_of(result)] == []


@pytest.mark.parametrize("tool", TOOLS[:3])
async def test_what_a_tool_is_asked_for_reaches_the_memory_whole(tool: str) -> None:
    """Without the app whoever reads several would be given all of them, and say to one what is known to another."""
    memory = AsyncMock()
    memory.search.return_value, memory.facts.return_value = Found(turns=[], episodes=[]), RouteAnswer([])
    memory.context.return_value.prompt = ""
    (served,) = (each for each in tools_of(AskedMemory(memory, AsyncMock(), AsyncMock())) if each.tool.name == tool)
    named = {"user_id": "u", "app_id": "a", **({} if tool == "list_facts" else {"query": "x"})}
    await served.call(named)

    assert memory.mock_calls
    assert [named] * len(memory.mock_calls) == [
        {name: getattr(next(iter((*call.args, *call.kwargs.values()))), name) for name in named}
        for call in memory.mock_calls
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, HTTPStatus.UNAUTHORIZED),
        ({"Authorization": "Bearer of-somebody-unknown"}, HTTPStatus.UNAUTHORIZED),
        ({**bearer("a"), "Origin": "http://evil.example"}, HTTPStatus.FORBIDDEN),
        ({**bearer("a"), "Host": "evil.example"}, HTTPStatus.MISDIRECTED_REQUEST),
    ],
)
async def test_strangers_are_kept_out(headers: dict[str, str], status: HTTPStatus) -> None:
    """No token, a page elsewhere, and a name that points here."""
    made = await _filled(settings_of("a"))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with serve(made.app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        accept = {"Accept": "application/json, text/event-stream"}
        answer = await client.post("/mcp", json=call, headers={**accept, **headers})
        streamed = await client.get("/mcp", headers=bearer("a"))
    await made.close()

    assert (answer.status_code, streamed.status_code) == (status, HTTPStatus.METHOD_NOT_ALLOWED)


async def test_a_role_that_is_away_is_told_to_the_model() -> None:
    """The command stays up: the role may come back."""
    made = await _filled(settings_of("a"))
    async with serve(made.app) as port:
        pass
    await made.close()
    async with _over_stdio(port)() as client:
        result = await client.call_tool("list_facts", {"user_id": "u"})

    assert (result.is_error, "does not answer" in text_of(result)) == (True, True)
