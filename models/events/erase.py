"""Events of an erasure (design §5): who asked for it, what the roles forget, and the proof.

An erasure is carried out by the archive role, which reads `erasures.v1`: it finds every session concerned, writes the
events below to the topics whose folds forget, waits until they have, removes what is left in topics and archive, has
the index remove its points, counts everything again, and writes the proof.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.app import SpaceCommand
from models.events.base import Control, Identifier, UtcTime
from models.events.project import ProjectCommand
from models.events.user import UserCommand

EraseScope = Literal["user", "session", "app"]


# --- to the folds: turns.v1 and commands.v1 ------------------------------------------------------------------


class SessionErased(Control, frozen=True, kw_only=True, tag="session_erased", gc=False):
    """The session's state goes without an episode, an alert or a profile. A later turn begins a new session."""

    request_id: str


class UserSessionErased(UserCommand, frozen=True, kw_only=True, tag="user_session_erased", gc=False):
    """What a user's memory took from a session goes: its turns, facts that it said, and their past values."""

    session_id: Identifier
    request_id: str
    started_at: UtcTime
    """First and last event time of the session: past values of a fact do not say which session they are from."""
    ended_at: UtcTime


class UserErased(UserCommand, frozen=True, kw_only=True, tag="user_erased", gc=False):
    """Everything of a user's memory goes."""

    request_id: str


class SpaceSessionErased(SpaceCommand, frozen=True, kw_only=True, tag="space_session_erased", gc=False):
    """Memories made of these sessions, or merged with such, go; so do conversations that wait."""

    session_ids: Annotated[list[Identifier], Meta(min_length=1, max_length=1_000)]
    request_id: str


class SpaceErased(SpaceCommand, frozen=True, kw_only=True, tag="space_erased", gc=False):
    """A space of memories goes, with all that was counted of it."""

    request_id: str


class ProjectSessionErased(ProjectCommand, frozen=True, kw_only=True, tag="project_session_erased", gc=False):
    """What a project's memory took from these sessions goes; what others said too stays theirs."""

    session_ids: Annotated[list[Identifier], Meta(min_length=1, max_length=1_000)]
    request_id: str


class ProjectErased(ProjectCommand, frozen=True, kw_only=True, tag="project_erased", gc=False):
    """Everything of a project's memory goes."""

    request_id: str


UserErasure = UserSessionErased | UserErased
SpaceErasure = SpaceSessionErased | SpaceErased
ProjectErasure = ProjectSessionErased | ProjectErased


# --- on erasures.v1, key <request_id>/<type> -----------------------------------------------------------------


class ErasureEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of the events of one erasure."""

    request_id: Annotated[str, Meta(min_length=1, max_length=64)]
    timestamp: UtcTime


class EraseRequested(ErasureEvent, frozen=True, kw_only=True, tag="erase_requested"):
    """Somebody is to be forgotten: a user of an app (or of all apps), a session, or an app.

    Its record is removed when the erasure is proved: the proof names nobody.
    """

    scope: EraseScope
    app_id: Annotated[str, Meta(max_length=256)] = ""
    user_id: Annotated[str, Meta(max_length=256)] = ""
    session_id: Annotated[str, Meta(max_length=256)] = ""
    by: Annotated[str, Meta(max_length=256)] = ""
    purge_logs: bool = False
    """Also from Kafka's own files at once: compacted topics are cleaned, the others lose what is older than this."""


class VectorsErasureDue(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erasure_due"):
    """The index has read everything that was written of the subject: it removes it now."""

    scope: EraseScope
    app_id: str = ""
    user_id: str = ""
    session_ids: list[str] = []


class ErasedStore(Struct, frozen=True, kw_only=True, gc=False):
    """One store of an erasure.

    Attributes:
        store: For instance `topic profiles.v1`, `archive turns`, `vectors facts`, `state sessions`.
        looked_at: Entries that were read to find the subject's.
        removed: Entries of the subject that went.
        remaining: Entries of the subject that a second look found.
        expires_at: By when what remains goes by itself (retention); None where nothing remains.
    """

    store: str
    looked_at: int
    removed: int
    remaining: int
    expires_at: UtcTime | None = None


class VectorsErased(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erased"):
    """The index removed the subject's points, and their bytes."""

    stores: list[ErasedStore]


class ErasureProved(ErasureEvent, frozen=True, kw_only=True, tag="erasure_proved"):
    """What was looked at and removed, by store. Kept for ever; names nobody."""

    scope: EraseScope
    subject: str
    """SHA-256 of scope, app, user and session, each after a zero byte: whoever knows them can find the proof."""
    by: str
    requested_at: UtcTime
    sessions: int
    stores: list[ErasedStore]
    complete: bool
    """Whether nothing remains anywhere."""


ErasureRecord = EraseRequested | VectorsErasureDue | VectorsErased | ErasureProved
