"""What the routes refuse, and what they say then: never what was sent, and nothing is asked of a memory or written."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from models.errors import DeliveryFailed, StoreUnavailable
from models.events import Role
from tests.support.api_doubles import Served

PRIVATE = "something private"
LONG = "x" * 8_001
ASKING = [
    ("query", ""),
    ("query", " \n"),
    ("query", LONG),
    ("query", 7),
    ("user_id", ""),
    ("user_id", "x" * 257),
    ("user_id", ["u"]),
    ("app_id", {"$ne": PRIVATE}),
]
OF_USERS: list[tuple[str, dict[str, Any], str]] = [
    *((f"/v1/{path}", {name: value}, name) for path in ("retrieve", "context", "search") for name, value in ASKING),
    *((f"/v1/{path}", {PRIVATE: 1}, "") for path in ("retrieve", "context", "search")),
    ("/v1/retrieve", {"top_k_episodes": 0}, "top_k_episodes"),
    ("/v1/retrieve", {"top_k_episodes": 101}, "top_k_episodes"),
    ("/v1/retrieve", {"max_distance": -0.1}, "max_distance"),
    ("/v1/retrieve", {"min_importance": 1.1}, "min_importance"),
    ("/v1/retrieve", {"after": {"session_id": "s", "turn": 1, "timeout_ms": 10_001}}, "after.timeout_ms"),
    ("/v1/retrieve", {"after": {"session_id": "s"}}, "after"),
    ("/v1/context", {"token_budget": 63}, "token_budget"),
    ("/v1/context", {"recent_turns": 101}, "recent_turns"),
    ("/v1/context", {"injection_point": "elsewhere"}, "injection_point"),
    ("/v1/context", {"app_memories": "yes"}, "app_memories"),
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
    (EDIT, {"content": "x" * 50_000}, "content"),
    (EDIT, {"content": "x" * 401}, "content"),
    (EDIT, {"content": "  "}, "content"),
    (EDIT, {"importance": 11}, "importance"),
    (EDIT, {"importance": "7"}, "importance"),
    (EDIT, {"tags": ["t"] * 6}, "tags"),
    (EDIT, {"tags": [""]}, "tags[0]"),
    (EDIT, {"sharedWith": ["a"]}, "sharedWith"),
    (EDIT, {"sharedWith": ["b\n"]}, "sharedWith"),
    (EDIT, {"sharedWith": [f"b{n}" for n in range(17)]}, "sharedWith"),
    (EDIT, {PRIVATE: 1}, ""),
    *((f"{method} /apps/a%01b/memories", None, "app_id") for method in ("GET", "DELETE")),  # no event can have it
    *((f"{method} /apps/a/memories?user_id=%00", None, "user_id") for method in ("GET", "DELETE")),
    ("POST /v1/erase", {}, ""),
    ("POST /v1/erase", {"purge_logs": True}, ""),
    ("POST /v1/erase", {"session_id": "s", "user_id": "u"}, "session_id"),
    ("POST /v1/erase", {"session_id": "s", "app_id": "a"}, "session_id"),
    ("POST /v1/erase", {"user_id": ""}, "user_id"),
    ("POST /v1/erase", {"user_id": "a\x00"}, "user_id"),
    ("POST /v1/erase", {"everything": True}, ""),
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
    ("POST " + PROJECT("retrieve"), {"query": "x", "filters": {"min_importance": 2}}, "filters.min_importance"),
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
    answer = await client.post("/v1/retrieve", content=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    "path",
    [
        *("users/u/facts?category=mood", "users/u/episodes?limit=0", "users/u/recent?last=101"),
        *("users/u/facts?include_past=perhaps", "sessions/s/similar", "sessions/s/similar?q="),
        *(f"sessions/s/similar?q={LONG}", "sessions/s/similar?q=a&top_k=0", "sessions/s/similar?q=a&top_k=101"),
        *("sessions/s/similar?q=a&top_k=five", "sessions/s/turns?last=0", "sessions/s/turns?last=1001"),
        *(f"sessions/{LONG[:257]}/turns", "sessions//turns", f"sessions/{LONG[:257]}/topics", "sessions//topics"),
        *("sessions//topics/x", f"sessions/s/topics/{LONG[:257]}", "sessions/s/topics?include_gone=perhaps"),
        *("sessions/s/history?include_packed=perhaps", "sessions/s/stats?topic=", "sessions/s/topics/search"),
        *("sessions/s/topics/search?q=", f"sessions/s/topics/search?q={LONG}"),
        *("sessions/s/topics/search?q=a&top_k=0", "sessions/s/topics/search?q=a&top_k=101"),
    ],
    ids=lambda path: path[:40],
)
async def test_wrong_parameters_are_refused(client: httpx.AsyncClient, path: str) -> None:
    """422 problem details without the value."""
    answer, value = await client.get(f"/v1/{path}"), re.split("[=/?]", path)[-1]

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert len(value) < 4 or value not in answer.text


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
