"""A date, a sum or a place said later counts: in project, app and user memory; and what is kept of relatives."""

from pathlib import Path

import pytest

from models.app.composing import compose
from models.events import ConversationEnded, ProjectSessionErased, Role
from models.language.contradiction import is_revision
from models.policy.app import AppPolicy
from streams.embedded.project_session import MemorySystem
from tests.support.app_driver import Space
from tests.support.data_files import data_file
from tests.support.project_driver import Project
from tests.support.session_driver import Session
from tests.support.user_driver import User, causes

LATER = data_file("stale_values")["later_values"]
BOTH = data_file("stale_values")["beside_each_other"]


def told(*said: str, project: Project | None = None) -> Project:
    """A project in which a user said this in one conversation."""
    project = project or Project()
    for content in said:
        project.say(content, role=Role.USER)
    return project


def holding(project: Project) -> set[str]:
    """Contents of its memories that hold."""
    return {each.content for each in project.items("memory").values() if each.valid_until is None}


@pytest.mark.parametrize(("earlier", "later", "holds"), LATER)
def test_a_projects_memory_says_the_later_value(earlier: str, later: str, holds: str) -> None:
    """Whichever type says it and however; what it was before is kept as what held before."""
    by_content = {each.content: each for each in told(earlier, "We need snacks.", later).items("memory").values()}
    old, new = by_content[earlier.rstrip(".")], by_content[holds]

    assert (old.valid_until, old.closed_by) == (new.valid_from, new.id)
    assert new.valid_until is None


@pytest.mark.parametrize(("one", "other"), BOTH)
def test_values_of_other_matters_stand_beside_each_other(one: str, other: str) -> None:
    """Another matter, the same value in other words, another kind."""
    assert one.rstrip(".") in holding(told(one, other))


@pytest.mark.parametrize(("said", "bare"), data_file("stale_values")["bare"])
def test_only_a_bare_value_is_a_correction_of_another(said: str, bare: bool) -> None:
    """A sentence with a matter of its own corrects nothing but that."""
    assert is_revision(said) is bare


def test_a_correction_refers_to_the_last_value_of_its_kind() -> None:
    """Between the date and its correction a sum was named; another conversation's date is not meant."""
    project = told("The launch is on February 28.", "The budget is 40,000 euros.")
    project.say("The review is on March 3.", "other")
    told("Change of plan: February 14 instead. We use Redis for caching.", project=project)

    assert holding(project) == {
        "The review is on March 3",
        "The launch is on February 14",
        "The budget is 40,000 euros",
        "We use Redis for caching",
    }


def test_what_a_value_closed_holds_again_when_it_is_forgotten() -> None:
    """Of any type: the fact was closed by a decision of another session, which is erased."""
    project = told("The launch is on February 28.")
    project.say("We moved the launch to 14 February.", "s1")
    assert holding(project) == {"We moved the launch to 14 February"}
    project.do(ProjectSessionErased, session_ids=["s1"], request_id="e")

    assert holding(project) == {"The launch is on February 28"}


@pytest.mark.parametrize(
    ("question", "said"), [("Which payment provider?", "We go with Stripe."), ("When do we launch?", LATER[0][2])]
)
def test_a_memory_is_found_by_its_subject(tmp_path: Path, question: str, said: str) -> None:
    """Though it has no other word of the question."""
    memory = MemorySystem(tmp_path, "Project")
    memory.start_conversation()
    for content in (said, "The attic stays as it is.", "We need to buy chairs."):
        memory.add_message("user", content)

    assert memory.search(question)[0].text == said.rstrip(".")
    assert said.rstrip(".") in memory.build_context(question).allocation.text


def composed(*said: str) -> str:
    """The memory of an app that a conversation leaves."""
    session = Session()
    for number, content in enumerate(said):
        session.say(number, content)
    session.end()
    (event,) = (output for output in session.outputs if isinstance(output, ConversationEnded))
    draft = compose(event, AppPolicy())
    return "" if draft is None else draft.content


@pytest.mark.parametrize(("earlier", "later", "holds"), LATER[:6])
def test_an_apps_memory_tells_the_later_value(earlier: str, later: str, holds: str) -> None:
    """The earlier one is in none of its sentences."""
    told = composed(earlier, "I prefer tea.", later)
    value = earlier.removesuffix(".").rpartition(" on ")[2].rpartition(" is ")[2]

    assert value not in told
    assert holds.rpartition(" on ")[2].rpartition(" is ")[2].removeprefix("now ") in told


def test_a_users_earlier_memories_lose_the_value_that_is_another_one_now() -> None:
    """In the same space, of the same user; what else they tell stays, others' and pinned memories too."""
    space = Space()
    space.end(said="The launch is on February 28.", user_id="bo")
    space.end(said="The launch is on February 28.", user_id="anna")
    space.end(said="The launch moved to February 14.", user_id="anna")

    assert {(each.user_id, each.content) for each in space.active.values()} == {
        ("bo", "The launch is on February 28."),
        ("anna", "The launch moved to February 14."),
    }


def test_a_place_that_is_denied_ends_wherever_it_stands() -> None:
    """Also as the home town that "I'm from Hamburg" was taken for; the move is one change with a history."""
    user = User()
    user.say("I'm from Hamburg")
    user.say("I live in Hamburg")
    user.say("we live in Leipzig now, not Hamburg")

    assert causes(user.changes)[2:] == [("hometown", "Hamburg", "retracted"), ("location", "Leipzig", "updated")]
    assert user.profile == {"location": "Leipzig"}
    assert [past.value for past in user.changes[-1].history] == ["Hamburg"]
