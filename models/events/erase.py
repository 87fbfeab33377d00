"""Events of data protection: of an erasure (design §5), and who read words of people.

An erasure is carried out by the archive role, which reads `erasures.v1`: it finds every session concerned, writes the
events below to the topics whose folds forget, waits until they have, removes what is left in topics and archive, has
the index remove its points, counts everything again, and writes the proof.

Who read words or changed something, and what it was about, is written by roles that serve memory over HTTP
(`streams.http.audit`), one event for each request, never with the words. Not an output of a fold: its id is random, and
a replay makes none.
"""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.app import SpaceCommand
from models.events.base import Control
from models.events.fields import *
from models.events.project import ProjectCommand
from models.events.user import UserCommand

Forgotten = Annotated[
    list[Identifier],
    about("Ids of the erased sessions.", IDENTIFIER, names="session", min_length=1, max_length=1_000),
]
EraseScope = Literal["user", "session", "app"]


# --- to the folds: turns.v1 and commands.v1 ------------------------------------------------------------------


class SessionErased(Control, frozen=True, kw_only=True, tag="session_erased", gc=False):
    """Deletes the session's state without an episode, alert or profile. A later turn begins a new session."""

    session_id: Annotated[SessionId, NAMED, about("Id of the erased session; the record key.")]
    request_id: RequestName


class UserSessionErased(UserCommand, frozen=True, kw_only=True, tag="user_session_erased", gc=False):
    """Deletes what a user's memory has of a session: its turns, the facts said in it, and their past values."""

    session_id: Annotated[SessionId, NAMED, about("Id of the erased session.")]
    request_id: RequestName
    started_at: Annotated[UtcTime, about("Event time of the session's first turn.")]
    ended_at: Annotated[UtcTime, about("Event time of its last turn; past values of facts are matched by time.")]


class UserErased(UserCommand, frozen=True, kw_only=True, tag="user_erased", gc=False):
    """Deletes the whole memory of a user."""

    request_id: RequestName


class SpaceSessionErased(SpaceCommand, frozen=True, kw_only=True, tag="space_session_erased", gc=False):
    """Deletes memories made from these sessions, or merged with such, and conversations that wait."""

    session_ids: Forgotten
    request_id: RequestName


class SpaceErased(SpaceCommand, frozen=True, kw_only=True, tag="space_erased", gc=False):
    """Deletes a space of memories with all its counts."""

    request_id: RequestName


class ProjectSessionErased(ProjectCommand, frozen=True, kw_only=True, tag="project_session_erased", gc=False):
    """Deletes what a project's memory has of these sessions; what others also said is kept as theirs."""

    session_ids: Forgotten
    request_id: RequestName


class ProjectErased(ProjectCommand, frozen=True, kw_only=True, tag="project_erased", gc=False):
    """Deletes the whole memory of a project."""

    request_id: RequestName


UserErasure = UserSessionErased | UserErased
SpaceErasure = SpaceSessionErased | SpaceErased
ProjectErasure = ProjectSessionErased | ProjectErased


# --- on erasures.v1, key <request_id>/<type> -----------------------------------------------------------------


class ErasureEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of the events of one erasure."""

    request_id: Annotated[RequestName, Meta(min_length=1, max_length=64)]
    timestamp: EventTime


class EraseRequested(ErasureEvent, frozen=True, kw_only=True, tag="erase_requested"):
    """Requests the erasure of a user in an app (or in all apps), a session of an app, or an app.

    The record is deleted when the erasure is proved: the proof contains no names.
    """

    scope: Annotated[EraseScope, about("Scope: user, session or app.", BEHAVIOUR)]
    app_id: Annotated[AppId, about("Id of the app; empty for a user in all apps.", max_length=256)] = ""
    user_id: Annotated[UserId, about("Id of the user; empty for a session or an app.", max_length=256)] = ""
    session_id: Annotated[SessionId, about("Id of the session; empty for a user or an app.", max_length=256)] = ""
    by: Annotated[Operator, about("Name of the requester's token.", max_length=256)] = ""
    purge_logs: Annotated[bool, about("Whether to purge Kafka's files at once, see `erase --help`.", OPERATIONAL)] = (
        False
    )


class ErasedSession(Struct, frozen=True, gc=False):
    """A session that is erased."""

    app_id: AppId
    session_id: SessionId


class VectorsErasureDue(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erasure_due"):
    """The index has read all records of the subject, and deletes its points now."""

    scope: Annotated[EraseScope, about("Scope: user, session or app.", BEHAVIOUR)]
    app_id: Annotated[AppId, about("Id of the app; empty for a user in all apps.")] = ""
    user_id: Annotated[UserId, about("Id of the user; empty for a session or an app.")] = ""
    session_ids: Annotated[SessionIds, about("Ids of the erased sessions.")] = []
    sessions: Annotated[list[ErasedSession], about("Erased sessions, each with its app.", IDENTIFIER)] = []


class ErasedStore(Struct, frozen=True, kw_only=True, gc=False):
    """One store of an erasure, e.g. `topic profiles.v1`, `archive turns`, `vectors facts`, `state sessions`."""

    store: Annotated[str, about("Name of the topic, table, collection or state.", OPERATIONAL)]
    looked_at: Annotated[int, about("Number of entries read to find those of the subject.", OPERATIONAL)]
    removed: Annotated[int, about("Number of deleted entries of the subject.", OPERATIONAL)]
    remaining: Annotated[int, about("Number of entries of the subject found by a second check.", OPERATIONAL)]
    expires_at: Annotated[UtcTime | None, about("Time at which the rest expires; null: none does.", OPERATIONAL)] = None


class VectorsErased(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erased"):
    """The index deleted the subject's points and their bytes."""

    stores: Annotated[list[ErasedStore], about("Entries read and deleted, by store.", OPERATIONAL)]


class ErasureProved(ErasureEvent, frozen=True, kw_only=True, tag="erasure_proved"):
    """Proof of an erasure: entries read and deleted, by store. Kept for ever; contains no names."""

    scope: Annotated[EraseScope, about("Scope: user, session or app.", BEHAVIOUR)]
    subject: Annotated[
        str, about("SHA-256 of scope, app, user and session, each after a zero byte; contains no names.", CONTENT)
    ]
    by: Annotated[Operator, about("Name of the requester's token.")]
    requested_at: Annotated[UtcTime, about("Time of the request.", OPERATIONAL)]
    sessions: Annotated[int, about("Number of erased sessions.", BEHAVIOUR)]
    stores: Annotated[list[ErasedStore], about("Entries read and deleted, by store.", OPERATIONAL)]
    complete: Annotated[bool, about("Whether no entries remain, not even ones that await retention.", BEHAVIOUR)]


ErasureRecord = EraseRequested | VectorsErasureDue | VectorsErased | ErasureProved


# --- on audit.v1 ---------------------------------------------------------------------------------------------

AuditKind = Literal["text_read", "acted"]
_Name = Annotated[str, Meta(max_length=256)]


class AccessAudited(Struct, frozen=True, kw_only=True, tag_field="type", tag="access_audited", gc=False):
    """A caller read text or changed something. Ids that the request did not name are empty."""

    id: Annotated[str, about("Random id of the record.", IDENTIFIER, names="event", min_length=1, max_length=64)]
    timestamp: Annotated[UtcTime, about("Time of the response, with a UTC offset (RFC 3339).")]
    kind: Annotated[AuditKind, about("Kind of access: text was read, or a change made.", BEHAVIOUR)]
    by: Annotated[_Name, about("Name of the token, never the token itself.", IDENTIFIER, names="operator")]
    method: Annotated[str, about("HTTP method of the request.", OPERATIONAL, max_length=16)]
    route: Annotated[_Name, about("Template of the route; of a tool `/mcp` and its name.", OPERATIONAL)]
    status: Annotated[int, about("HTTP status of the response.", BEHAVIOUR, unit="HTTP status", ge=100, le=599)]
    given: Annotated[int, about("Number of items in the response.", BEHAVIOUR, ge=0, le=2**53)] = 0
    app_id: Annotated[_Name, about("Id of the app in the request, if any.", OPERATIONAL, names="app")] = ""
    session_id: Annotated[_Name, about("Id of the session in the request, if any.", IDENTIFIER, names="session")] = ""
    user_id: Annotated[_Name, about("Id of the user in the request, if any.", IDENTIFIER, names="user")] = ""
    project_id: Annotated[_Name, about("Id of the project in the request, if any.", IDENTIFIER, names="project")] = ""
