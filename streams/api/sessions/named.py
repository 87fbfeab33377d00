"""Session that a request means: its id is unique within its app alone."""

from __future__ import annotations

from typing import Annotated, Protocol

from msgspec import Meta, Struct

from models.events import DEFAULT_APP, SessionName
from models.events.fields import Identifier
from streams.http.audit import note_ids
from streams.http.security import caller

SessionId = Annotated[Identifier, Meta(description="URL-encoded; any character.")]
AppOfSession = Annotated[
    Identifier,
    Meta(
        description="The session's app; none: the token's only one, else the default app if it has such a session, "
        "else the only app that has one."
    ),
]


class OfSession(Struct, frozen=True, kw_only=True):
    """A question about a session."""

    session_id: SessionId
    app_id: AppOfSession | None = None


class KnowsSessions(Protocol):
    """A memory of sessions."""

    async def app_of(self, session_id: str) -> str | None:
        """App that a session id means where none is named: the default app's, or else the only one; None for none.

        Raises:
            AmbiguousApp: Several other apps have a session of this id.
        """
        ...


async def session_of(memory: KnowsSessions, session_id: str, app_id: str | None) -> SessionName:
    """The session that a request is about; the audit notes its app.

    Args:
        memory: Gives what the caller may read.
        session_id: As the request names it.
        app_id: Likewise; None for none.

    Raises:
        Problem: 403, another tenant's app.
        AmbiguousApp: Several apps that the caller may read have a session of this id.
    """
    app = caller().app_of(app_id) or await memory.app_of(session_id)
    note_ids({"app_id": app}.get)
    return SessionName(app or DEFAULT_APP, session_id)
