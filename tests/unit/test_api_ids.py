"""Ids that no event can have are refused by every route; any other leads to its own.

That each rule of the contract is kept by its route: `test_api_input.test_answers_are_as_documented`.
"""

import re
from typing import Any
from urllib.parse import quote

import pytest
from starlette.responses import Response
from starlette.routing import Route

from models.errors import InvalidRecord
from models.policy import Policy
from models.wire.codec import decode_input, encode
from streams.http.answering import Matching
from tests.support.api_doubles import AT, Log, Served, said
from tests.support.http_api import client_of

INVISIBLE = ("a\nb", "a\x00", "\x7f", "a\u00a0b", "a\u2028b", "a\u200bb", "\ue000")
UNFIT = ("", "x" * 257, *INVISIBLE)
_JSON = "application/json"


def _schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *schema.get("anyOf", [])]


def _fields(document: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Schemas of a body's fields."""
    if not content:
        return {}
    name = content["schema"]["$ref"].rpartition("/")[2]
    return dict(document["components"]["schemas"][name]["properties"])


def test_every_id_has_the_rule() -> None:
    """A parameter or a field of a body that is called an id and is a text; numbers of memories are none."""
    document = Served(log=Log()).app.openapi()
    named: list[tuple[str, Any]] = []
    for operation in (each for operations in document["paths"].values() for each in operations.values()):
        named += [(each["name"], each["schema"]) for each in operation.get("parameters", [])]
        named += _fields(document, operation.get("requestBody", {}).get("content", {}).get(_JSON, {})).items()
    texts = [(name, part) for name, schema in named for part in _schemas(schema) if part.get("type") == "string"]

    assert [] == [(name, part) for name, part in texts if name.endswith("_id") and "pattern" not in part]


@pytest.mark.parametrize("unfit", UNFIT)
async def test_what_nobody_sees_is_refused(unfit: str) -> None:
    """In the path, the query and the body: 422; from a producer it is a dead letter."""
    async with client_of(Served().app) as client:
        answers = [
            await client.get(f"/v1/sessions/{quote(unfit, safe='')}/turns"),
            await client.get("/v1/users/u/facts", params={"app_id": unfit}),
            await client.post("/v1/retrieve", json={"user_id": unfit, "query": "x"}),
        ]

    assert {422} == {each.status_code for each in answers if unfit or each.request.url.path != "/v1/sessions//turns"}
    with pytest.raises(InvalidRecord):
        decode_input(encode(said(0, "x", session=unfit)), unfit.encode(), AT, Policy().intake)


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
