"""Ids that no event can have are refused by every route; any other leads to its own; health and metrics of roles."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from starlette.responses import Response
from starlette.routing import Route

from models.errors import InvalidRecord
from models.events.fields import PRINTABLE
from models.policy import Policy
from models.wire.codec import decode_input, encode
from streams.http.answering import Matching
from streams.settings.http import HttpSettings
from tests.support.api_doubles import AT, Log, Served, said
from tests.support.data_files import data_file
from tests.support.http_api import client_of

INVISIBLE = ("a\nb", "a\x00", "\x7f", "a\u00a0b", "a\u2028b", "a\u200bb", "\ue000")
UNFIT = ("", "x" * 257, *INVISIBLE)
_JSON = "application/json"
_PLACES = ("path", "query")


_PARTS = {"chunk_id", "topic", "memory_id", "pending_id", "request_id"}
"""Parameters that are one part of a path: an empty one makes another path."""


class Asked(NamedTuple):
    """A request as the contract's examples have it, and one with an id that does not fit."""

    method: str
    path: str
    parameters: dict[tuple[str, str], Any]
    """By whether they stand in the path or the query, and name."""
    body: Any

    def sent(self) -> dict[str, Any]:
        """Arguments for a client."""
        given = {
            place: {name: value for (at, name), value in self.parameters.items() if at == place} for place in _PLACES
        }
        names = {name: quote(str(value), safe="") for name, value in given["path"].items()}
        return {"method": self.method, "url": self.path.format(**names), "params": given["query"], "json": self.body}


@pytest.fixture(scope="module")
def served() -> Served:
    """Every route, the live page's too."""
    return Served(settings=HttpSettings(requests_per_second=10_000, burst=10_000), log=Log())


def _schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *schema.get("anyOf", [])]


def _unfit(schema: dict[str, Any]) -> Iterator[str]:
    """Values that its rules do not allow, if it is an id."""
    for each in _schemas(schema):
        if each.get("pattern") == PRINTABLE:
            yield from UNFIT if each.get("minLength") else UNFIT[1:]


def _requests(document: dict[str, Any]) -> Iterator[Asked]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = {(each["in"], each["name"]): each["schema"] for each in operation.get("parameters", [])}
            content = operation.get("requestBody", {}).get("content", {}).get(_JSON, {})
            examples = {place: schema["examples"][0] for place, schema in parameters.items()}
            valid = Asked(method, path, examples, content.get("example"))
            for place, schema in parameters.items():
                for value in _unfit(schema):
                    if value or place not in {("path", name) for name in _PARTS}:
                        yield valid._replace(parameters={**examples, place: value})
            for name, schema in _fields(document, content).items():
                lists = [[each] for part in _schemas(schema) for each in _unfit(part.get("items", {}))]
                for unfit in (*_unfit(schema), *lists):
                    yield valid._replace(body={**valid.body, name: unfit})


def _fields(document: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Schemas of a body's fields."""
    if not content:
        return {}
    name = content["schema"]["$ref"].rpartition("/")[2]
    return dict(document["components"]["schemas"][name]["properties"])


async def test_every_route_refuses_ids_that_do_not_fit(served: Served) -> None:
    """422 for what is empty, too long, or holds what nobody sees: in the path, the query and the body."""
    requests = list(_requests(served.app.openapi()))
    async with served.client() as client:
        answers = [(each, (await client.request(**each.sent())).status_code) for each in requests]

    assert [] == [(each, status) for each, status in answers if status != 422]
    assert len(requests) > 800
    assert [] == [*served.apps.sent, *served.projects.sent]


def test_every_id_has_the_rule(served: Served) -> None:
    """A parameter or a field of a body that is called an id and is a text; numbers of memories are none."""
    document = served.app.openapi()
    named: list[tuple[str, Any]] = []
    for operation in (each for operations in document["paths"].values() for each in operations.values()):
        named += [(each["name"], each["schema"]) for each in operation.get("parameters", [])]
        named += _fields(document, operation.get("requestBody", {}).get("content", {}).get(_JSON, {})).items()
    texts = [(name, part) for name, schema in named for part in _schemas(schema) if part.get("type") == "string"]

    assert [] == [(name, part) for name, part in texts if name.endswith("_id") and "pattern" not in part]


@pytest.mark.parametrize("unfit", UNFIT)
def test_the_fold_refuses_the_same(unfit: str) -> None:
    """What HTTP answers 422 to is a dead letter from a producer."""
    turn = said(0, "x", session=unfit)
    with pytest.raises(InvalidRecord):
        decode_input(encode(turn), unfit.encode(), AT, Policy().intake)


@pytest.mark.parametrize(("method", "path", "allowed"), data_file("api_ids")["methods"])
async def test_another_method_is_told_all_that_there_are(served: Served, method: str, path: str, allowed: str) -> None:
    """405 with `Allow`; the path is never taken for an id of a shorter one."""
    async with served.client() as client:
        answer = await client.request(method, path)

    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


IDS = ["plain", "a/b", "/", "..", "naïve 東京 🌙", "100%", "q?a=b&c#d", "a\\b", 'shop/eu ü%2F"memories/7', "x" * 256]
LIKE_ROUTES = [
    "topics",
    "/topics",
    "a/similar",
    "x/turns",
    "plain/topics",
    "plain/topics/search",
    "a/facts",
    "x/standing",
]


async def test_any_id_can_be_asked_for() -> None:
    """Ids are the producers': slashes, dots, percent signs and words of our own paths in it reach every route."""
    found: list[tuple[Route, dict[str, str]]] = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        route, child = scope["turntide.matched"]
        found.append((route, child.get("path_params")))
        await Response()(scope, receive, send)

    routes = [each for each in Served(log=Log()).app.routes if isinstance(each, Route) and ":path}" in each.path]
    assert len(routes) > 20
    async with client_of(Matching(noted, routes)) as client:
        for route in routes:
            for name in IDS if route.path.endswith(":path}") else [*IDS, *LIKE_ROUTES]:
                ids = {each: name if way else "1" for each, way in re.findall(r"{(\w+)(:path)?}", route.path)}
                sent = {key: quote(value, safe="").replace(".", "%2E") for key, value in ids.items()}
                path = route.path.replace(":path", "").format(**sent)
                for method in route.methods or ():
                    await client.request(method, path)
                    assert found.pop() == (route, ids)


async def test_no_page_loads_scripts_from_elsewhere() -> None:
    """The contract is there as JSON and as a page of its own; the usual pages around it would fetch from a CDN."""
    async with client_of(Served().app) as client:
        contract, docs = await client.get("/openapi.json"), await client.get("/docs")

    assert docs.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "<code>GET /v1/sessions/{session_id}/similar</code>" in docs.text
    assert "<script" not in docs.text
    assert "/v1/sessions/{session_id}/similar" in contract.json()["paths"]
