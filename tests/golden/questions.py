"""What is asked of the demo's memory over HTTP and MCP, and what is answered: every route, tool and kind of refusal."""

import asyncio
import re
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from streams.http.health import Api
from tests.golden.contracts import shown, stripped
from tests.golden.logs import TOKENS
from tests.golden.world import World

_WITHOUT = {"content-length", "etag", "last-modified"}
"""Headers that say how long or how old an answer is."""
_DIGITS = 6
_COSINE, _COSINE_DIGITS = "similarity", 4
_ALEX = {"user_id": "alex", "app_id": "assistant"}
_PROJECT = {"project_id": "tool-library", "app_id": "workshop"}
_QUERIES = ("What's my name?", "What did we discuss about databases?", "Where do I live, and what may I not eat?")
_ASKED_OF_PROJECTS = ("What was our database decision?", "Where do we deploy?", "")
_WRONG: tuple[Any, ...] = (
    b"{broken",
    b"",
    [],
    {},
    {"query": 1, "user_id": "x"},
    {**_ALEX, "query": " "},
    {"nothing": 1},
)
_KINDS = ("memory", "episode", "chunk", "conversation", "pending")

_OPERATIONS = """/livez /readyz /metrics /v1/index /v1/nothing /v1/projects /v1/projects?app_id=workshop&limit=1
/apps /apps?limit=1 /apps/statistics /apps/assistant/memories/999 /v1/projects/tool-library"""
_OF_USER = "/v1/users/{1}?app_id={0} " + " ".join(
    f"/v1/users/{{1}}/{end}?app_id={{0}}" for end in ("facts", "episodes", "recent", "standing")
)
_OF_ALEX = """/v1/users/alex/facts?include_past=true /v1/users/alex/facts?category=identity
/v1/users/alex/facts?category=nothing /v1/users/alex/episodes?limit=1 /v1/users/alex/recent?last=3
/v1/users/alex/recent?last=0 /v1/users/alex/standing"""
_OF_SESSION = """/v1/sessions/{0}/topics /v1/sessions/{0}/topics?include_gone=true /v1/sessions/{0}/turns
/v1/sessions/{0}/context /v1/sessions/{0}/messages /v1/sessions/{0}/stats
/v1/sessions/{0}/profile /v1/sessions/{0}/app /v1/sessions/{0}/segments?last=2 /v1/sessions/{0}/history?first=1&limit=3
/v1/sessions/{0}/turns?last=1&after_turn=1&timeout_ms=0
/v1/sessions/{0}/similar?q=how+does+it+work&top_k=3 /v1/sessions/{0}/topics/search?q=money&include_gone=true
/v1/live/sessions/{0} /v1/live/sessions/{0}?text=true"""
_OF_TOPIC = """/v1/sessions/{0}/topics/{1} /v1/sessions/{0}/context?topic={1} /v1/sessions/{0}/messages?topic={1}
/v1/sessions/{0}/messages?topic={1}&include_packed=false /v1/sessions/{0}/stats?topic={1}"""
_OF_SPACE = """/apps/{0}/memories?user_id={1} /apps/{0}/memories?user_id={1}&include_shared=true
/apps/{0}/memories/export?user_id={1} /apps/{0}/memories/stats?user_id={1}
/apps/{0}/memories/search?user_id={1}&q=user+wants+help&mode=keyword&limit=100
/apps/{0}/memories/search?user_id={1}&q=user+wants+help&mode=semantic&limit=100
/apps/{0}/memories/search?user_id={1}&q=user+wants+help&mode=hybrid&limit=100"""
_OF_PROJECT = """/v1/projects/{0}?app_id=workshop /v1/projects/{0}/standing?app_id=workshop
/v1/projects/{0}/valid_at?app_id=workshop /v1/projects/{0}/pending?app_id=workshop
/v1/projects/{0}/conversations?app_id=workshop /v1/projects/{0}/conversations/tool-library?app_id=workshop
/v1/projects/{0}/episodes?app_id=workshop /v1/projects/{0}/arc?app_id=workshop
/v1/projects/{0}/graph?app_id=workshop /v1/projects/{0}/memories?app_id=workshop&limit=1000"""
_OF_LIBRARY = """/valid_at?at=2025-06-28T14:50:00Z&known_at=2025-06-28T14:55:00Z /arc?conversation_id=tool-library
/memories?memory_type=decision /memories?include_archived=true /memories?limit=3 /memories?tag=database
/memories?category=technical /episodes?kind=decision_made /episodes?min_significance=0.8 /graph?limit=5
/episodes?conversation_id=nothing /conversations/nothing /memories/m9999999-99999999""" + "".join(
    f" /export?kind={kind} /export?kind={kind}&limit=2" for kind in _KINDS
)
_OF_MEMORY = """/memories/{0} /graph/neighbours?memory_id={0}&depth=2 /graph/dependents?memory_id={0}
/graph/path?source_id={1}&target_id={0}"""
_OF_LIVE = """/v1/live/me /v1/live/search?q=name+database+router&kind=turns
/v1/live/search?q=name+database+router&kind=episodes /v1/live/search?q=name+database+router&kind=facts
/v1/live/search?q=name+database+router&kind=memories /v1/live/texts/account?first=2&last=5"""


class Asker:
    """Asks, and notes what is answered by route."""

    def __init__(self, client: httpx.AsyncClient, app: Api) -> None:
        self.lines: defaultdict[str, list[str]] = defaultdict(list)
        self.client = client
        self.firsts: dict[str, tuple[str, Any]] = {}
        """Route → the first request to it, and its body."""
        described: dict[str, dict[str, Any]] = app.openapi()["paths"]
        paths = sorted(described, key=lambda path: path.count("{"))
        self._routes = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in paths]
        self._there = {f"{method.upper()} {path}" for path, of in described.items() for method in of}

    async def __call__(self, asked: str, body: Any = None, *, by: str | None = "admin", into: str = "answers") -> Any:
        """One request, `METHOD /path?query`. Returns the answer, read as JSON if it is."""
        method, _, place = asked.partition(" ")
        path = urlsplit(place).path
        route = f"{method} {next((known for rule, known in self._routes if rule.fullmatch(path)), path)}"
        self.firsts.setdefault(route, (asked, body))
        content = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        response = await self.client.request(method, place, content=content, headers=headers(by))
        await asyncio.sleep(0)  # what nobody waits for has its turn before the next request
        told = rounded(_plain(response))
        kept = {name: value for name, value in response.headers.items() if name not in _WITHOUT}
        sent = "" if content is None else content[:500].decode(errors="replace")
        line = {"asked": f"{by} {asked} {sent}", "status": response.status_code, "headers": kept, "answer": told}
        self.lines[f"{into}/{route}"].append(shown(line))
        return told

    async def gets(self, places: str, *names: str, before: str = "", after: str = "") -> list[Any]:
        """Look-ups, told apart by white space; names fill their braces."""
        return [await self("GET " + before + place.format(*names) + after) for place in places.split()]

    def require_all(self) -> None:
        """A route that nobody asked is a hole in the record."""
        also = {each.replace(" /apps", " /v1/apps") for each in self._there if " /apps" in each}  # the same methods
        missing = self._there - also - {name.partition("/")[2] for name in self.lines}
        assert missing == set(), f"add a question for {sorted(missing)}"


def headers(by: str | None) -> dict[str, str]:
    """Of a request of somebody whose token has that name; another word is the token itself."""
    tokens = {token["name"]: token["token"] for token in TOKENS}
    plain = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return plain if by is None else {**plain, "Authorization": f"Bearer {tokens.get(by, by)}"}


def _plain(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def rounded(value: Any) -> Any:
    """Numbers that may be added up in another order, to six digits, and equal scores in a fixed order.

    A cosine is of four digits: it is a sum of float32, whose seventh digit is chance.
    """
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {
            key: round(item, _COSINE_DIGITS) if key == _COSINE and isinstance(item, float) else rounded(item)
            for key, item in value.items()
        }
    if not isinstance(value, list):
        return value
    items: list[Any] = [rounded(item) for item in value]
    for name in ("score", _COSINE):
        if all(isinstance(item, dict) and isinstance(item.get(name), float) for item in items):
            items.sort(key=lambda item: (-item[name], shown(item)))
    return items


async def ask_everything(world: World, app: Api) -> dict[str, list[str]]:
    """All questions, in an order in which what changes something comes last."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        ask = Asker(client, app)
        await _look_ups(ask, world)
        await _users(ask)
        await _projects(ask)
        await _live(ask, world)
        await _tools(ask)
        await _refused(ask)
        await _deeds(ask)
        await _deeds_to_users(ask)
        await _project_deeds(ask)
        await _live_deeds(ask, world)
        ask.require_all()
        return dict(ask.lines)


async def _look_ups(ask: Asker, world: World) -> None:
    """Everything that is known, as readers see it."""
    await ask.gets(_OPERATIONS)
    keys = sorted({record.key.decode() for record in world.records("commands.v1")})
    for kind, _, name in (key.partition(":") for key in [*keys, "user:assistant/nobody", "app:nothing"]):
        app_id, _, other = name.partition("/")
        if kind == "user":
            await ask.gets(_OF_USER, app_id, other)
        elif kind == "app":
            listed, *_ = await ask.gets(_OF_SPACE, app_id, other)
            await ask.gets(" ".join(f"/apps/{app_id}/memories/{each['id']}" for each in listed["memories"]))
    for session_id in [*dict.fromkeys(event["session_id"] for event in world.events("profiles.v1")), "nobody"]:
        _, topics, *_ = await ask.gets(_OF_SESSION, session_id)
        for topic_id in [each["topic_id"] for each in topics[:2]] or ["nothing"]:
            await ask.gets(_OF_TOPIC, session_id, topic_id)


async def _users(ask: Asker) -> None:
    await ask.gets(_OF_ALEX)
    for query in _QUERIES:
        of = {**_ALEX, "query": query}
        await ask("POST /v1/retrieve", {**of, "max_distance": 2.0})
        await ask("POST /v1/retrieve", {**of, "min_importance": 0.9, "format": False})
        await ask("POST /v1/context", {**of, "session_id": "database", "token_budget": 500})
        await ask("POST /v1/context", {**of, "injection_point": "conversation_review"})
        for kind in ("turns", "episodes"):
            await ask("POST /v1/search", {"query": query, "user_id": "alex", "kind": kind, "top_k": 3})
    await ask("POST /v1/search", {"query": "router light", "app_id": "isp-support"})
    for turn in (1, 9_999):
        after = {"session_id": "database", "turn": turn, "timeout_ms": 0}
        await ask("POST /v1/retrieve", {**_ALEX, "query": "x", "after": after})
    await ask("POST /v1/turns/wait", {"session_id": "database", "message_ids": ["m-1"], "timeout_ms": 0})


async def _library(ask: Asker, asked: str, body: Any = None) -> Any:
    method, _, end = asked.partition(" ")
    place = f"{method} /v1/projects/tool-library{end}"
    return await ask(f"{place}{'&' if '?' in end else '?'}app_id=workshop", body)


async def _projects(ask: Asker) -> None:
    await ask.gets(_OF_PROJECT, "nothing")
    *_, listed = await ask.gets(_OF_PROJECT, "tool-library")
    for end in _OF_LIBRARY.split():
        await _library(ask, f"GET {end}")
    ids = [each["id"] for each in listed["memories"]]
    for memory_id in ids[:5]:
        for end in _OF_MEMORY.split():
            await _library(ask, f"GET {end.format(memory_id, ids[0])}")
    for query in _ASKED_OF_PROJECTS:
        for strategy in ("tfidf", "hybrid"):
            await _library(ask, "POST /retrieve", {"query": query, "strategy": strategy, "related_depth": 1})
            await _library(ask, "POST /search", {"query": query or "PostgreSQL", "strategy": strategy})
        await _library(ask, "POST /context", {"query": query, "conversation_id": "tool-library", "top_k": 5})
    then = {"valid_at": "2025-06-28T14:50:00Z", "filters": {"memory_types": ["decision"]}}
    await _library(ask, "POST /retrieve", {"query": "Which frontend?", **then})
    await _library(ask, "POST /context", {"query": "frontend", "budget": {"total_tokens": 900}, "system_prompt": "Hi."})


async def _live(ask: Asker, world: World) -> None:
    await ask.gets(_OF_LIVE)
    for by in ("blind", "tenant"):
        await ask("GET /v1/live/me", by=by)
    await ask("GET /v1/live/sessions/account", by="blind")
    for path in ("/live", "/live/", "/live/nothing.js"):
        response = await ask.client.get(path)
        ask.lines["answers/page"].append(f"{path} {response.status_code} {response.headers.get('location')}")
    asking = asyncio.ensure_future(ask("GET /v1/live/stream"))
    while not world.live.hub.streams:  # noqa: ASYNC110 - it lasts until the role ends
        await asyncio.sleep(0.01)
    world.live.end()
    await asking
    world.live.hub.begin()


async def _tools(ask: Asker) -> None:
    async def tool(name: str, by: str = "admin", **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments}
        await ask("POST /mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, by=by)

    for query in _QUERIES:
        await tool("search_memory", query=query, **_ALEX)
        await tool("get_context", query=query, **_ALEX, token_budget=600, app_memories=True)
    for by in ("admin", "tenant", "blind"):
        await tool("list_facts", by, **_ALEX)
    await tool("list_facts", **_ALEX, category="constraint")
    await tool("list_facts", nothing=1)
    await tool("nothing")
    await tool("project_context", query="What was our database decision?", **_PROJECT)
    await tool("search_project", query="Where do we deploy?", **_PROJECT)
    await tool("add_project_memory", **_PROJECT, content="We meet on Mondays.", type="fact", subject="meeting")
    listing = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    response = await ask.client.post("/mcp", content=listing, headers=headers("admin"))
    ask.lines["contracts/tools"] += [shown(stripped(tool)) for tool in response.json()["result"]["tools"]]


async def _refused(ask: Asker) -> None:
    """Every route by nobody, by who may not read text and by another tenant; then what is wrong or too much."""
    for asked, body in list(ask.firsts.values()):
        if not asked.endswith("/stream"):
            for by in (None, "blind", "tenant"):
                await ask(asked, body, by=by, into="refused")
    await ask("GET /v1/live/stream", by="tenant", into="refused")
    await ask("GET /v1/index", by="no-such-token-at-all", into="refused")
    await ask("DELETE /v1/index", into="refused")
    for path in ("/v1/retrieve", "/v1/context", "/v1/search", "/v1/erase"):
        for body in (*_WRONG, {**_ALEX, "query": "x" * 9_000}, b"x" * 70_000):
            await ask(f"POST {path}", body, into="refused")
    for end in ("/retrieve", "/context", "/search", "/memories"):
        for body in _WRONG:
            await ask(f"POST /v1/projects/tool-library{end}?app_id=workshop", body, into="refused")
    for query in ("top_k=0&q=x", "q=", ""):
        await ask(f"GET /v1/sessions/database/similar?{query}", into="refused")
    await ask(f"GET /v1/users/{'x' * 300}/facts", into="refused")


async def _deeds(ask: Asker) -> None:
    ids = [each["id"] for each in (await ask("GET /apps/assistant/memories"))["memories"]]
    first, last = (f"/apps/assistant/memories/{memory_id}" for memory_id in (ids[0], ids[-1]))
    for edit in (
        {"content": "User prefers pgvector.", "importance": 7.5, "pinned": True, "sharedWith": ["isp-support"]},
        {"tags": ["kept"], "pinned": False},
        {"importance": 99},
        {},
    ):
        await ask(f"PUT {first}", edit)
    await ask("PUT /apps/assistant/memories/999", {"pinned": True})
    await ask("GET /apps/isp-support/memories?include_shared=true")
    for asked in (f"DELETE {last}", f"DELETE {last}", "DELETE /apps/isp-support/memories"):
        await ask(asked)
    await ask("PUT /apps/assistant/injection", {"inject": True})
    search = {"app_id": "assistant", "search": {"title": "fraud", "severity": "critical", "category": "fraud"}}
    for kept in (True, False):
        await ask("PUT /v1/live/searches", {**search, "kept": kept})
        await ask("GET /v1/live/searches")
    for purge in (False, True):
        await ask("POST /apps/assistant/uninstall", {"purgeMemories": purge})
    for whom in (
        {"user_id": "user-edith", "app_id": "assistant"},
        {"session_id": "router"},
        {"session_id": "a", "app_id": "b"},
    ):
        accepted = await ask("POST /v1/erase", whom)
        await ask(f"GET /v1/erase/{accepted.get('request_id', 'nothing')}")


async def _deeds_to_users(ask: Asker) -> None:
    """Facts, topics and turns; erasing comes before them, and takes neither."""
    name = "/v1/users/alex/facts/identity/name?app_id=assistant"
    for body in ({"value": "Alexander", "pinned": True}, {"importance": 0.9}, {"pinned": False}, {"value": ""}, {}):
        await ask(f"PUT {name}", body)
    for asked in (name, name, "/v1/users/nobody/facts/identity/name?app_id=assistant"):
        await ask(f"DELETE {asked}")
    await ask(f"PUT {name}", {"pinned": True})
    await ask("GET /v1/users/alex/facts?include_past=true")
    for body in ({"mode": "off"}, {"mode": "off"}, {"mode": "active"}, {"mode": "asleep"}):
        await ask("PUT /v1/users/alex/mode?app_id=assistant", body)
        await ask("POST /v1/retrieve", {"user_id": "alex", "app_id": "assistant", "query": "What's my name?"})
    topic = (await ask("GET /v1/sessions/database/topics"))[0]["topic_id"]
    for rated in ({"importance": 0.9, "tags": ["kept"]}, {"importance": 2}, {}):
        await ask(f"PUT /v1/sessions/database/topics/{topic}", rated)
    await ask("PUT /v1/sessions/database/topics/nothing", {"importance": 0.9})
    for feedback in ({"value": 1.0}, {"value": -0.5, "topic": topic}, {"value": 1.0, "turn": 9_999}, {"value": 2}):
        await ask("POST /v1/sessions/database/feedback", feedback)
    for number in (1, 9_999):
        await ask(f"PUT /v1/sessions/database/turns/{number}", {"content": "Which one is best?", "reason": "typo"})
    await ask.gets("/turns /topics /messages", before="/v1/sessions/database")


async def _project_deeds(ask: Asker) -> None:
    saved: dict[str, Any] = {}
    for kind in _KINDS:
        saved |= await _library(ask, f"GET /export?kind={kind}&limit=4")
    first, second, third, *_ = (e["id"] for e in (await _library(ask, "GET /memories?limit=1000"))["memories"])
    added = {"content": "We decided to use SQLite for tests.", "type": "decision", "subject": "tests"}
    edge = {"source_id": first, "target_id": third, "relation": "depends_on"}
    status = "PUT /conversations/tool-library/status"
    deeds: list[tuple[str, Any]] = [
        *[("POST /memories", body) for body in (added, added, {"content": "Bread.", "type": "preference"})],
        (f"PUT /memories/{first}", {"content": "We use boats.", "importance": 0.9, "tags": ["sea"]}),
        (f"PUT /memories/{first}", {"valid_until": "2025-06-28T15:00:00Z"}),
        (f"PUT /memories/{second}", {"archived": True}),
        ("PUT /memories/m9999999-99999999", {"archived": True}),
        ("PUT /relationships", {**edge, "strength": 0.5}),
        (f"GET /graph/path?source_id={first}&target_id={third}", None),
        *[(f"GET /chunks/{name}", None) for name in (saved["chunks"][1]["id"], "nothing")],
        ("GET /export?kind=chunk&limit=2&originals=true", None),
        (f"DELETE /relationships?{'&'.join(f'{name}={value}' for name, value in edge.items())}", None),
        (f"DELETE /memories/{third}", None),
        *[(status, {"status": to, "summary": "Done."}) for to in ("paused", "active", "ended", "nothing")],
        ("POST /consolidate", None),
        ("POST /import", {}),
    ]
    pending = (await _library(ask, "GET /pending"))["pending"]
    for each, decision in zip(pending, ("promote", "reject", "nothing"), strict=False):
        deeds.append((f"POST /pending/{each['id']}/{decision}", None))
    for asked, body in deeds:
        await _library(ask, asked, body)
    items = ("memories", "episodes", "chunks", "conversations", "pending")
    await ask("POST /v1/projects/copied/import?app_id=workshop", {name: saved.get(name, []) for name in items})
    for project_id in ("tool-library", "copied"):
        await ask.gets(_OF_PROJECT, project_id)


async def _live_deeds(ask: Asker, world: World) -> None:
    """Of the alerts of the play, which are over, and of one that is not."""
    said = {"session_id": "new", **_ALEX, "role": "user", "content": "Tell me again how.", "risk": 0.95}
    for turn in range(12):
        world.say("turns.v1", "new", "turn", **said, turn=turn)
    await world.fold()
    await world.index()
    for alert_id, session_id in {each["alert_id"]: each["session_id"] for each in world.events("alerts.v1")}.items():
        for name in (alert_id, "nothing"):
            place, of = f"POST /v1/live/alerts/{name}", {"session_id": session_id}
            await ask(f"{place}/acknowledge", {**of, "note": "looking"})
            await ask(f"{place}/label", {**of, "label": False, "reason": "homework"})
            named = [{**of, "alert_id": name}]
            await ask("POST /v1/live/alerts/label", {"alerts": named, "label": True})
            await ask(f"GET /v1/live/alerts/{name}/similar")
            for news in ({"assignee": "bob", "note": "asked"}, {"duplicate_of": "nothing"}, {"note": "late"}):
                await ask("POST /v1/live/alerts/triage", {"alerts": named, **news})
        await ask(f"GET /v1/live/sessions/{session_id}")
