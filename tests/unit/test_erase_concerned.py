"""Whom an erasure concerns, and which events tell the folds to forget."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.errors import ConfigurationError
from models.events import EraseRequested, SessionName, SpaceSessionErased, UserSessionErased
from streams.erase.concerned import (
    SESSIONS_AT_ONCE,
    Concerned,
    Project,
    Span,
    User,
    checked,
    of_sessions,
    of_users,
    remembered_in,
    spoke_in,
    subject_of,
)
from tests.support.lake_records import turn
from tests.unit.test_erasure_projects import BY_HAND, HERS, ITEM, THEIRS, memory

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = Span(NOW - timedelta(hours=1), NOW)
ANNA, BERT = User("shop", "anna"), User("shop", "bert")


def request(scope: Any, **names: str) -> EraseRequested:
    """A request by nobody in particular."""
    return EraseRequested(request_id="r-1", timestamp=NOW, scope=scope, **names)  # type: ignore[arg-type]


def told(wanted: EraseRequested, concerned: Concerned) -> set[tuple[str, ...]]:
    """Kind, app and user or project of what the memory role is told, and the sessions that it names."""
    return {
        (type(event).__name__, event.app_id, getattr(event, "project_id", "") or getattr(event, "user_id", ""))
        + ((event.session_id,) if isinstance(event, UserSessionErased) else (*getattr(event, "session_ids", ()),))
        for event in of_users(wanted, concerned, subject_of(wanted, concerned.sessions), NOW)
    }


def named(*ids: str, app_id: str = "shop") -> list[SessionName]:
    """Sessions of an app."""
    return [SessionName(app_id, each) for each in ids]


def spoken(*users: User, session_id: str = "s-1") -> Concerned:
    """One session in which these spoke."""
    return Concerned(sessions={SessionName("shop", session_id): dict.fromkeys(users, HOUR)})


_OF_SESSION = {("UserSessionErased", "shop", "anna", "s-1"), ("SpaceSessionErased", "shop", "anna", "s-1")}
_WHOLE = {("UserErased", "shop", "anna"), ("SpaceErased", "shop", "anna")}
_OF_APP = {("SpaceSessionErased", "shop", "", "s-1")}
_OF_BERT = {("UserSessionErased", "shop", "bert", "s-1"), ("SpaceSessionErased", "shop", "bert", "s-1")}


@pytest.mark.parametrize(
    ("wanted", "users", "expected"),
    [
        (request("user", user_id="anna"), [ANNA], _WHOLE | _OF_APP),
        (request("user", user_id="anna", app_id="shop"), [ANNA, BERT], _WHOLE | _OF_APP | _OF_BERT),
        (request("session", session_id="s-1"), [ANNA], _OF_SESSION | _OF_APP),
    ],
    ids=["user", "user beside another", "session"],
)
def test_who_goes_wholly_and_who_forgets_the_session(
    wanted: EraseRequested, users: list[User], expected: set[tuple[str, ...]]
) -> None:
    """Her own memory and space go; of the app's space, and of who talked with her, only what came of her sessions."""
    assert told(wanted, spoken(*users)) == expected


def test_an_app_goes_with_users_that_only_the_state_knows() -> None:
    """No log tells of Cleo any more, whose id holds a slash; another app's user stays."""
    concerned = spoken(ANNA)
    wanted = request("app", app_id="shop")
    concerned.known(["user:shop/cleo%2F1", "user:travel/anna", "app:shop"], subject_of(wanted, named("s-1")))

    assert told(wanted, concerned) == {
        ("UserErased", "shop", "anna"),
        ("UserErased", "shop", "cleo/1"),
        ("SpaceErased", "shop", ""),
        ("SpaceErased", "shop", "anna"),
        ("SpaceErased", "shop", "cleo/1"),
    }


@pytest.mark.parametrize(
    "wanted", [request("user", user_id="anna", app_id="shop"), request("app", app_id="shop")], ids=["user", "app"]
)
def test_of_whom_nothing_is_known_nothing_is_told(wanted: EraseRequested) -> None:
    """Else every further erasure would leave a trace for the next one to find."""
    assert told(wanted, Concerned()) == set()


def test_many_sessions_are_told_in_parts() -> None:
    """No event names more sessions than it may, and none is left out."""
    names = [f"s-{n}" for n in range(SESSIONS_AT_ONCE + 1)]
    concerned = Concerned(sessions={name: {ANNA: HOUR} for name in named(*names)})
    wanted = request("user", user_id="anna")
    parts = [
        event.session_ids
        for event in of_users(wanted, concerned, subject_of(wanted, named(*names)), NOW)
        if isinstance(event, SpaceSessionErased)
    ]

    assert [len(part) for part in parts] == [SESSIONS_AT_ONCE, 1]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert len(of_sessions(wanted, concerned, NOW)) == len(names)


def in_projects(*projects: Project) -> Concerned:
    """One session that these projects took something from, and one of which only the first did."""
    concerned = spoken(ANNA)
    for project in projects:
        concerned.remembered(project, "s-1")
    concerned.remembered(projects[0], "s-2")
    return concerned


def of_projects(found: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """What projects are told."""
    return {event for event in found if event[0].startswith("Project")}


WEB, SITE = Project("shop", "web/2"), Project("travel", "site")


@pytest.mark.parametrize("wanted", [request("user", user_id="anna"), request("session", session_id="s-1")])
def test_projects_forget_the_sessions_that_they_know(wanted: EraseRequested) -> None:
    """Each its own; a project is nobody's, so that it stays."""
    assert of_projects(told(wanted, in_projects(WEB, SITE))) == {
        ("ProjectSessionErased", "shop", "web/2", "s-1", "s-2"),
        ("ProjectSessionErased", "travel", "site", "s-1"),
    }


def test_projects_of_an_app_go_with_it() -> None:
    """Also one that only the state knows, by whichever of its entities; another app's forgets the sessions."""
    concerned, wanted = in_projects(WEB, SITE), request("app", app_id="shop")
    concerned.known(["project:shop/old%2F1/shelf/07", "project:travel/x"], subject_of(wanted, named("s-1", "s-2")))

    assert of_projects(told(wanted, concerned)) == {
        ("ProjectErased", "shop", "web/2"),
        ("ProjectErased", "shop", "old/1"),
        ("ProjectSessionErased", "travel", "site", "s-1"),
    }


def test_what_a_project_holds_tells_of_sessions_and_projects() -> None:
    """An import brings what no log has; what others said in the same memory is theirs."""
    said, subject = memory(THEIRS, HERS, BY_HAND), subject_of(request("user", user_id=HERS.user_id), [])
    known = subject_of(request("user", user_id=HERS.user_id), named(HERS.conversation_id, app_id=ITEM.app_id))

    assert [*spoke_in(said, subject)] == [
        (HERS.conversation_id, User(ITEM.app_id, HERS.user_id), Span(HERS.said_at, HERS.said_at))
    ]
    assert [*remembered_in(said, known)] == [(Project(ITEM.app_id, ITEM.project_id), HERS.conversation_id)]
    assert [*remembered_in(turn(1), known)] == []


def test_a_session_lasts_from_its_first_to_its_last_word() -> None:
    """Past values of facts do not say which session they are from."""
    concerned = Concerned()
    for number in (3, 1, 2):
        for session_id, user, span in spoke_in(turn(number), subject_of(request("session", session_id="s-1"), ())):
            concerned.spoke(session_id, user, span)

    assert concerned.sessions == {
        SessionName("support", "s-1"): {User("support", "u-1"): Span(turn(1).timestamp, turn(3).timestamp)}
    }


@pytest.mark.parametrize(
    ("scope", "names", "trouble"),
    [
        ("user", {"app_id": "shop"}, "names a user and may name an app"),
        ("session", {"session_id": "s", "user_id": "anna"}, "leave out user"),
        ("app", {"app_id": "shop", "user_id": "anna"}, "leave out user"),
        ("session", {}, "names a session and may name an app"),
    ],
)
def test_a_request_names_what_its_scope_needs(scope: str, names: dict[str, str], trouble: str) -> None:
    """Too little would erase nobody, too much somebody else."""
    with pytest.raises(ConfigurationError, match=trouble):
        checked(request(scope, **names))
