"""The project in the demo: what memory answers over the real routes, and how it is told, judged and drawn."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from jobs.demo.asking import ask_project_memory
from jobs.demo.questions import ProjectQuestions, ProjectRecalled, load_questions, wrong_project
from models.events import ProjectChanged, ProjectItemChanged
from models.policy.project import ProjectPolicy
from models.project.fold import FoldedProject
from models.project.view import ProjectView
from tests.support.api_doubles import Served
from tests.support.demo_outputs import (
    DEMO_POLICY,
    outputs_of_the_play,
)

_QUESTIONS = load_questions().project
_NAME = (_QUESTIONS.app_id, _QUESTIONS.project_id)


@pytest.fixture
def view() -> ProjectView:
    """The project at the end of the play."""
    project = ProjectView(*_NAME, ProjectPolicy())
    for event in outputs_of_the_play():
        if isinstance(event, ProjectItemChanged | ProjectChanged) and event.project_id == project.project_id:
            project.apply(event)
    return project


async def answers(view: ProjectView, questions: ProjectQuestions = _QUESTIONS) -> ProjectRecalled:
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


async def test_its_memory_answers_as_it_should(view: ProjectView) -> None:
    """The database decision now; each pivot's decision as it held before, and after: over the real routes."""
    recalled = await answers(view)

    assert recalled.problems == []
    assert "PostgreSQL" in recalled.answers[0].said
    assert [each.when for each in recalled.answers[1:]] == [
        f"{when} turn {turn}" for turn in (100, 148) for when in ("before", "after")
    ]
    assert len({each.said for each in recalled.answers}) == 5


async def test_another_apps_project_of_the_same_id_is_asked_in_vain(view: ProjectView) -> None:
    """The demo names the app, so its verdict would notice if that were left out of the look-up."""
    recalled = await answers(view, msgspec.structs.replace(_QUESTIONS, app_id="planner"))

    assert recalled.problems == ["/v1/projects/tool-library/conversations/tool-library answered 404"]


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (httpx.Response(503), "answered 503"),
        (httpx.ConnectError("refused"), "failed: ConnectError"),
        (httpx.Response(200, content=b"[]"), "something else was answered: "),
    ],
)
async def test_a_failing_role_is_a_problem(response: httpx.Response | Exception, problem: str) -> None:
    """And no traceback at the end of a demo."""

    def respond(_request: httpx.Request) -> httpx.Response:
        if isinstance(response, Exception):
            raise response
        return response

    async with httpx.AsyncClient(base_url="http://127.0.0.1", transport=httpx.MockTransport(respond)) as client:
        recalled = await ask_project_memory(_QUESTIONS, client)

    (said,) = recalled.problems
    assert problem in said


async def test_everything_that_is_missing_is_named(view: ProjectView) -> None:
    """A verdict for each thing that the demo promises of a project."""
    right = await answers(view)
    wrong = msgspec.structs.replace(
        right,
        chunks=22,
        memories={"fact": 3},
        superseded=1,
        key_moments=[],
        answers=[msgspec.structs.replace(each, said="") for each in right.answers],
    )

    assert [*wrong_project(_QUESTIONS, wrong)] == [
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
