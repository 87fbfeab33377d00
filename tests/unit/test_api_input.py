"""What routes refuse beyond their schema, and what they say then: never what was sent; nothing is asked or written.

What the schema forbids is refused by `test_api_conformance`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import msgspec
import pytest

from models.errors import DeliveryFailed, StoreUnavailable
from models.events import Role
from tests.support.api_doubles import Served

PRIVATE = "something private"
_REFUSED = msgspec.yaml.decode(Path(__file__).with_name("data").joinpath("refused_requests.yaml").read_bytes())
BODIES: list[tuple[str, dict[str, Any] | None, str]] = [
    *_REFUSED,
    ("PUT /apps/a/memories/1", {"content": "x" * 401}, "content"),
]


async def test_wrong_input_is_refused_without_repeating_it(served: Served, client: httpx.AsyncClient) -> None:
    """422 problem details that name the field and hold nothing of what was sent; nothing is written."""
    told = []
    for asked, body, field in BODIES:
        method, path = asked.split(" ")
        answer = await client.request(method, path, json=body)
        named = answer.json().get("errors", [{}])[0].get("field")
        is_refused = (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        if not is_refused or named != field or PRIVATE in answer.text:
            told.append((asked, body, field, named, answer.status_code))

    assert told == []
    assert (served.apps.sent, served.projects.sent, served.erasures.asked) == ([], [], [])


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"user_id":"u","query":"\\ud800"}', b"[" * 60_000, b"null"],
    ids=range(8),
)
async def test_what_is_no_request_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    """Broken JSON, other JSON, other encodings and a tower of brackets are the caller's mistake, not a failure."""
    answer = await client.post("/v1/retrieve", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreUnavailable("Qdrant did not answer"), (503, "store_unavailable", "2")),
        (RuntimeError(PRIVATE), (500, "internal_error", None)),
    ],
)
async def test_what_fails_behind_a_route(
    served: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, error: Exception, told: Any
) -> None:
    """503 says what is away and when to come again; of what nobody foresaw no word, which may be a conversation's."""
    monkeypatch.setattr(served.users, "facts", AsyncMock(side_effect=error))
    answer = await client.post("/v1/retrieve", json={"user_id": "u", "query": "x"})

    assert (answer.status_code, answer.json()["code"], answer.headers.get("retry-after")) == told
    assert (str(error) in answer.text) is (answer.status_code == 503)


async def test_while_the_log_is_away(served: Served, client: httpx.AsyncClient) -> None:
    """Likewise where something would be written."""
    served.projects.say(Role.USER, "We use boats.")
    served.apps.fails = served.projects.fails = DeliveryFailed("cannot reach Kafka.")
    answers = [await client.delete("/apps/a/memories"), await client.post("/v1/projects/p/consolidate?app_id=a")]

    assert [(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in answers] == [
        (503, "log_unavailable", "2")
    ] * 2
