"""What routes refuse beyond their schema, and what they say then: never what was sent; nothing is asked or written.

What the schema forbids is refused by `test_api_conformance`.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from models.errors import DeliveryFailed, StoreUnavailable
from models.events import Role
from tests.support.api_doubles import Served

PRIVATE = "something private"
ASKING: list[tuple[dict[str, Any], str]] = [
    ({"query": " \n"}, "query"),
    ({"app_id": {"$ne": PRIVATE}}, "app_id"),
    ({PRIVATE: 1}, ""),
]
OF_USERS: list[tuple[str, dict[str, Any], str]] = [
    *((f"/v1/{path}", change, field) for path in ("retrieve", "context", "search") for change, field in ASKING),
    ("/v1/context", {"injection_point": "conversation_review"}, "app_id"),  # of all apps that a caller may read?
    ("/v1/search", {"kind": PRIVATE}, "kind"),
    ("/v1/search", {"user_id": None}, "user_id"),  # there is no query over everything
    ("/v1/search", {"user_id": None, "kind": "episodes", "session_id": "s"}, "session_id"),
]
EDIT, PROJECT = "PUT /apps/a/memories/1", "/v1/projects/p/{}?app_id=a".format
NEVER = {"valid_from": "2026-01-02T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"}
OVER = {"valid_until": "2020-01-01T00:00:00Z"}
NO_DAYS = {"date_from": "2026-01-02T00:00:00Z", "date_to": "2026-01-01T00:00:00Z"}
NO_WEIGHTS = dict.fromkeys(("semantic", "keyword", "recency", "importance"), 0)
BODIES: list[tuple[str, dict[str, Any] | None, str]] = [
    *((f"POST {path}", {"user_id": "u", "query": PRIVATE, **change}, field) for path, change, field in OF_USERS),
    (EDIT, {}, ""),
    (EDIT, {"content": "x" * 401}, "content"),
    (EDIT, {"content": "  "}, "content"),
    (EDIT, {"tags": [""]}, "tags[0]"),
    (EDIT, {"sharedWith": ["a"]}, "sharedWith"),
    (EDIT, {"sharedWith": ["b\n"]}, "sharedWith"),
    (EDIT, {PRIVATE: 1}, ""),
    *((f"{method} /apps/a%01b/memories", None, "app_id") for method in ("GET", "DELETE")),  # no event can have it
    *((f"{method} /apps/a/memories?user_id=%00", None, "user_id") for method in ("GET", "DELETE")),
    ("POST /v1/erase", {}, ""),
    ("POST /v1/erase", {"purge_logs": True}, ""),
    ("POST /v1/erase", {"session_id": "s", "user_id": "u"}, "session_id"),
    ("POST /v1/erase", {"session_id": "nobody's"}, "app_id"),
    ("POST /v1/erase", {"user_id": "a\x00"}, "user_id"),
    ("GET /v1/projects/p/standing", None, "app_id"),  # the same project id in two apps is two projects
    ("POST " + PROJECT("memories"), {"content": "x", "type": PRIVATE}, "type"),
    ("POST " + PROJECT("memories"), {"content": " ", "type": "fact"}, "content"),
    (
        "POST " + PROJECT("memories"),
        {"content": "x", "type": "fact", **OVER},
        "valid_until",
    ),
    ("PUT " + PROJECT("memories/m-1"), {}, ""),
    ("PUT " + PROJECT("memories/m-1"), NEVER, "valid_until"),
    ("PUT " + PROJECT("memories/m-1"), {"valid_until": "2026-01-02T00:00:00Z", "reopened": True}, "reopened"),
    ("PUT " + PROJECT("relationships"), {"source_id": "m-1", "target_id": "m-2", "relation": "Not A Name"}, "relation"),
    ("PUT " + PROJECT("conversations/s/status"), {"status": PRIVATE}, "status"),
    ("POST " + PROJECT("import"), {"pending": [{"id": "p-1"}]}, "pending[0]"),
    ("POST " + PROJECT("retrieve"), {"query": "x", "filters": {PRIVATE: 1}}, "filters"),
    ("POST " + PROJECT("retrieve"), {"query": "x", "weights": NO_WEIGHTS}, "weights"),
    ("POST " + PROJECT("retrieve"), {"query": "x", "filters": NO_DAYS}, "filters.date_to"),
    ("POST " + PROJECT("context"), {"query": "x", "budget": {"total_tokens": 0}}, "budget"),
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
    answers = [await client.delete("/apps/a/memories"), await client.post(PROJECT("consolidate"))]

    assert [(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in answers] == [
        (503, "log_unavailable", "2")
    ] * 2
