"""Entities that an erasure concerns, what events tell of them, and the events that make folds forget them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct

from models import events
from models.entities import REGISTRY
from models.erasure import ErasureSubject, sessions_of
from models.errors import ConfigurationError
from models.events.registry import EntityKind
from models.project.mentions import item_of, mentions

SESSIONS_AT_ONCE = 1_000
"""In one `SpaceSessionErased` or `ProjectSessionErased`."""


OfMemory = events.UserErasure | events.SpaceErasure | events.ProjectErasure
"""What tells the memory role to forget."""
_OF_USERS, _OF_SPACES, _OF_PROJECTS = (
    REGISTRY.kinds_of[each] for each in (events.UserErased, events.SpaceErased, events.ProjectErased)
)
"""Kinds of which a whole entity goes with a user, a space or a project."""
_PROJECT = "project:"


class User(NamedTuple):
    """A user of an app."""

    app_id: str
    user_id: str


class Project(NamedTuple):
    """A project of an app."""

    app_id: str
    project_id: str


class Span(NamedTuple):
    """First and last event time of somebody in a session."""

    started_at: datetime
    ended_at: datetime

    def joined(self, other: Span) -> Span:
        """The time of both."""
        return Span(min(self.started_at, other.started_at), max(self.ended_at, other.ended_at))


class Concerned(Struct):
    """Sessions of the subject with everybody who spoke in them, and the memory role's entities that are all its own.

    Attributes:
        sessions: Session → who spoke in it, and when.
        projects: Project → ids of the subject's sessions, in its app, that it took something from.
        entities: Keys of users, spaces and projects, see `ErasureSubject.owns`.
    """

    sessions: dict[events.SessionName, dict[User, Span]] = {}
    projects: dict[Project, set[str]] = {}
    entities: set[str] = set()

    def spoke(self, session_id: str, user: User, span: Span) -> None:
        """Somebody spoke in a session of the subject, which is the app's."""
        users = self.sessions.setdefault(events.SessionName(user.app_id, session_id), {})
        users[user] = span.joined(users[user]) if user in users else span

    def remembered(self, project: Project, session_id: str) -> None:
        """A project took something from a session of the subject."""
        self.projects.setdefault(project, set()).add(session_id)

    def known(self, keys: Iterable[str], subject: ErasureSubject) -> None:
        """Take in those keys of state that are the subject's."""
        self.entities.update(key for key in keys if subject.owns(key))

    @property
    def users(self) -> set[User]:
        """Everybody in the sessions."""
        return {user for users in self.sessions.values() for user in users}

    @property
    def touched(self) -> set[str]:
        """Keys of users, spaces and projects that hold something of the subject, wholly or in part; see `root_of`."""
        users = self.users
        parts = {kind.key(user) for kind in (*_OF_USERS, *_OF_SPACES) for user in users}
        parts |= {kind.key(User(user.app_id, "")) for kind in _OF_SPACES for user in users}
        parts |= {kind.key(project) for kind in _OF_PROJECTS for project in self.projects}
        return parts | self.entities


def checked(request: events.EraseRequested) -> events.EraseRequested:
    """The request, if it names exactly what its scope needs.

    Raises:
        ConfigurationError: It does not.
    """
    named = {"user": request.user_id, "session": request.session_id, "app": request.app_id}
    allowed = {"user": {"user", "app"}, "session": {"session", "app"}, "app": {"app"}}[request.scope]
    too_many = sorted(name for name, value in named.items() if value and name not in allowed)
    if not named[request.scope] or too_many:
        raise ConfigurationError(
            f"an erasure of scope {request.scope} names a {request.scope}"
            f"{' and nothing else' if request.scope == 'app' else ' and may name an app'}"
            f"{': leave out ' + ', '.join(too_many) if too_many else ''}"
        )
    return request


def of_sessions(request: events.EraseRequested, concerned: Concerned, now: datetime) -> list[events.SessionErased]:
    """Events that make the sessions role forget."""
    return [
        events.SessionErased(**session._asdict(), timestamp=now, request_id=request.request_id)
        for session in sorted(concerned.sessions)
    ]


def of_users(
    request: events.EraseRequested, concerned: Concerned, subject: ErasureSubject, now: datetime
) -> Iterator[OfMemory]:
    """Events that make the memory role forget: whole users, spaces and projects that are the subject's, else sessions.

    None for an unknown subject: a second erasure leaves no new records of its own.
    """
    whole = {user for user in concerned.users if subject.is_user(*user)}
    whole |= {User(*_names_in(key)) for key in _keys_of(_OF_USERS, concerned)}
    spaces = whole | {User(*_names_in(key)) for key in _keys_of(_OF_SPACES, concerned)}
    if request.scope == "app" and spaces:
        spaces.add(User(request.app_id, ""))
    about: dict[str, Any] = {"timestamp": now, "request_id": request.request_id}
    yield from (events.UserErased(**user._asdict(), **about) for user in sorted(whole))
    yield from (events.SpaceErased(**space._asdict(), **about) for space in sorted(spaces))
    yield from _of_parts(concerned, whole | spaces, about)
    yield from _of_projects(request, concerned, about)


def _of_parts(
    concerned: Concerned, whole: set[User], about: Mapping[str, Any]
) -> Iterator[events.UserErasure | events.SpaceErasure]:
    in_spaces: dict[User, list[str]] = {}
    for (_, session_id), users in sorted(concerned.sessions.items()):
        for user, span in sorted(users.items()):
            if user not in whole:
                yield events.UserSessionErased(session_id=session_id, **user._asdict(), **span._asdict(), **about)
        for space in {*users, *(User(user.app_id, "") for user in users)} - whole:
            in_spaces.setdefault(space, []).append(session_id)
    for space, sessions in sorted(in_spaces.items()):
        for chunk in _chunks(sessions):
            yield events.SpaceSessionErased(**space._asdict(), session_ids=chunk, **about)


def _of_projects(
    request: events.EraseRequested, concerned: Concerned, about: Mapping[str, Any]
) -> Iterator[events.ProjectErasure]:
    """A project is wholly the subject's if its app is."""
    whole = {Project(*_names_in(root_of(key))) for key in _keys_of(_OF_PROJECTS, concerned)}
    if request.scope == "app":
        whole |= {project for project in concerned.projects if project.app_id == request.app_id}
    yield from (events.ProjectErased(**project._asdict(), **about) for project in sorted(whole))
    for project, sessions in sorted(concerned.projects.items()):
        for chunk in _chunks(sorted(sessions)) if project not in whole else ():
            yield events.ProjectSessionErased(**project._asdict(), session_ids=chunk, **about)


def _keys_of(kinds: Sequence[EntityKind], concerned: Concerned) -> list[str]:
    """Keys of wholly concerned entities of some kinds."""
    names = {kind.name for kind in kinds}
    return [key for key in concerned.entities if key.partition(":")[0] in names]


def root_of(key: str) -> str:
    """Key of the whole project, whose parts are entities of their own; any other key is whole.

    >>> root_of("project:shop/web/shelf/07"), root_of("user:shop/anna")
    ('project:shop/web', 'user:shop/anna')
    """
    return "/".join(key.split("/", 2)[:2]) if key.startswith(_PROJECT) else key


def subject_of(
    request: events.EraseRequested, sessions: Iterable[events.SessionName], namesakes: Iterable[events.SessionName] = ()
) -> ErasureSubject:
    """Who is to be forgotten, without the ties that the logs give; arguments as of `models.erasure.sessions_of`."""
    # What a session's own app is named for is no subject: only the session is.
    app_id = "" if request.scope == "session" else request.app_id
    return ErasureSubject(request.scope, app_id, request.user_id, sessions_of(sessions, namesakes))


def _names_in(key: str) -> tuple[str, str]:
    """App, and user or project, of an entity's key.

    >>> _names_in("user:shop%2Feu/anna"), _names_in("app:shop")
    (('shop/eu', 'anna'), ('shop', ''))
    """
    app_id, _, other = key.partition(":")[2].partition("/")
    return events.name_of_part(app_id), events.name_of_part(other)


def _chunks(session_ids: list[str]) -> Iterator[list[str]]:
    return (session_ids[at : at + SESSIONS_AT_ONCE] for at in range(0, len(session_ids), SESSIONS_AT_ONCE))


def spoke_in(event: Struct, subject: ErasureSubject) -> Iterator[tuple[str, User, Span]]:
    """Sessions of the subject that an event names, which names the subject: its user or app, or its one session."""
    match event:
        case events.Turn() | events.UserTurnAdded() | events.ProjectTurnAdded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.timestamp, event.timestamp)
        case events.FactChanged() if event.session_id:
            yield event.session_id, User(event.app_id, event.user_id), Span(event.valid_from, event.timestamp)
        case events.ProfileUpdated() | events.ConversationEnded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.started_at, event.timestamp)
        case events.EpisodeCompressed():
            sessions = {part.session_id for part in event.turns}
            for session_id in sessions if subject.scope != "session" else _of(subject, event.app_id, sessions):
                yield session_id, User(event.app_id, event.user_id), Span(event.started_at, event.ended_at)
        case events.ProjectItemChanged():
            yield from _said(event, subject)
        case _:
            pass


def remembered_in(event: Struct, subject: ErasureSubject) -> Iterator[tuple[Project, str]]:
    """Projects that took something from sessions of the subject, by an event that names it, and the sessions."""
    match event:
        case events.Turn() if event.project_id:
            yield Project(event.app_id, event.project_id), event.session_id
        case events.ProjectItemChanged():
            for session_id in _of(subject, event.app_id, mentions(event).sessions):
                yield Project(event.app_id, event.project_id), session_id
        case _ if isinstance(event, events.ProjectForwarded):
            yield Project(event.app_id, event.project_id), event.session_id
        case _:
            pass


def _of(subject: ErasureSubject, app_id: str, session_ids: Iterable[str]) -> list[str]:
    """Those that are sessions of the subject."""
    return [each for each in session_ids if events.SessionName(app_id, each) in subject.sessions]


def _said(event: events.ProjectItemChanged, subject: ErasureSubject) -> Iterator[tuple[str, User, Span]]:
    """An import brings memories of conversations that no other record may name."""
    item = item_of(event)
    sources = (
        item.sources
        if isinstance(item, events.ProjectMemory)
        else [item.source]
        if isinstance(item, events.PendingFact)
        else []
    )
    for source in sources:
        user = User(event.app_id, source.user_id)
        mine = subject.is_user(*user) or events.SessionName(event.app_id, source.conversation_id) in subject.sessions
        if mine and source.conversation_id and source.user_id:
            yield source.conversation_id, user, Span(source.said_at, source.said_at)
