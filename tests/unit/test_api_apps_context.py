"""Memories of apps in `/v1/context` (app memory, Context Integration): where they stand, whose they are, and when."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from models.policy.app import AppPolicy
from streams.api.apps.context import AppContext
from streams.api.users.messages import AssembleContext
from tests.support.api_apps import AT, Apps, memory, space
from tests.support.api_doubles import Served, counted, fact

POINTS = ["unanswered_conversation", "conversation_review", "conversation_selection"]
TEXT = """\
(memories for app: a)
The following are memories from previous conversations with this app:

1. [Created: 2025-10-10] User prefers calls before noon.
2. [Created: 2025-10-10] User prefers calls after 2pm.
3. [Created: 2025-10-10] Orders have eight digits.

Use these memories to provide context-aware responses."""


@pytest.fixture
def served(served: Served) -> Served:
    """Two memories of a user of app `a`, one that `b` shares with it, one of `b` alone, and one of all users of `a`."""
    served.users.known_facts.append(fact("name", "Alex"))
    served.apps.known += [
        memory(1, "User prefers calls after 2pm.", user="u"),
        memory(2, "User prefers calls before noon.", user="u", updated_at=AT + timedelta(days=1)),
        memory(5, "Orders have eight digits.", app="b", user="u", shared_with=["a"], updated_at=AT + timedelta(days=9)),
        memory(6, "Only for b.", app="b", user="u"),
        memory(7, "Of all users of a."),
    ]
    return served


async def context(client: httpx.AsyncClient, **body: Any) -> Any:
    """A prompt for a question."""
    answer = await client.post("/v1/context", json={"user_id": "u", "app_id": "a", "query": "when?", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.behaviour("app-13", "app-14")
@pytest.mark.parametrize("point", POINTS)
async def test_includes_memories_in_context_for_same_app(client: httpx.AsyncClient, point: str) -> None:
    """The scenario at each of its three points: the source's text first, what is shared after the app's own."""
    without = await context(client)
    found = await context(client, injection_point=point)

    assert (found["app_memories_text"], found["injection_point"]) == (TEXT, point)
    assert found["prompt"] == f"{TEXT}\n\n{without['prompt']}"
    assert found["tokens"] == -(-len(found["prompt"]) // 4)
    assert [(each["app_id"], each["memory_id"]) for each in found["app_memories"]] == [("a", 2), ("a", 1), ("b", 5)]
    assert found["left_out"]["app_memories"] == 0


async def test_what_the_question_asks_for_stays_first() -> None:
    """Of memories that do not all fit: those with the question's words, then important ones; in the stated order."""
    newest, weighty, asked = (
        memory(1, "User likes tea.", updated_at=AT + timedelta(days=2), importance=0.2),
        memory(2, "User lives in Oslo.", updated_at=AT + timedelta(days=1), importance=0.9),
        memory(3, "The deadline is May 9.", importance=0.1),
    )
    chooses = AppContext(Apps([newest, weighty, asked]), AppPolicy(most=2, most_pinned=0, spaces=("app",)))
    preface = await chooses.preface("a", "u", "Which deadlines are there?", 2_000)

    assert preface is not None
    assert [each.content for each in preface.memories] == [weighty.content, asked.content]
    assert preface.left_out == 1


@pytest.mark.behaviour("app-14")
@pytest.mark.parametrize(
    ("inject", "app", "said", "command", "wanted"),
    [
        (("a", "c"), "a", None, None, "a"),
        (("*",), "b", None, None, "b"),
        (("*",), None, None, None, None),
        (("a",), "b", None, None, None),
        (("a",), "a", False, None, None),
        (("a",), "a", None, False, None),
        ((), "a", None, True, "a"),
    ],
)
async def test_an_app_of_the_policy_asks_once(
    inject: tuple[str, ...], app: str | None, said: bool | None, command: bool | None, wanted: str | None
) -> None:
    """All its prompts begin with its memories, no other app's do; a request can decline, a command counts before."""
    apps = Apps(all_stats=[space("a", inject=command), space("a", "u", inject=not command)])
    body = AssembleContext(user_id="u", query="when?", app_memories=said)

    assert await AppContext(apps, AppPolicy(inject=inject)).wanted(body, app) == wanted


@pytest.mark.behaviour("app-23", "app-24")
async def test_prompts_with_and_without_are_counted() -> None:
    """The source's injection rate, and a line without text for each; a prompt that wants none is no part of it."""

    def counts() -> list[float]:
        return [counted("contexts_total", result=each) for each in ("with_memories", "without")]

    before = counts()
    chooses = AppContext(Apps([memory(1, "x", user="u")]))
    with capture_logs() as lines:
        for app in ("a", "nobody", None):
            await chooses.preface(app, "u", "", 2_000)

    assert [after - was for after, was in zip(counts(), before, strict=True)] == [1.0, 1.0]
    line = {"event": "app_memories_retrieved", "log_level": "debug"}
    assert lines == [line | {"app_id": "a", "memories": 1}, line | {"app_id": "nobody", "memories": 0}]
