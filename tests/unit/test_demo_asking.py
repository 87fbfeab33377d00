"""Requests of the demo to the index role, and what it finds wrong with the answers."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec import to_builtins

from jobs.demo.asking import Erased, PurgedApp, ask_project_memory, ask_user_memory, erase, purge
from jobs.demo.questions import ProjectAnswer, ProjectRecalled, Recalled, load_questions, wrong_answers, wrong_project
from jobs.demo.stage import told
from models.events import ErasureProved
from tests.support.blank_events import blank

_URL = "http://127.0.0.1"
_USERS, _PROJECT = load_questions().users, load_questions().project


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    """A client of a role that answers so."""
    return httpx.AsyncClient(base_url=_URL, transport=httpx.MockTransport(answer))


def served(answers: dict[tuple[str, str], Any], asked: list[tuple[str, str]]) -> httpx.AsyncClient:
    """Answers by method and path; anything else is 404."""

    def answer(request: httpx.Request) -> httpx.Response:
        place = (request.method, request.url.raw_path.decode())
        asked.append(place)
        return httpx.Response(200, json=answers[place]) if place in answers else httpx.Response(404)

    return answering(answer)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (httpx.Response(503), " answered 503"),
        (httpx.ConnectError("refused"), " failed: ConnectError"),
        (httpx.Response(200, content=b"[]"), "something else was answered: "),
    ],
)
async def test_a_request_that_fails_is_a_problem(response: httpx.Response | Exception, problem: str) -> None:
    """Whatever is asked; the demo goes on to its verdict, which fails."""

    def respond(_request: httpx.Request) -> httpx.Response:
        if isinstance(response, Exception):
            raise response
        return response

    async with answering(respond) as client:
        answers: list[Recalled | ProjectRecalled | PurgedApp | Erased] = [
            await ask_user_memory(_USERS[0], client),
            await ask_project_memory(_PROJECT, client),
            await purge("a", client),
            await erase("a", "u", client),
        ]

    assert [1] * 4 == [len(answer.problems) for answer in answers]
    assert all(problem in answer.problems[0] for answer in answers)


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
    proof = to_builtins(blank(ErasureProved, request_id="r1", scope="user")) | {"stores": stores}
    answers = {
        ("POST", "/v1/erase"): {"request_id": "r1", "scope": "user", "status": "/v1/erase/r1"},
        ("GET", "/v1/erase/r1"): {"request_id": "r1", "proved": True, "proof": proof},
    }
    erased = await erase("a", "u", served(answers, []))

    assert erased.proof
    assert (erased.proof.request_id, len(erased.proof.stores), erased.problems) == ("r1", 1, problems)


async def test_what_was_not_answered_is_not_told_as_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine under load: the request is taken and never proved. Nothing is proved after 0 s, deleted or read."""
    monkeypatch.setattr("jobs.demo.asking._PROOF_WITHIN_S", 0.05)
    monkeypatch.setattr("jobs.demo.asking._LOOK_AGAIN_S", 0.01)
    answers = {
        ("POST", "/v1/erase"): {"request_id": "r1", "scope": "user", "status": "/v1/erase/r1"},
        ("GET", "/v1/erase/r1"): {"request_id": "r1", "proved": False, "proof": None},
    }
    erased = await erase("a", "u", served(answers, []))
    refused = await erase("a", "u", served({}, []))
    purged = await purge("a", served({}, []))
    recalled = await ask_user_memory(_USERS[0], served({}, []))
    project = await ask_project_memory(_PROJECT, served({}, []))

    assert told(erased) == [
        f"taken as request r1, not proved after {erased.seconds:g} s; logs/archive.log says how far it came"
    ]
    assert erased.problems == ["no proof of the erasure within 0.05 s"]
    assert told(refused) == [f"not taken, after {refused.seconds:g} s"]
    assert (told(purged), told(project)) == (["no answer"], ["no answer"])
    assert told(recalled)[0].endswith("(no answer)")


def test_the_best_turn_says_why_it_is_on_top() -> None:
    """By the largest terms of its score, as the demo prints them."""
    because = {"carried": 0.5, "similarity": 0.25}
    recalled = Recalled(app_id="a", user_id="u", query="?", turn="We talked of databases.", because=because)

    assert told(recalled)[-1] == "best turn: We talked of databases., on top by carried +0.50, similarity +0.25"


def test_everything_that_is_wrong_of_a_user_is_named() -> None:
    """An index that missed the last changes answers with the old name and the diet that was taken back."""
    name, databases = _USERS
    stale = {"identity/name": "Alex", "constraint/diet": "vegetarian"}

    assert {
        "identity/name should be Alexander, memory says Alex",
        "constraint/diet was taken back, memory still says vegetarian",
    } <= {*wrong_answers(name, stale, "none")}
    assert [*wrong_answers(databases, {}, "none")] == ["the nearest episode should be turns 1-20, memory finds none"]


def test_everything_that_is_missing_of_a_project_is_named() -> None:
    """A verdict for each thing that the demo promises."""
    answers = [ProjectAnswer(query=_PROJECT.query, said="", milliseconds=1.0)]
    for pivot in _PROJECT.pivots:
        for when in ("before", "after"):
            as_of = f"{when} turn {pivot.turn}"
            answers.append(ProjectAnswer(query=pivot.query, said="", when=as_of, milliseconds=1.0))
    wrong = ProjectRecalled(app_id="a", project_id="p", chunks=22, memories={"fact": 3}, superseded=1, answers=answers)

    assert [*wrong_project(_PROJECT, wrong)] == [
        "has 22 chunks, not 23 to 25",
        "has memories of 1 types, not of 4",
        "has 1 memories that superseded another, not 2",
        "has an arc without key moments",
        "What was our database decision? should say PostgreSQL, memory says nothing",
        "Which frontend did we choose? before turn 100 should say React for the frontend, memory says nothing",
        "Which frontend did we choose? after turn 100 should say from React to HTMX, memory says nothing",
        "Where do we deploy? before turn 148 should say Kubernetes in Frankfurt, memory says nothing",
        "Where do we deploy? after turn 148 should say a single server with Docker Compose, memory says nothing",
    ]
