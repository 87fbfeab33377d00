"""Bases of all events: ids, times, roles, and the structs of what comes in and of what goes out."""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, TypedDict

from msgspec import Meta, Struct

from models.events.fields import *

Scalar = str | int | float | bool | None

NAME_CHARS = 256
"""Longest reason, or name of a model, taken from an event."""
MAX_CONTENT_BYTES = 256 * 1024
"""Longest turn content, UTF-8 bytes (design §6)."""


def key_part(name: str) -> str:
    """An id as a part of a key: parts are told apart by slashes.

    >>> key_part("shop/eu"), name_of_part("shop%2Feu")
    ('shop%2Feu', 'shop/eu')
    """
    return name.replace("%", "%25").replace("/", "%2F")


def name_of_part(part: str) -> str:
    """The id again."""
    return part.replace("%2F", "/").replace("%25", "%")


DEFAULT_APP = "default"
"""App of conversations whose producer names none."""


def session_key(app_id: str, session_id: str) -> str:
    """Key of everything about a session: an id is unique within its app alone.

    >>> session_key("shop/eu", "chat/1")
    'session:shop%2Feu/chat/1'
    """
    return f"session:{key_part(app_id)}/{session_id}"


def app_meant(apps: Collection[str]) -> str | None:
    """App of a session that is named by its id alone: the default app, or else the only one that has such a session.

    Args:
        apps: Apps that have a session of this id; none: it would be the default app's.

    Returns:
        None where several have one, and the default app has none.

    >>> app_meant(["shop"]), app_meant(["shop", "default"]), app_meant([]), app_meant(["shop", "bank"])
    ('shop', 'default', 'default', None)
    """
    if DEFAULT_APP in apps or not apps:
        return DEFAULT_APP
    return next(iter(apps)) if len(apps) == 1 else None


class SessionName(NamedTuple):
    """A session by its app and its id."""

    app_id: str
    session_id: str

    @classmethod
    def of_key(cls, key: str) -> SessionName:
        """The session that a key of `session_key` names.

        >>> SessionName.of_key("session:shop%2Feu/chat/1")
        SessionName(app_id='shop/eu', session_id='chat/1')
        """
        app, _, session_id = key.removeprefix("session:").partition("/")
        return cls(name_of_part(app), session_id)


class Role(StrEnum):
    """Role of the speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Mode(StrEnum):
    """Risk mode of a session, in ascending order; the policy sets the thresholds."""

    CALM = "calm"
    WATCH = "watch"
    ELEVATED = "elevated"
    CRITICAL = "critical"


Speaker = Annotated[Role, about("Role of the speaker.", BEHAVIOUR)]
RiskMode = Annotated[Mode, about("Risk mode: calm, watch, elevated or critical.", BEHAVIOUR)]


class RequestedTurn(Struct, frozen=True, gc=False):
    """A turn as sent to a slower stage; a long text is truncated."""

    role: Speaker
    content: Annotated[str, about("Text of the turn; truncated if long.", CONTENT)]


NOT_ASKED = -1
AskedOffset = Annotated[
    int,
    about("Offset of the record that caused the request; -1: no request.", OPERATIONAL, unit="offset", ge=-1, le=2**53),
]
"""Of an answer: what was asked before its entity was erased, or began anew, is nobody's question any more."""
RequestId = Annotated[RequestName, Meta(max_length=64)]
BY_HAND = "admin"
"""What made a memory, or found a fact, that somebody wrote by hand."""


Outcome = Literal["done", "unchanged", "not_found", "too_long", "too_many_pinned", "too_many"]


class CommandResult(Struct, frozen=True, kw_only=True, gc=False):
    """Result of a command."""

    request_id: RequestName
    outcome: Annotated[Outcome, about("Result: done, unchanged, or the reason for a refusal.", BEHAVIOUR)]
    count: Annotated[int, about("Number of changed memories or facts.", BEHAVIOUR)]


class Control(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the control events, on the same topic and with the same key as the turns."""

    session_id: Annotated[SessionId, NAMED, about("Id of the session (conversation); the record key.")]
    app_id: Annotated[
        AppId,
        about("Id of the app; empty: the default app, or else the only app with this session.", max_length=256),
    ] = ""
    timestamp: EventTime


class Position(Struct, frozen=True, gc=False):
    """Position of a record in the log."""

    topic: Annotated[str, about("Name of the topic.", OPERATIONAL)]
    partition: Annotated[int, about("Partition of the topic.", OPERATIONAL, unit="number")]
    offset: Annotated[int, about("Offset in the partition.", OPERATIONAL, unit="offset")]


class Output(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of every event that Turntide emits about a session."""

    id: EventId
    session_id: SessionId
    user_id: UserId
    app_id: AppId
    timestamp: EventTime
    source: Annotated[Position, about("Input record that caused this event.", OPERATIONAL)]


class OutputFields(TypedDict):
    """What every output begins with, as keyword arguments."""

    id: str
    session_id: str
    user_id: str
    app_id: str
    timestamp: datetime
    source: Position
