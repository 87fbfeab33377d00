"""What is asked of the demo's memory over HTTP and MCP, and what is answered: every route, tool and kind of refusal."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from fastapi import FastAPI

from tests.golden.contracts import shown, stripped
from tests.golden.logs import TOKENS
from tests.golden.world import Served, World

_WITHOUT = {"content-length", "etag", "last-modified"}
"""Headers that say how long or how old an answer is."""
_DIGITS = 6
_ALEX = {"user_id": "alex", "app_id": "assistant"}
_APP, _OTHER_APP, _PROJECT = "assistant", "isp-support", "/v1/projects/{project_id}"
_QUERIES = ("What's my name?", "What did we discuss about databases?", "Where do I live, and what may I not eat?")


class Asker:
    """Asks, and notes what is answered by route."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.lines: defaultdict[str, list[str]] = defaultdict(list)
        self._client = client

    async def __call__(
        self, method: str, route: str, body: Any = None, *, by: str | None = "admin", query: str = "", **names: str
    ) -> Any:
        """One request; names fill the route's braces. Returns the answer, read as JSON if it is."""
        path = route.format(**{name: quote(value, safe="") for name, value in names.items()})
        place = f"{path}?{query}" if query else path
        headers = _headers(by)
        content = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        response = await self._client.request(method, place, content=content, headers=headers)
        told = _plain(response)
        kept = {name: value for name, value in sorted(response.headers.items()) if name not in _WITHOUT}
        asked = f"{by} {method} {place} {'' if content is None else content.decode(errors='replace')}"
        line = {"asked": asked, "status": response.status_code, "headers": kept, "answer": rounded(told)}
        self.lines[f"answers/{method} {route}"].append(msgspec.json.encode(line, order="deterministic").decode())
        return told


def _plain(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def rounded(value: Any) -> Any:
    """Numbers that a processor may add up in another order, to six digits."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


async def ask_everything(world: World, served: Served) -> dict[str, list[str]]:
    """All questions, in an order in which what changes something comes last."""
    transport = httpx.ASGITransport(served.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        ask = Asker(client)
        await _operations(ask)
        await _users(ask, world)
        await _sessions(ask, world)
        await _apps(ask, world)
        await _projects(ask)
        await _live(ask, world, served)
        await _tools(ask)
        await _refused(ask)
        await _deeds(ask)
        await _project_deeds(ask)
        await _live_deeds(ask, world)
        _require_all(served.app, ask)
        return dict(ask.lines)


def _require_all(app: FastAPI, ask: Asker) -> None:
    """A route that nobody asked is a hole in the record."""
    there = {f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods}
    asked = {name.removeprefix("answers/") for name in ask.lines}
    assert there <= asked, f"no question for {sorted(there - asked)}: add one here"


def _names(world: World, kind: str) -> list[tuple[str, str]]:
    keys = {(record.key or b"").decode() for record in world.records("commands.v1")}
    names = sorted(key.partition(":")[2] for key in keys if key.startswith(f"{kind}:"))
    return [(app, other) for app, _, other in (name.partition("/") for name in names)]


async def _operations(ask: Asker) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/v1/index", "/v1/nothing", "/docs"):
        await ask("GET", path)
    for path in ("/live", "/live/", "/live/nothing.js"):
        response = await ask._client.get(path)
        ask.lines["answers/GET page"].append(f"{path} {response.status_code} {response.headers.get('location')}")


async def _users(ask: Asker, world: World) -> None:
    for app_id, user_id in [*_names(world, "user"), ("assistant", "nobody")]:
        for end in ("", "/facts", "/episodes", "/recent", "/standing"):
            await ask("GET", "/v1/users/{user_id}" + end, query=f"app_id={app_id}", user_id=user_id)
    for query in ("include_past=true", "category=identity", "category=nothing"):
        await ask("GET", "/v1/users/{user_id}/facts", query=query, user_id="alex")
    for end, query in (("episodes", "limit=1"), ("recent", "last=3"), ("recent", "last=0"), ("standing", "")):
        await ask("GET", "/v1/users/{user_id}/" + end, query=query, user_id="alex")
    for query in _QUERIES:
        await ask("POST", "/v1/retrieve", {**_ALEX, "query": query, "max_distance": 2.0})
        await ask("POST", "/v1/retrieve", {**_ALEX, "query": query, "min_importance": 0.9, "format": False})
        await ask("POST", "/v1/context", {**_ALEX, "query": query, "session_id": "database", "token_budget": 500})
        await ask("POST", "/v1/context", {**_ALEX, "query": query, "injection_point": "conversation_review"})
        for kind in ("turns", "episodes"):
            await ask("POST", "/v1/search", {"query": query, "user_id": "alex", "kind": kind, "top_k": 3})
    await ask("POST", "/v1/search", {"query": "router light", "app_id": _OTHER_APP})
    after = {"session_id": "database", "turn": 1, "timeout_ms": 0}
    await ask("POST", "/v1/retrieve", {**_ALEX, "query": "x", "after": after})
    await ask("POST", "/v1/retrieve", {**_ALEX, "query": "x", "after": {**after, "turn": 9_999}})


async def _sessions(ask: Asker, world: World) -> None:
    for session_id in [*dict.fromkeys(e["session_id"] for e in world.events("profiles.v1")), "nobody"]:
        of = {"session_id": session_id}
        listed = await ask("GET", "/v1/sessions/{session_id}/topics", query="include_gone=true", **of)
        for end in ("turns", "context", "history", "stats", "topics"):
            await ask("GET", "/v1/sessions/{session_id}/" + end, **of)
        for topic in [each["topic_id"] for each in listed[:2]] or ["nothing"]:
            await ask("GET", "/v1/sessions/{session_id}/topics/{topic}", topic=topic, **of)
            for end in ("context", "history", "stats"):
                await ask("GET", "/v1/sessions/{session_id}/" + end, query=f"topic={topic}", **of)
        await ask("GET", "/v1/sessions/{session_id}/similar", query="q=how+does+it+work&top_k=3", **of)
        await ask("GET", "/v1/sessions/{session_id}/topics/search", query="q=money&include_gone=true", **of)


async def _apps(ask: Asker, world: World) -> None:
    await ask("GET", "/apps")
    await ask("GET", "/apps", query="limit=1")
    await ask("GET", "/apps/statistics")
    for app_id, user_id in [*_names(world, "app"), ("nothing", "")]:
        user = f"user_id={user_id}"
        listed = await ask("GET", "/apps/{app_id}/memories", query=user, app_id=app_id)
        await ask("GET", "/apps/{app_id}/memories", query=f"{user}&include_shared=true", app_id=app_id)
        for end in ("export", "stats"):
            await ask("GET", "/apps/{app_id}/memories/" + end, query=user, app_id=app_id)
        for mode in ("keyword", "semantic", "hybrid"):
            found = f"{user}&q=user+wants+help&mode={mode}"
            await ask("GET", "/apps/{app_id}/memories/search", query=found, app_id=app_id)
        for memory in listed["memories"][:2]:
            await _one_memory(ask, "GET", app_id, str(memory["id"]))
    await _one_memory(ask, "GET", _APP, "999")


async def _one_memory(ask: Asker, method: str, app_id: str, memory_id: str, body: Any = None) -> None:
    await ask(method, "/apps/{app_id}/memories/{memory_id}", body, app_id=app_id, memory_id=memory_id)


def _of_project(ask: Asker) -> Callable[..., Any]:
    async def of_project(method: str, end: str, body: Any = None, *, query: str = "", **names: str) -> Any:
        of, place = {"project_id": "tool-library"} | names, f"app_id=workshop&{query}" if query else "app_id=workshop"
        return await ask(method, _PROJECT + end, body, query=place, **of)

    return of_project


async def _projects(ask: Asker) -> None:
    of = _of_project(ask)
    await ask("GET", "/v1/projects")
    await ask("GET", "/v1/projects", query="app_id=workshop&limit=1")
    for end in ("", "/standing", "/valid_at", "/pending", "/conversations", "/episodes", "/arc", "/graph", "/memories"):
        await of("GET", end)
        await of("GET", end, project_id="nothing")
    for kind in ("memory", "episode", "chunk", "conversation", "pending"):
        await of("GET", "/export", query=f"kind={kind}")
        await of("GET", "/export", query=f"kind={kind}&limit=2")
    for query in ("memory_type=decision", "include_archived=true", "limit=3", "tag=database", "category=technical"):
        await of("GET", "/memories", query=query)
    for query in ("kind=decision_made", "min_significance=0.8", "conversation_id=nothing"):
        await of("GET", "/episodes", query=query)
    await of("GET", "/valid_at", query="at=2025-06-28T14:50:00Z&known_at=2025-06-28T14:55:00Z")
    await of("GET", "/arc", query="conversation_id=tool-library")
    for conversation in ("tool-library", "nothing"):
        await of("GET", "/conversations/{conversation_id}", conversation_id=conversation)
    memories = await of("GET", "/memories", query="limit=1000")
    first, second = (each["id"] for each in memories["memories"][:2])
    await of("GET", "/memories/{memory_id}", memory_id=first)
    await of("GET", "/memories/{memory_id}", memory_id="m9999999-99999999")
    edges = (await of("GET", "/graph", query="limit=5"))["edges"] or [{"source": first, "target": second}]
    ends = [str(edges[0].get(name, first)) for name in ("source", "source_id")]
    for memory_id in dict.fromkeys([first, second, *ends]):
        await of("GET", "/graph/neighbours", query=f"memory_id={memory_id}&depth=2")
        await of("GET", "/graph/dependents", query=f"memory_id={memory_id}")
        await of("GET", "/graph/path", query=f"source_id={first}&target_id={memory_id}")
    for query in ("What was our database decision?", "Where do we deploy?", ""):
        for strategy in ("tfidf", "hybrid"):
            await of("POST", "/retrieve", {"query": query, "strategy": strategy, "related_depth": 1})
        await of("POST", "/context", {"query": query, "conversation_id": "tool-library", "top_k": 5})
    then = {"query": "Which frontend?", "valid_at": "2025-06-28T14:50:00Z", "filters": {"memory_types": ["decision"]}}
    await of("POST", "/retrieve", then)
    await of("POST", "/context", {"query": "frontend", "budget": {"total_tokens": 900}, "system_prompt": "Be short."})
    for strategy in ("tfidf", "hybrid"):
        await of("POST", "/search", {"query": "PostgreSQL database", "strategy": strategy})


async def _live(ask: Asker, world: World, served: Served) -> None:
    for by in ("admin", "blind", "tenant"):
        await ask("GET", "/v1/live/me", by=by)
    for kind in ("turns", "episodes", "facts", "memories"):
        await ask("GET", "/v1/live/search", query=f"q=name+database+router&kind={kind}&limit=5")
    for session_id in [*dict.fromkeys(e["session_id"] for e in world.events("profiles.v1")), "nobody"]:
        await ask("GET", "/v1/live/sessions/{session_id}", session_id=session_id)
        await ask("GET", "/v1/live/sessions/{session_id}", query="text=true", session_id=session_id)
    await ask("GET", "/v1/live/sessions/{session_id}", by="blind", session_id="account")
    await ask("GET", "/v1/live/texts/{session_id}", query="first=2&last=5", session_id="account")
    asking = asyncio.ensure_future(ask("GET", "/v1/live/stream"))
    while not served.live.hub.streams:  # noqa: ASYNC110 - it lasts until the role ends
        await asyncio.sleep(0.01)
    served.live.end()
    await asking
    served.live.hub.begin()


async def _tools(ask: Asker) -> None:
    async def tool(name: str, by: str = "admin", **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments}
        await ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, by=by)

    project = {"project_id": "tool-library", "app_id": "workshop"}
    for query in _QUERIES:
        await tool("search_memory", query=query, **_ALEX)
        await tool("get_context", query=query, **_ALEX, token_budget=600, app_memories=True)
    await tool("list_facts", **_ALEX)
    await tool("list_facts", **_ALEX, category="constraint")
    await tool("project_context", query="What was our database decision?", **project)
    await tool("search_project", query="Where do we deploy?", **project)
    await tool("list_facts", by="tenant", **_ALEX)
    await tool("list_facts", by="blind", **_ALEX)
    await tool("list_facts", nothing=1)
    await tool("nothing")
    await tool("add_project_memory", **project, content="We meet on Mondays.", type="fact", subject="meeting")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = _headers("admin")
    response = await ask._client.post("/mcp", content=msgspec.json.encode(listing), headers=headers)
    ask.lines["contracts/tools"] += [shown(stripped(tool)) for tool in response.json()["result"]["tools"]]


async def _refused(ask: Asker) -> None:
    """Every route that was asked, by nobody, by who may not read text, and by another tenant; then wrong requests."""
    for name, lines in list(ask.lines.items()):
        kind, _, asked = name.partition("/")
        method, _, route = asked.partition(" ")
        if kind != "answers" or route == "page" or route.endswith("/stream"):
            continue
        _, asked_method, place, *body = msgspec.json.decode(lines[0])["asked"].split(" ", 3)
        for by in (None, "blind", "tenant"):
            response = await ask._client.request(
                asked_method,
                place,
                content=(body[0] if body else "").encode() or None,
                headers=_headers(by),
            )
            told = rounded(_plain(response))
            line = {"asked": f"{by} {asked_method} {place}", "status": response.status_code, "answer": told}
            ask.lines[f"refused/{method} {route}"].append(msgspec.json.encode(line, order="deterministic").decode())
    await ask("GET", "/v1/index", by="no-such-token-at-all")
    await ask("DELETE", "/v1/index")
    wrong: list[Any] = [b"{broken", b"", [], {}, {"query": 1, "user_id": "x"}, {**_ALEX, "query": " "}, {"nothing": 1}]
    for body in [*wrong, {**_ALEX, "query": "x" * 9_000}, b"x" * 70_000]:
        for route in ("/v1/retrieve", "/v1/context", "/v1/search", "/v1/erase"):
            await ask("POST", route, body)
    for body in wrong:
        for end in ("/retrieve", "/context", "/search", "/memories"):
            await _of_project(ask)("POST", end, body)
    for query in ("top_k=0&q=x", "q=", ""):
        await ask("GET", "/v1/sessions/{session_id}/similar", query=query, session_id="database")
    await ask("GET", "/v1/projects/{project_id}", project_id="tool-library")
    await ask("GET", "/v1/users/{user_id}/facts", user_id="x" * 300)


def _headers(by: str | None) -> dict[str, str]:
    tokens = {str(token["name"]): str(token["token"]) for token in TOKENS}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return headers if by is None else {**headers, "Authorization": f"Bearer {tokens.get(by, by)}"}


async def _deeds(ask: Asker) -> None:
    listed = await ask("GET", "/apps/{app_id}/memories", app_id=_APP)
    ids = [str(memory["id"]) for memory in listed["memories"]]
    edits: list[Any] = [
        {"content": "User prefers pgvector.", "importance": 7.5, "pinned": True, "sharedWith": [_OTHER_APP]},
        {"tags": ["kept"], "pinned": False},
        {"importance": 99},
        {},
    ]
    for edit in edits:
        await _one_memory(ask, "PUT", _APP, ids[0], edit)
    await _one_memory(ask, "PUT", _APP, "999", {"pinned": True})
    await ask("GET", "/apps/{app_id}/memories", query="include_shared=true", app_id=_OTHER_APP)
    await _one_memory(ask, "DELETE", _APP, ids[-1])
    await _one_memory(ask, "DELETE", _APP, ids[-1])
    await ask("DELETE", "/apps/{app_id}/memories", app_id=_OTHER_APP)
    await ask("GET", "/apps/{app_id}/memories", app_id=_OTHER_APP)
    for purge in (False, True):
        await ask("POST", "/apps/{app_id}/uninstall", {"purgeMemories": purge}, app_id=_APP)
    for body in (
        {"user_id": "user-edith", "app_id": _APP},
        {"session_id": "router"},
        {"session_id": "a", "app_id": "b"},
    ):
        accepted = await ask("POST", "/v1/erase", body)
        if "request_id" in accepted:
            await ask("GET", "/v1/erase/{request_id}", request_id=accepted["request_id"])


async def _project_deeds(ask: Asker) -> None:
    of = _of_project(ask)
    saved: dict[str, Any] = {}
    for kind in ("memory", "episode", "chunk", "conversation", "pending"):
        saved |= await of("GET", "/export", query=f"kind={kind}&limit=4")
    listed = (await of("GET", "/memories", query="limit=1000"))["memories"]
    first, second, third = (each["id"] for each in listed[:3])
    at = {"memory_id": first}
    added = {"content": "We decided to use SQLite for tests.", "type": "decision", "subject": "tests"}
    await of("POST", "/memories", added)
    await of("POST", "/memories", added)
    await of("POST", "/memories", {"content": "Bread on Fridays.", "type": "preference", "tags": ["bread"]})
    await of("PUT", "/memories/{memory_id}", {"content": "We use boats.", "importance": 0.9, "tags": ["sea"]}, **at)
    await of("PUT", "/memories/{memory_id}", {"valid_until": "2025-06-28T15:00:00Z"}, **at)
    await of("PUT", "/memories/{memory_id}", {"archived": True}, memory_id=second)
    await of("PUT", "/memories/{memory_id}", {}, memory_id="m9999999-99999999")
    edge = {"source_id": first, "target_id": third, "relation": "depends_on"}
    await of("PUT", "/relationships", {**edge, "strength": 0.5})
    await of("GET", "/graph/path", query=f"source_id={first}&target_id={third}")
    await of("DELETE", "/relationships", query="&".join(f"{name}={value}" for name, value in edge.items()))
    await of("DELETE", "/memories/{memory_id}", memory_id=third)
    pending = (await of("GET", "/pending"))["pending"]
    for each, decision in zip(pending, ("promote", "reject", "nothing"), strict=False):
        await of("POST", "/pending/{pending_id}/{decision}", pending_id=each["id"], decision=decision)
    for status in ("paused", "active", "ended", "nothing"):
        await of(
            "PUT",
            "/conversations/{conversation_id}/status",
            {"status": status, "summary": "Done."},
            conversation_id="tool-library",
        )
    await of("POST", "/consolidate")
    items = ("memories", "episodes", "chunks", "conversations", "pending")
    body = {name: saved[name] for name in items if name in saved}
    await of("POST", "/import", body, project_id="copied")
    await of("POST", "/import", {})
    for end in ("", "/standing", "/memories", "/episodes", "/graph"):
        await of("GET", end)
        await of("GET", end, project_id="copied")


async def _live_deeds(ask: Asker, world: World) -> None:
    for alert in {each["alert_id"]: each for each in world.events("alerts.v1")}.values():
        of = {"session_id": alert["session_id"]}
        for end, body in (("acknowledge", {"note": "looking"}), ("label", {"label": False, "reason": "homework"})):
            route = "/v1/live/alerts/{alert_id}/" + end
            await ask("POST", route, {**of, **body}, alert_id=alert["alert_id"])
            await ask("POST", route, {**of, **body}, alert_id="nothing")
        await ask("GET", "/v1/live/sessions/{session_id}", session_id=alert["session_id"])
