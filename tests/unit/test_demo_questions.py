"""What the demo asks memory, over the real routes and the real store, and what it makes of wrong answers."""

from __future__ import annotations

import json

import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry
from qdrant_client import AsyncQdrantClient

from jobs.demo.asking import ask_user_memory
from jobs.demo.questions import DemoQuestion, Recalled, load_questions
from models.events import EpisodeCompressed, FactChanged, OutputEvent
from streams.api.assembly import memory_api
from streams.http.health import create_api
from streams.http.security import access_of
from streams.index.server import ServerStore
from streams.index.user_memory import UserMemory
from streams.settings.http import HttpSettings
from tests.support.demo_outputs import DEMO_POLICY, embedder, outputs_of_the_play

_URL = "http://127.0.0.1"
_QUESTIONS = load_questions().users


async def answers(outputs: tuple[OutputEvent, ...], questions: list[DemoQuestion]) -> list[Recalled]:
    """What the index role answers once it has indexed these events."""
    store = ServerStore(AsyncQdrantClient(":memory:"), embedder=embedder().name)
    try:
        users = UserMemory(store, embedder())
        numbered = [(event, offset) for offset, event in enumerate(outputs)]
        await users.add_episodes([(e, offset) for e, offset in numbered if isinstance(e, EpisodeCompressed)])
        await users.add_facts([(e, offset) for e, offset in numbered if isinstance(e, FactChanged)])
        http = HttpSettings(mcp=False)
        served = memory_api(store, embedder(), DEMO_POLICY, http, topic_prefix="demo")
        app = create_api(
            ready=lambda: (True, "ready"),
            registry=CollectorRegistry(),
            routes=served.routes,
            access=access_of(http),
        )
        async with httpx.AsyncClient(base_url=_URL, transport=httpx.ASGITransport(app)) as client:
            return [await ask_user_memory(question, client) for question in questions]
    finally:
        await store.close()


async def answer_to(response: httpx.Response | Exception) -> Recalled:
    """What the demo makes of a response to its first question."""

    def respond(_request: httpx.Request) -> httpx.Response:
        if isinstance(response, Exception):
            raise response
        return response

    async with httpx.AsyncClient(base_url=_URL, transport=httpx.MockTransport(respond)) as client:
        return await ask_user_memory(_QUESTIONS[0], client)


async def test_memory_answers_what_the_play_taught_it() -> None:
    """Three sessions of one user: the corrected name, the new town, nothing of the diet, and the right episode."""
    by_query = {each.query: each for each in await answers(outputs_of_the_play(), _QUESTIONS)}

    assert [problem for each in by_query.values() for problem in each.problems] == []
    name, databases = by_query["What's my name?"], by_query["What did we discuss about databases?"]
    assert next(iter(name.facts.items())) == ("identity/name", "Alexander")
    assert "- name: Alexander" in name.injection.splitlines()
    assert databases.nearest_episode
    assert databases.nearest_episode.turn_range == "turns 1-20"


async def test_another_apps_user_of_the_same_id_is_asked_in_vain() -> None:
    """The demo names the app, so its verdict would notice if that were left out of the look-up."""
    elsewhere = [msgspec.structs.replace(question, app_id="planner") for question in _QUESTIONS]
    found = await answers(outputs_of_the_play(), elsewhere)

    assert [each.facts for each in found] == [{}, {}]
    assert found[0].problems[0] == "identity/name should be Alexander, memory says nothing"
    assert found[1].problems == ["the nearest episode should be turns 1-20, memory finds none"]


async def test_facts_that_were_not_kept_up_are_named() -> None:
    """An index that missed the last changes answers with the old name and the diet that was taken back."""
    outputs = outputs_of_the_play()
    updated = [e for e in outputs if isinstance(e, FactChanged) and (e.cause, e.key) == ("updated", "name")]
    stale = outputs[: outputs.index(updated[0])]
    name, _ = await answers(stale, _QUESTIONS)

    assert "identity/name should be Alexander, memory says Alex" in name.problems
    assert "constraint/diet was taken back, memory still says vegetarian" in name.problems


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (httpx.Response(404), "/v1/retrieve answered 404"),
        (httpx.ConnectError("refused"), "/v1/retrieve failed: ConnectError"),
        (httpx.Response(200, content=b"{}"), "something else was answered"),
    ],
)
async def test_a_failed_request_is_an_answer_with_a_problem(response: httpx.Response | Exception, problem: str) -> None:
    """The demo goes on to its verdict, which fails."""
    recalled = await answer_to(response)

    assert (recalled.query, recalled.facts, len(recalled.problems)) == ("What's my name?", {}, 1)
    assert recalled.problems[0].startswith(problem)


async def test_the_request_is_the_documented_one() -> None:
    """User, app, question and format; a field that the route does not know would be refused."""
    asked: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(503)

    async with httpx.AsyncClient(base_url=_URL, transport=httpx.MockTransport(respond)) as client:
        await ask_user_memory(_QUESTIONS[0], client)

    assert (asked[0].method, asked[0].url.path) == ("POST", "/v1/retrieve")
    assert json.loads(asked[0].content) == {
        "app_id": "assistant",
        "user_id": "alex",
        "query": "What's my name?",
        "format": True,
    }
