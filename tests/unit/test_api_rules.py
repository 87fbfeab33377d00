"""Which token may ask what: every route and tool of the app against a written table. A route without a rule fails."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
from pydantic import SecretStr
from starlette.routing import Route

from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Log, Served

READER, OPERATOR, ADMIN = TokenRole
OPEN = "open"


class Rule(NamedTuple):
    """What a route takes, and what is noted of it."""

    role: TokenRole | str
    text: bool = False
    noted: str | None = None


READS, ACTS, FIGURES = Rule(READER, True, "text_read"), Rule(ADMIN, False, "acted"), Rule(READER)
ADMIN_READS, ADMIN_FIGURES = Rule(ADMIN, True, "text_read"), Rule(ADMIN)
RULES: dict[str, Rule] = {
    **dict.fromkeys(("GET /livez", "GET /readyz", "GET /openapi.json", "GET /docs", "GET /metrics"), Rule(OPEN)),
    **dict.fromkeys(("POST /v1/retrieve", "POST /v1/context", "POST /v1/search"), READS),
    **{f"GET /v1/users/{{user_id}}/{what}": READS for what in ("facts", "episodes", "recent")},
    **dict.fromkeys(("GET /v1/users/{user_id}", "GET /v1/users/{user_id}/standing", "GET /v1/index"), FIGURES),
    **{
        f"GET /v1/sessions/{{session_id}}/{what}": READS
        for what in ("similar", "turns", "topics", "topics/search", "topics/{topic}", "context", "history", "stats")
    },
    **{f"POST /v1/projects/{{project_id}}/{what}": READS for what in ("retrieve", "context", "search")},
    **{
        f"GET /v1/projects/{{project_id}}/{what}": READS
        for what in (
            *("export", "memories", "memories/{memory_id}", "valid_at", "pending", "conversations"),
            *("conversations/{conversation_id}", "episodes", "arc"),
            *("graph", "graph/neighbours", "graph/dependents", "graph/path"),
        )
    },
    **dict.fromkeys(
        ("GET /v1/projects", "GET /v1/projects/{project_id}", "GET /v1/projects/{project_id}/standing"), FIGURES
    ),
    **{
        f"{method} /v1/projects/{{project_id}}/{what}": ACTS
        for method, what in (
            *(("POST", "memories"), ("PUT", "memories/{memory_id}"), ("DELETE", "memories/{memory_id}")),
            *(("PUT", "relationships"), ("DELETE", "relationships"), ("POST", "consolidate"), ("POST", "import")),
            *(("POST", "pending/{pending_id}/{decision}"), ("PUT", "conversations/{conversation_id}/status")),
        )
    },
    **{
        f"{method} {version}/apps{what}": rule
        for version in ("/v1", "")
        for method, what, rule in (
            *(("GET", f"/{{app_id}}/memories{end}", ADMIN_READS) for end in ("", "/export", "/search", "/{memory_id}")),
            *(("GET", what, ADMIN_FIGURES) for what in ("", "/statistics", "/{app_id}/memories/stats")),
            *(("DELETE", f"/{{app_id}}/memories{end}", ACTS) for end in ("", "/{memory_id}")),
            ("POST", "/{app_id}/uninstall", ACTS),
            ("PUT", "/{app_id}/memories/{memory_id}", ACTS),
        )
    },
    "POST /v1/erase": ACTS,
    "GET /v1/erase/{request_id}": ADMIN_FIGURES,
    **{f"GET /live{what}": Rule(OPEN) for what in ("", "/{name}")},
    **{f"GET /v1/live/{what}": Rule(READER) for what in ("me",)},
    **{f"GET /v1/live/{what}": Rule(OPERATOR) for what in ("stream", "sessions/{session_id}")},
    **{f"GET /v1/live/{what}": Rule(OPERATOR, True, "text_read") for what in ("texts/{session_id}", "search")},
    **{
        f"POST /v1/live/alerts/{{alert_id}}/{what}": Rule(OPERATOR, False, "acted") for what in ("acknowledge", "label")
    },
}
"""Method and path of every route that a role serves, and what it takes (deploy/security.md)."""
TOOLS = {
    **dict.fromkeys(("search_memory", "get_context", "list_facts", "project_context", "search_project"), READS),
    "add_project_memory": ACTS,
}
"""Likewise of tools, at `POST /mcp`."""
_USER, _PROJECT = {"user_id": "u"}, {"project_id": "p"}
GIVEN: dict[str, dict[str, Any]] = {
    "search_memory": {**_USER, "query": "x"},
    "get_context": {**_USER, "query": "x"},
    "list_facts": _USER,
    "project_context": {**_PROJECT, "query": "x"},
    "search_project": {**_PROJECT, "query": "x"},
    "add_project_memory": {**_PROJECT, "content": "the release is on Friday", "type": "decision"},
}
_NUMBERED = ("{memory_id}",)


def tokens() -> dict[str, ApiToken]:
    """One token of each role, with and without text."""
    return {
        f"{role}{'' if text else ' without text'}": ApiToken(
            token=SecretStr(f"a-token-of-{role}-{text}"),
            apps=["x"],
            role=role,
            text=text,
            name=f"{role} {text}",
        )
        for role in TokenRole
        for text in (True, False)
    }


def routes(of: Iterable[Any]) -> Iterator[str]:
    """Method and path of every route."""
    for route in of:
        assert isinstance(route, Route)
        for method in sorted((route.methods or {"*"}) - {"HEAD"}):
            yield f"{method} {re.sub(r':path}', '}', route.path)}"


class Asked(NamedTuple):
    """An app with the audit's records, its client, and its tokens."""

    client: httpx.AsyncClient
    log: Log
    tokens: dict[str, ApiToken]
    routes: list[str]

    async def status(self, name: str, token: str) -> tuple[int, str]:
        """Status and code of the answer to a route, asked with nothing but ids."""
        method, path = name.split(" ")
        path = re.sub(r"{(\w+)}", lambda found: "7" if found[0] in _NUMBERED else "x", path)
        answer = await self.client.request(method, f"{path}?q=x", headers=self.bearer(token), content=b"")
        code = answer.json().get("code", "") if answer.status_code >= 400 else ""
        return answer.status_code, code

    async def told(self, tool: str, token: str) -> str:
        """What a tool says; also that it refuses."""
        headers = {**self.bearer(token), "Accept": "application/json, text/event-stream"}
        call = _call("tools/call", name=tool, arguments=GIVEN[tool])
        told: str = (await self.client.post("/mcp", json=call, headers=headers)).json()["result"]["content"][0]["text"]
        return told

    def bearer(self, token: str) -> dict[str, str]:
        """Headers of a token's holder."""
        return {"Authorization": f"Bearer {self.tokens[token].token.get_secret_value()}"}


@asynccontextmanager
async def asking() -> AsyncIterator[Asked]:
    """The index role's app."""
    made, log = tokens(), Log()
    served = Served(settings=HttpSettings(tokens=list(made.values())), log=log)
    async with served.tools.running(), served.client() as client:
        yield Asked(client, log, made, sorted({*routes(served.app.routes)}))
    await served.close()


async def test_everything_has_a_rule() -> None:
    """Whoever adds a route or a tool says who may ask it, here and in deploy/security.md."""
    async with asking() as asked:
        headers = {**asked.bearer("reader"), "Accept": "application/json, text/event-stream"}
        listed = await asked.client.post("/mcp", json=_call("tools/list"), headers=headers)

    assert set(asked.routes) == {*RULES, "POST /mcp"}
    assert {each["name"] for each in listed.json()["result"]["tools"]} == TOOLS.keys()


async def test_nobody_is_let_in_without_a_token() -> None:
    """401, but for what is open; nothing else is kept by browsers or proxies."""
    async with asking() as asked:
        answers = {name: await asked.client.request(*name.split(" ")) for name in RULES}
        read = await asked.client.get("/v1/users/u/facts", headers=asked.bearer("reader"))

    kept = [answer for answer in (*answers.values(), read) if answer.headers.get("cache-control") != "no-store"]
    assert {answer.url.path for answer in kept} <= {
        "/livez",
        "/readyz",
        "/openapi.json",
        "/docs",
        "/live",
        "/live/{name}",
    }
    assert (read.status_code, read.headers["x-content-type-options"]) == (200, "nosniff")
    assert {name for name, rule in RULES.items() if rule.role == OPEN} == {
        name for name, answer in answers.items() if answer.status_code != 401
    }


async def test_routes_and_tools_take_what_the_tables_say() -> None:
    """403 below the role or without text; else the request is let in, and noted."""
    async with asking() as asked:
        for held, token in asked.tokens.items():
            for name, rule in RULES.items():
                asked.log.events.clear()
                status, code = await asked.status(name, held)

                assert refusal(rule, token) == (code if status == 403 else None), (held, name)
                if status < 400:
                    assert [each.kind for each in asked.log.events] == ([rule.noted] if rule.noted else []), name
            for tool, rule in TOOLS.items():
                asked.log.events.clear()
                said = await asked.told(tool, held)

                assert (refusal(rule, token) is not None) is ("token" in said), (held, tool, said)
                assert [(each.kind, each.route) for each in asked.log.events] == [(rule.noted, f"/mcp {tool}")]


def refusal(rule: Rule, held: ApiToken) -> str | None:
    """Code with which a token's holder is refused; None: they are let in."""
    if rule.role != OPEN and not held.role.may(TokenRole(rule.role)):
        return "forbidden"
    return "forbidden_text" if rule.text and not held.text else None


def _call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
