"""Summaries of a project's chunks and episodes by a language model: what it is told, and what its answers come to."""

from typing import Any

import pytest
from msgspec import structs

from models.events import ProjectItemChanged, ProjectOutput, ProjectSummarised, ProjectSummaryRequested, Role
from models.project.view import ProjectView
from models.retrieval.relevance import RetrievalFilters, RetrievalQuery
from tests.support.project_driver import Project, causes

SHORT = {"recent_messages": 4, "chunk_messages": 2}
DECIDED = "We decided to use PostgreSQL for the orders, because it is fast."


def asking(**short: Any) -> Project:
    """A project that asks."""
    return Project(ask=True, short_term=SHORT | short)


def talk(project: Project, turns: int) -> None:
    """Small talk."""
    for n in range(turns):
        project.say(f"Is the harbour {n} far away?")


def asked(project: Project, kind: str) -> list[ProjectSummaryRequested]:
    """What was asked for of a kind."""
    return [each for each in project.of(ProjectSummaryRequested) if each.kind == kind]


def answer(project: Project, request: ProjectSummaryRequested, **more: Any) -> list[ProjectOutput]:
    """A model's answer comes."""
    names = ("session_id", "kind", "item_id", "first_turn", "last_turn")
    said: dict[str, Any] = {"summary": "Of xebecs.", "summarised_by": "llm", "key_topics": ["xebecs"]}
    said |= {name: getattr(request, name) for name in names} | {"asked_offset": request.source.offset} | more
    return project.put(ProjectSummarised(timestamp=project.now, **(said | project.ids)))


@pytest.mark.behaviour("project-03")
def test_a_model_is_told_what_a_new_chunk_holds_and_its_words_are_found() -> None:
    """In the place of the rules' summary, with its topics; nothing is asked where no model is configured."""
    project, silent = asking(), Project(short_term=SHORT)
    for each in (project, silent):
        talk(each, 5)
    (request,) = asked(project, "chunk")
    outputs = answer(project, request)
    (chunk,) = project.items("chunk").values()
    view = ProjectView("shop", "web", project.policy.projects)
    for event in project.told.values():
        view.apply(event)
    query = RetrievalQuery(text="xebecs", filters=RetrievalFilters(include_chunks=True))

    assert [] == silent.of(ProjectSummaryRequested)
    assert {"extractive"} == {each.summarised_by for each in silent.items("chunk").values()}
    assert [("user", "Is the harbour 0 far away?"), ("assistant", "Is the harbour 1 far away?")] == [
        (turn.role, turn.content) for turn in request.turns
    ]
    assert [(chunk.id, "summarised")] == causes(outputs, "chunk")
    assert ("Of xebecs.", "llm", ["xebecs"], 3) == (
        chunk.summary, chunk.summarised_by, chunk.key_topics, chunk.summary_tokens
    )  # fmt: skip
    assert chunk.id in [found.id for found in view.retrieve(query, project.now)]


@pytest.mark.behaviour("project-08")
def test_a_model_tells_an_episode_anew() -> None:
    """It knows which moment it is, and what was said before it; title and outcome stay the rules'."""
    project = asking()
    project.say("Which database shall it be?")
    project.say(DECIDED, role=Role.USER)
    (request,) = asked(project, "episode")
    before = project.items("episode")[request.item_id]
    outputs = answer(project, request)
    episode = project.items("episode")[request.item_id]

    assert (before.summary, 2, "extractive") == (request.summary, len(request.turns), before.summarised_by)
    assert [(episode.id, "summarised")] == causes(outputs, "episode")
    told = structs.replace(before, summary="Of xebecs.", summarised_by="llm", tokens=episode.tokens)
    assert told == episode
    assert episode.tokens < before.tokens


def test_long_messages_are_cut_alike() -> None:
    """Together they take no more than the policy's tokens, whoever said more."""
    project = Project(ask=True, asked_tokens=100, short_term=SHORT)
    for n in range(5):
        project.say(f"{n} " + "far away " * 200)
    (request,) = asked(project, "chunk")

    assert [200, 200] == [len(turn.content) for turn in request.turns]


@pytest.mark.parametrize(
    "stale", [{"last_turn": 9}, {"item_id": "aaaaaaaa-bbbbbbbb"}, {"session_id": "s9"}, {"kind": "episode"}]
)
def test_an_answer_for_something_else_changes_nothing(stale: dict[str, Any]) -> None:
    """What is not there, or is not the same any longer."""
    project = asking()
    talk(project, 5)
    outputs = answer(project, asked(project, "chunk")[0], **stale)

    assert [] == [each for each in outputs if isinstance(each, ProjectItemChanged)]


def test_a_chunk_that_merged_meanwhile_keeps_its_summary() -> None:
    """The answer was for its first half; one that comes before the merge is joined like any other."""
    late, early = asking(max_chunks=2), asking(max_chunks=2)
    talk(early, 5)
    answer(early, asked(early, "chunk")[0])
    talk(early, 4)
    talk(late, 9)
    answer(late, asked(late, "chunk")[0])
    (first, *_), (told, *_) = (
        sorted(each.items("chunk").values(), key=lambda chunk: chunk.first_number) for each in (late, early)
    )

    assert ("extractive", True) == (first.summarised_by, first.summary.startswith("Earlier: Is the harbour"))
    assert told.summary.startswith("Earlier: Of xebecs.\n\nThen: Is the harbour")


def test_a_grown_episode_is_asked_for_again() -> None:
    """The answer for what it was is late; that for what it is counts, also after a restart."""
    project = Project(ask=True, stores=True)
    project.say(DECIDED, role=Role.USER)
    project.say("We decided to use Kafka for the events, because it scales.", role=Role.USER)
    first, *_, last = asked(project, "episode")
    answer(project, first, summary="Of one.")
    (episode,) = project.items("episode").values()

    assert (first.item_id, 0, 1) == (last.item_id, first.last_turn, last.last_turn)
    assert "extractive" == episode.summarised_by

    answer(project, last)

    assert ["Of xebecs."] == [each.summary for each in project.items("episode").values()]
