"""Which token may ask what: every route and tool of the app against a written table. A route without a rule fails."""

import re
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from pydantic import SecretStr
from starlette.routing import Route

from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Log, Served

OPEN = "open"


class Rule(NamedTuple):
    """What a route takes, and what is noted of it."""

    role: str
    text: bool = False
    noted: str | None = None


_TABLE = tomllib.loads(Path(__file__).with_name("data").joinpath("route_rules.toml").read_text("utf-8"))


def _rules(of: str) -> dict[str, Rule]:
    """What each of the table's `routes` or `tools` takes."""
    return {
        name: Rule(each["role"], each.get("text", False), each.get("noted"))
        for each in _TABLE["rules"]
        for name in each.get(of, ())
    }


RULES, TOOLS = _rules("routes"), _rules("tools")
GIVEN: dict[str, dict[str, Any]] = _TABLE["given"]
_NUMBERED = ("{memory_id}",)


def tokens() -> dict[str, ApiToken]:
    """One token of each role, with and without text."""
    return {
        f"{role}{'' if text else ' without text'}": ApiToken(
            token=SecretStr(f"a-token-of-{role}-{text}"), apps=["x"], role=role, text=text, name=f"{role} {text}"
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
