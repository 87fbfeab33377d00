"""Requests of the demo to the index role: its answers over the real routes and stores, and their problems."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from qdrant_client import AsyncQdrantClient

from jobs.demo.asking import Erased, PurgedApp, ask_project_memory, ask_user_memory, erase, purge
from jobs.demo.questions import DemoQuestion, ProjectQuestions, ProjectRecalled, Recalled, load_questions, wrong_project
from jobs.demo.stage import told
from models.events import (
    EpisodeCompressed,
    ErasureProved,
    FactChanged,
    OutputEvent,
    ProjectChanged,
    ProjectItemChanged,
    Role,
    Turn,
)
from models.policy.project import ProjectPolicy
from models.project.fold import FoldedProject
from models.project.view import ProjectView
from streams.api.assembly import memory_api
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.settings.http import HttpSettings
from tests.support.api_doubles import Served
from tests.support.blank_events import blank
from tests.support.demo_outputs import DEMO_POLICY, outputs_of_the_play
from tests.support.http_api import api_of, client_of
from tests.support.loaded import loaded_embedder

_URL = "http://127.0.0.1"
_USERS, _PROJECT = load_questions().users, load_questions().project
_SAID = [
    Turn(
        session_id="database",
        user_id="alex",
        app_id="assistant",
        turn=number,
        role=Role.USER,
        content=content,
        timestamp=datetime(2026, 1, 5, 9, 0, tzinfo=UTC),
    )
    for number, content in enumerate(("We talked of databases that hold vectors.", "I like hiking."))
]
_NAME = (_PROJECT.app_id, _PROJECT.project_id)


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


async def of_users(outputs: tuple[OutputEvent, ...], questions: list[DemoQuestion]) -> list[Recalled]:
    """What the index role answers once it has indexed these events."""
    store = ServerStore(AsyncQdrantClient(":memory:"), embedder=loaded_embedder().name)
    try:
        vectors = loaded_embedder().embed([turn.content for turn in _SAID])
        await SessionVectorMemory(store, loaded_embedder()).add_turns(_SAID, vectors)
        users = UserMemory(store, loaded_embedder())
        numbered = [(event, offset) for offset, event in enumerate(outputs)]
        await users.add_episodes([(e, offset) for e, offset in numbered if isinstance(e, EpisodeCompressed)])
        await users.add_facts([(e, offset) for e, offset in numbered if isinstance(e, FactChanged)])
        http = HttpSettings(mcp=False)
        served = memory_api(store, loaded_embedder(), DEMO_POLICY, http, topic_prefix="demo")
        async with client_of(api_of(served.routes, http=http)) as client:
            return [await ask_user_memory(question, client) for question in questions]
    finally:
        await store.close()


async def test_the_best_turn_says_why_it_is_on_top() -> None:
    """By the largest terms of its score, as the demo prints them."""
    (databases,) = await of_users((), _USERS[1:])
    reasons = [f"{name} {given:+.2f}" for name, given in databases.because.items()]

    assert len(reasons) == 3
    assert min(databases.because.values()) > 0
    assert told(databases)[-1] == f"best turn: {_SAID[0].content}, on top by {', '.join(reasons)}"


async def test_another_apps_user_of_the_same_id_is_asked_in_vain() -> None:
    """The demo names the app, so its verdict would notice if that were left out of the look-up."""
    elsewhere = [replace(question, app_id="planner") for question in _USERS]
    found = await of_users(outputs_of_the_play(), elsewhere)

    assert [each.facts for each in found] == [{}, {}]
    assert found[0].problems[0] == "identity/name should be Alexander, memory says nothing"
    assert found[1].problems == ["the nearest episode should be turns 1-20, memory finds none"]


async def test_facts_that_were_not_kept_up_are_named() -> None:
    """An index that missed the last changes answers with the old name and the diet that was taken back."""
    outputs = outputs_of_the_play()
    updated = [e for e in outputs if isinstance(e, FactChanged) and (e.cause, e.key) == ("updated", "name")]
    stale = outputs[: outputs.index(updated[0])]
    name, _ = await of_users(stale, _USERS)

    assert "identity/name should be Alexander, memory says Alex" in name.problems
    assert "constraint/diet was taken back, memory still says vegetarian" in name.problems


@pytest.fixture
def view() -> ProjectView:
    """The project at the end of the play."""
    project = ProjectView(*_NAME, ProjectPolicy())
    for event in outputs_of_the_play():
        if isinstance(event, ProjectItemChanged | ProjectChanged) and event.project_id == project.project_id:
            project.apply(event)
    return project


async def of_project(view: ProjectView, questions: ProjectQuestions = _PROJECT) -> ProjectRecalled:
    """What the index role answers that has this project."""
    served = Served()
    folded = FoldedProject(*_NAME, DEMO_POLICY)
    folded.view = view
    served.projects.folded[_NAME] = folded
    try:
        async with served.client() as client:
            return await ask_project_memory(questions, client)
    finally:
        await served.close()


async def test_another_apps_project_of_the_same_id_is_asked_in_vain(view: ProjectView) -> None:
    """The demo names the app, so its verdict would notice if that were left out of the look-up."""
    recalled = await of_project(view, replace(_PROJECT, app_id="planner"))

    assert recalled.problems == ["/v1/projects/tool-library/conversations/tool-library answered 404"]


async def test_everything_that_is_missing_is_named(view: ProjectView) -> None:
    """A verdict for each thing that the demo promises of a project."""
    right = await of_project(view)
    wrong = replace(
        right,
        chunks=22,
        memories={"fact": 3},
        superseded=1,
        key_moments=[],
        answers=[replace(each, said="") for each in right.answers],
    )

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
