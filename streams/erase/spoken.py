"""Sessions that an event is about, who spoke in them, and which projects took something from them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from models.erasure import ErasureSubject
from models.events import (
    ConversationEnded,
    EpisodeCompressed,
    FactChanged,
    PendingFact,
    ProfileUpdated,
    ProjectForwarded,
    ProjectItemChanged,
    ProjectMemory,
    ProjectTurnAdded,
    Turn,
    UserTurnAdded,
)
from models.project.mentions import item_of, mentions
from streams.erase.concerned import Project, Span, User


def spoke_in(event: Struct, subject: ErasureSubject) -> Iterator[tuple[str, User, Span]]:
    """Sessions of the subject that an event tells of.

    Args:
        event: One that names the subject.
        subject: Its user or app, or its one session.
    """
    match event:
        case Turn() | UserTurnAdded() | ProjectTurnAdded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.timestamp, event.timestamp)
        case FactChanged() if event.session_id:
            yield event.session_id, User(event.app_id, event.user_id), Span(event.valid_from, event.timestamp)
        case ProfileUpdated() | ConversationEnded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.started_at, event.timestamp)
        case EpisodeCompressed():
            sessions = {part.session_id for part in event.turns}
            for session_id in sessions if subject.scope != "session" else sessions & subject.session_ids:
                yield session_id, User(event.app_id, event.user_id), Span(event.started_at, event.ended_at)
        case ProjectItemChanged():
            yield from _said(event, subject)
        case _:
            pass


def remembered_in(event: Struct, subject: ErasureSubject) -> Iterator[tuple[Project, str]]:
    """Projects that took something from sessions of the subject, by an event that names it, and the sessions."""
    match event:
        case Turn() if event.project_id:
            yield Project(event.app_id, event.project_id), event.session_id
        case ProjectItemChanged():
            for session_id in subject.session_ids.intersection(mentions(event).sessions):
                yield Project(event.app_id, event.project_id), session_id
        case _ if isinstance(event, ProjectForwarded):
            yield Project(event.app_id, event.project_id), event.session_id
        case _:
            pass


def _said(event: ProjectItemChanged, subject: ErasureSubject) -> Iterator[tuple[str, User, Span]]:
    """An import brings memories of conversations of which nothing else may tell."""
    item = item_of(event)
    sources = (
        item.sources if isinstance(item, ProjectMemory) else [item.source] if isinstance(item, PendingFact) else []
    )
    for source in sources:
        user = User(event.app_id, source.user_id)
        mine = subject.is_user(*user) or source.conversation_id in subject.session_ids
        if mine and source.conversation_id and source.user_id:
            yield source.conversation_id, user, Span(source.said_at, source.said_at)
