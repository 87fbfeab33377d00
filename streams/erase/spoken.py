"""Which sessions an event tells of, and who spoke in them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from models.erasure import Subject
from models.events import ConversationEnded, EpisodeCompressed, FactChanged, ProfileUpdated, Turn, UserTurnAdded
from streams.erase.concerned import Span, User


def spoke_in(event: Struct, subject: Subject) -> Iterator[tuple[str, User, Span]]:
    """Sessions of the subject that an event tells of.

    Args:
        event: One that names the subject.
        subject: Its user or app, or its one session.
    """
    match event:
        case Turn() | UserTurnAdded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.timestamp, event.timestamp)
        case FactChanged() if event.session_id:
            yield event.session_id, User(event.app_id, event.user_id), Span(event.valid_from, event.timestamp)
        case ProfileUpdated() | ConversationEnded():
            yield event.session_id, User(event.app_id, event.user_id), Span(event.started_at, event.timestamp)
        case EpisodeCompressed():
            sessions = {part.session_id for part in event.turns}
            for session_id in sessions if subject.scope != "session" else sessions & subject.session_ids:
                yield session_id, User(event.app_id, event.user_id), Span(event.started_at, event.ended_at)
        case _:
            pass
