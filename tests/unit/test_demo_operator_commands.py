"""The demo's operator: what is asked over HTTP, and what is a problem of the answers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from jobs.demo.asking import Erased, PurgedApp, erase, purge

_PROOF: dict[str, Any] = {
    "type": "erasure_proved",
    "request_id": "r1",
    "timestamp": "2026-01-05T09:00:09Z",
    "scope": "user",
    "subject": "0" * 64,
    "by": "local",
    "requested_at": "2026-01-05T09:00:00Z",
    "sessions": 1,
    "complete": False,
}


def served(answers: dict[tuple[str, str], Any], asked: list[tuple[str, str]]) -> httpx.AsyncClient:
    """Answers by method and path; anything else is 404."""

    def answer(request: httpx.Request) -> httpx.Response:
        place = (request.method, request.url.raw_path.decode())
        asked.append(place)
        return httpx.Response(200, json=answers[place]) if place in answers else httpx.Response(404)

    return httpx.AsyncClient(base_url="http://index", transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("deleted", "left", "problems"),
    [(2, 0, []), (0, 0, ["had no memory to purge"]), (2, 1, ["a purged memory was read again"])],
)
async def test_a_purge_is_read_at_once(deleted: int, left: int, problems: list[str]) -> None:
    """Deleted, then read; app ids are quoted."""
    place, asked = "/apps/shop%2Feu/memories", list[tuple[str, str]]()
    answers = {("DELETE", place): {"success": True, "deletedCount": deleted}, ("GET", place): {"memories": [{}] * left}}
    purged = await purge("shop/eu", served(answers, asked))

    assert asked == [("DELETE", place), ("GET", place)]
    assert (purged.deleted, purged.left, purged.problems) == (deleted, left, problems)


@pytest.mark.parametrize(
    ("stores", "problems"),
    [
        ([{"store": "vectors turns", "looked_at": 9, "removed": 2, "remaining": 0}], []),
        ([{"store": "t", "looked_at": 9, "removed": 0, "remaining": 2, "expires_at": "2026-02-04T09:00:00Z"}], []),
        (
            [{"store": "vectors turns", "looked_at": 9, "removed": 0, "remaining": 2}],
            ["vectors turns still holds what was erased"],
        ),
    ],
)
async def test_an_erasure_waits_for_its_proof(stores: list[dict[str, Any]], problems: list[str]) -> None:
    """What remains and does not expire is a problem."""
    answers = {
        ("POST", "/v1/erase"): {"request_id": "r1", "scope": "user", "status": "/v1/erase/r1"},
        ("GET", "/v1/erase/r1"): {"request_id": "r1", "proved": True, "proof": {**_PROOF, "stores": stores}},
    }
    erased = await erase("a", "u", served(answers, []))

    assert erased.proof
    assert (erased.proof.request_id, len(erased.proof.stores), erased.problems) == ("r1", 1, problems)


async def test_a_request_that_fails_is_a_problem() -> None:
    """Of the summary, not an error of the demo."""
    assert await purge("a", served({}, [])) == PurgedApp(app_id="a", problems=["/apps/a/memories answered 404"])
    assert await erase("a", "u", served({}, [])) == Erased(user_id="u", problems=["/v1/erase answered 404"])
