"""What the sessions role sends to projects: counted turns, and how their conversation ended."""

from __future__ import annotations

from models.events import OutputEvent, ProjectConversationEnded, ProjectTurnAdded, Role, SessionErased
from models.policy import Policy
from models.policy.project import ProjectPolicy
from models.wire.arrival import SessionTimedOut
from tests.support.session_driver import NOON, Session


def sent(session: Session) -> tuple[list[ProjectTurnAdded], list[ProjectConversationEnded]]:
    """Turns and ends that went to projects."""
    outputs: list[OutputEvent] = session.outputs
    turns = [event for event in outputs if isinstance(event, ProjectTurnAdded)]
    return turns, [event for event in outputs if isinstance(event, ProjectConversationEnded)]


def test_turns_with_a_project_are_forwarded() -> None:
    """Of users and assistants, once each; without a project nothing is sent, not at the end either."""
    session, other = Session(), Session()
    session.say(0, project_id="web")
    session.say(1, project_id="web", role=Role.SYSTEM)
    session.say(2, project_id="web", role=Role.ASSISTANT)
    session.say(2, project_id="web")
    other.say(0)
    other.end()

    assert [(0, "web"), (2, "web")] == [(event.turn, event.project_id) for event in sent(session)[0]]
    assert ([], []) == sent(other)


def test_every_project_of_a_session_is_told_of_its_end() -> None:
    """Each once, as many as the policy names; also after the state was stored in between."""
    session = Session(Policy(projects=ProjectPolicy(projects_of_session=2)))
    for turn, project in enumerate(("web", "app", "web", "third")):
        session.say(turn, project_id=project)
        session.store()
    session.end()

    assert [("web", "ended", "bye"), ("app", "ended", "bye")] == [
        (event.project_id, event.status, event.reason) for event in sent(session)[1]
    ]


def test_a_time_out_pauses_and_an_erased_session_tells_nobody_of_its_end() -> None:
    """Nobody said that the one ended; what erases the other tells the project too."""
    silent, erased = Session(), Session()
    for session in (silent, erased):
        session.say(0, project_id="web")
    silent.put(SessionTimedOut("s", silent.deadline))
    erased.put(SessionErased(session_id="s", timestamp=NOON, request_id="e"))
    erased.end()

    assert ["paused"] == [event.status for event in sent(silent)[1]]
    assert [] == sent(erased)[1]


def test_projects_that_are_switched_off_hear_nothing() -> None:
    """Neither turns nor ends."""
    session = Session(Policy(projects=ProjectPolicy(enabled=False)))
    session.say(0, project_id="web")
    session.end()

    assert ([], []) == sent(session)
