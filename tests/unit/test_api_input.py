"""What the memory routes refuse, and what they say then: never what was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from models.errors import StoreUnavailable
from tests.api_doubles import Served

PRIVATE = "something private"
ROUTES = ["/v1/retrieve", "/v1/context", "/v1/search"]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A role that knows nobody."""
    made = Served()
    yield made
    await made.close()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A client of that role."""
    async with served.client() as made:
        yield made


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": " \n"}, "query"),
        ({"query": "x" * 8_001}, "query"),
        ({"query": 7}, "query"),
        ({"user_id": ""}, "user_id"),
        ({"user_id": "x" * 257}, "user_id"),
        ({"user_id": ["u"]}, "user_id"),
        ({"app_id": {"$ne": PRIVATE}}, "app_id"),
        ({PRIVATE: 1}, ""),
    ],
    ids=str,
)
async def test_wrong_input_is_refused_without_repeating_it(
    client: httpx.AsyncClient, path: str, change: dict[str, Any], field: str
) -> None:
    """422 problem details that name the field and hold nothing of what was sent."""
    answer = await client.post(path, json={"user_id": "u", "query": PRIVATE, **change})

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["errors"][0]["field"] == field
    assert PRIVATE not in answer.text


@pytest.mark.parametrize(
    ("path", "change", "field"),
    [
        ("/v1/retrieve", {"top_k_episodes": 0}, "top_k_episodes"),
        ("/v1/retrieve", {"top_k_episodes": 101}, "top_k_episodes"),
        ("/v1/retrieve", {"max_distance": -0.1}, "max_distance"),
        ("/v1/retrieve", {"min_importance": 1.1}, "min_importance"),
        ("/v1/retrieve", {"after": {"session_id": "s", "turn": 1, "timeout_ms": 10_001}}, "after.timeout_ms"),
        ("/v1/retrieve", {"after": {"session_id": "s"}}, "after"),
        ("/v1/context", {"token_budget": 63}, "token_budget"),
        ("/v1/context", {"recent_turns": 101}, "recent_turns"),
        ("/v1/search", {"kind": PRIVATE}, "kind"),
    ],
    ids=str,
)
async def test_wrong_numbers_are_refused(
    client: httpx.AsyncClient, path: str, change: dict[str, Any], field: str
) -> None:
    """422 with the field, before anything is asked of a memory."""
    answer = await client.post(path, json={"user_id": "u", "query": "x", **change})

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert PRIVATE not in answer.text


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
    "path", ["u/facts?category=mood", "u/episodes?limit=0", "u/recent?last=101", "u/facts?include_past=perhaps"]
)
async def test_wrong_parameters_are_refused(client: httpx.AsyncClient, path: str) -> None:
    """422 problem details without the value."""
    answer = await client.get(f"/v1/users/{path}")

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert path.partition("=")[2] not in answer.text.replace("limit", "")


async def test_a_store_that_does_not_answer_gives_503(
    served: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is told when to come again."""

    async def unavailable(*_args: object, **_kwargs: object) -> None:
        raise StoreUnavailable("Qdrant did not answer")

    monkeypatch.setattr(served.users, "facts", unavailable)
    answer = await client.post("/v1/retrieve", json={"user_id": "u", "query": "x"})

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert (answer.json()["code"], answer.json()["detail"]) == ("store_unavailable", "Qdrant did not answer")


async def test_what_nobody_foresaw_says_nothing_of_itself(
    served: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 problem details; an error's own words may hold a conversation's."""

    async def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError(PRIVATE)

    monkeypatch.setattr(served.users, "facts", broken)
    answer = await client.post("/v1/retrieve", json={"user_id": "u", "query": "x"})

    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert PRIVATE not in answer.text
