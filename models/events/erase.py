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
    about("Conversations that are forgotten.", IDENTIFIER, names="session", min_length=1, max_length=1_000),
]
EraseScope = Literal["user", "session", "app"]


# --- to the folds: turns.v1 and commands.v1 ------------------------------------------------------------------


class SessionErased(Control, frozen=True, kw_only=True, tag="session_erased", gc=False):
    """The session's state goes without an episode, an alert or a profile. A later turn begins a new session."""

    session_id: Annotated[SessionId, NAMED, about("Conversation that is forgotten; the record key.")]
    request_id: RequestName


class UserSessionErased(UserCommand, frozen=True, kw_only=True, tag="user_session_erased", gc=False):
    """What a user's memory took from a session goes: its turns, facts that it said, and their past values."""

    session_id: Annotated[SessionId, NAMED, about("Conversation that is forgotten.")]
    request_id: RequestName
    started_at: Annotated[UtcTime, about("Event time of the session's first turn.")]
    ended_at: Annotated[UtcTime, about("Event time of its last turn: past values of a fact are told by time.")]


class UserErased(UserCommand, frozen=True, kw_only=True, tag="user_erased", gc=False):
    """Everything of a user's memory goes."""

    request_id: RequestName


class SpaceSessionErased(SpaceCommand, frozen=True, kw_only=True, tag="space_session_erased", gc=False):
    """Memories made of these sessions, or merged with such, go; so do conversations that wait."""

    session_ids: Forgotten
    request_id: RequestName


class SpaceErased(SpaceCommand, frozen=True, kw_only=True, tag="space_erased", gc=False):
    """A space of memories goes, with all that was counted of it."""

    request_id: RequestName


class ProjectSessionErased(ProjectCommand, frozen=True, kw_only=True, tag="project_session_erased", gc=False):
    """What a project's memory took from these sessions goes; what others said too stays theirs."""

    session_ids: Forgotten
    request_id: RequestName


class ProjectErased(ProjectCommand, frozen=True, kw_only=True, tag="project_erased", gc=False):
    """Everything of a project's memory goes."""

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
    """Somebody is to be forgotten: a user of an app (or of all apps), a session of an app, or an app.

    Its record is removed when the erasure is proved: the proof names nobody.
    """

    scope: Annotated[EraseScope, about("Whether a user, a session or an app is forgotten.", BEHAVIOUR)]
    app_id: Annotated[AppId, about("The app; empty for a user in all apps.", max_length=256)] = ""
    user_id: Annotated[UserId, about("The user; empty for a session or an app.", max_length=256)] = ""
    session_id: Annotated[SessionId, about("The session; empty for a user or an app.", max_length=256)] = ""
    by: Annotated[Operator, about("Who asked for it.", max_length=256)] = ""
    purge_logs: Annotated[bool, about("Also from Kafka's own files at once, see `erase --help`.", OPERATIONAL)] = False


class ErasedSession(Struct, frozen=True, gc=False):
    """A conversation that is forgotten."""

    app_id: AppId
    session_id: SessionId


class VectorsErasureDue(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erasure_due"):
    """The index has read everything that was written of the subject: it removes it now."""

    scope: Annotated[EraseScope, about("Whether a user, a session or an app is forgotten.", BEHAVIOUR)]
    app_id: Annotated[AppId, about("The app; empty for a user in all apps.")] = ""
    user_id: Annotated[UserId, about("The user; empty for a session or an app.")] = ""
    session_ids: Annotated[SessionIds, about("Conversations that are forgotten.")] = []
    sessions: Annotated[
        list[ErasedSession], about("Conversations that are forgotten, each with its app.", IDENTIFIER)
    ] = []


class ErasedStore(Struct, frozen=True, kw_only=True, gc=False):
    """One store of an erasure, for instance `topic profiles.v1`, `archive turns`, `vectors facts`, `state sessions`."""

    store: Annotated[str, about("Which topic, table, collection or state.", OPERATIONAL)]
    looked_at: Annotated[int, about("Entries that were read to find the subject's.", OPERATIONAL)]
    removed: Annotated[int, about("Entries of the subject that went.", OPERATIONAL)]
    remaining: Annotated[int, about("Entries of the subject that a second look found.", OPERATIONAL)]
    expires_at: Annotated[UtcTime | None, about("When what remains goes by itself; null: nothing.", OPERATIONAL)] = None


class VectorsErased(ErasureEvent, frozen=True, kw_only=True, tag="vectors_erased"):
    """The index removed the subject's points, and their bytes."""

    stores: Annotated[list[ErasedStore], about("What was looked at and removed, by store.", OPERATIONAL)]


class ErasureProved(ErasureEvent, frozen=True, kw_only=True, tag="erasure_proved"):
    """What was looked at and removed, by store. Kept for ever; names nobody."""

    scope: Annotated[EraseScope, about("Whether a user, a session or an app was forgotten.", BEHAVIOUR)]
    subject: Annotated[
        str, about("SHA-256 of scope, app, user and session, each after a zero byte: names nobody by itself.", CONTENT)
    ]
    by: Annotated[Operator, about("Who asked for it.")]
    requested_at: Annotated[UtcTime, about("When it was asked for.", OPERATIONAL)]
    sessions: Annotated[int, about("How many conversations were forgotten.", BEHAVIOUR)]
    stores: Annotated[list[ErasedStore], about("What was looked at and removed, by store.", OPERATIONAL)]
    complete: Annotated[bool, about("Whether nothing remains; what waits for its retention does.", BEHAVIOUR)]


ErasureRecord = EraseRequested | VectorsErasureDue | VectorsErased | ErasureProved


# --- on audit.v1 ---------------------------------------------------------------------------------------------

AuditKind = Literal["text_read", "acted"]
_Name = Annotated[str, Meta(max_length=256)]


class AccessAudited(Struct, frozen=True, kw_only=True, tag_field="type", tag="access_audited", gc=False):
    """Somebody was answered with what was said, or did something; ids are empty where the request named none."""

    id: Annotated[str, about("Names the record; random.", IDENTIFIER, names="event", min_length=1, max_length=64)]
    timestamp: Annotated[UtcTime, about("When it was answered, aware, RFC 3339.")]
    kind: Annotated[AuditKind, about("Whether words were read or something was done.", BEHAVIOUR)]
    by: Annotated[_Name, about("Name of the token, never the token.", IDENTIFIER, names="operator")]
    method: Annotated[str, about("Of the request.", OPERATIONAL, max_length=16)]
    route: Annotated[_Name, about("The route's template; of a tool `/mcp` and its name.", OPERATIONAL)]
    status: Annotated[int, about("HTTP status of the answer.", BEHAVIOUR, unit="HTTP status", ge=100, le=599)]
    given: Annotated[int, about("How many things the answer had.", BEHAVIOUR, ge=0, le=2**53)] = 0
    app_id: Annotated[_Name, about("App that the request was about, if any.", OPERATIONAL, names="app")] = ""
    session_id: Annotated[_Name, about("Likewise its session.", IDENTIFIER, names="session")] = ""
    user_id: Annotated[_Name, about("Likewise its user.", IDENTIFIER, names="user")] = ""
    project_id: Annotated[_Name, about("Likewise its project.", IDENTIFIER, names="project")] = ""
