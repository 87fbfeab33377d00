"""Responses of the server as dataclasses, with the names of its `/openapi.json`. Times are aware datetimes.

A field unknown to this release of the client is ignored; a field omitted by the server has its default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from turntide.errors import TurntideError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A turn that is stored durably in the log."""

    session_id: str
    message_id: str
    partition: int
    offset: int
    turn: int | None = None
    """Its number, if the request waited until it is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Added turns. Pass it as `after` to a read that must see them."""

    session_id: str
    turns: list[Accepted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of a session."""

    app_id: str
    user_id: str
    session_id: str
    turn: int
    role: str
    timestamp: datetime
    content: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Summary of a range of turns of a session; both ends are inclusive."""

    first_turn: int
    last_turn: int
    summary: str
    summarised_by: str
    """`extractive`, or the name of the language model."""
    risk_mean: float
    key_topics: list[str]
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """A session in short: summaries of its segments, oldest first, and the turns since."""

    segments: list[Segment]
    open_turns: list[Turn]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The last risk profile of a session."""

    turn_count: int
    last_turn: int
    open: bool
    mode: str
    """calm, watch, elevated or critical."""
    score: float
    peak_risk: float
    mean_risk: float
    suspicion: float
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact of a user."""

    app_id: str
    user_id: str
    session_id: str
    category: str
    """identity, preference, constraint or instruction."""
    key: str
    value: str
    confidence: float
    importance: float
    active: bool
    """Whether it is active."""
    cause: str
    valid_from: datetime
    valid_until: datetime | None
    turn: int
    """Number of the turn of `session_id` that says so; -1: none."""
    extracted_by: str
    pinned: bool = False
    by: str = ""
    """Name of the token that last changed it by hand; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """Result of changing a fact."""

    success: bool
    """False: the change is accepted, but not visible yet."""
    fact: Fact | None = None
    """Its new state; None if it was deleted, or if the token may not read text."""
    already_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Summary of about twenty turns of a user."""

    app_id: str
    user_id: str
    session_id: str
    episode: int
    turn_range: str
    summary: str
    key_topics: list[str]
    started_at: datetime
    ended_at: datetime
    distance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A turn found by a search. Scores are comparable within one response only."""

    score: float
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHit:
    """An episode found by a search."""

    score: float
    episode: Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Search results, best first. Only the list of the requested kind is filled."""

    turns: list[TurnHit] = field(default_factory=list)
    episodes: list[EpisodeHit] = field(default_factory=list)
    known: bool = True
    """Whether the user is known."""
    caught_up: bool | None = None
    """Whether the response includes all turns that the server received; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A prompt within a token budget, and its parts."""

    prompt: str
    tokens: int
    facts: list[Fact]
    episodes: list[Episode]
    recent: list[Turn]
    found: list[TurnHit] = field(default_factory=list)
    known: bool = True
    caught_up: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A requested erasure."""

    request_id: str
    proved: bool = False
    """False while it is in progress."""
    proof: dict[str, Any] | None = None


def read(kind: type[_T], value: Any) -> _T:
    """An answer's JSON as one of the above, or a list of them.

    Raises:
        TurntideError: It lacks something: the server is no Turntide, or of another release.
    """
    try:
        return cast("_T", _read(kind, value))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = getattr(kind, "__name__", kind)
        raise TurntideError(f"the answer is no {name} as this client knows it ({type(error).__name__})") from error


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if value is None or kind is Any:
        return value
    if origin is list:
        return [_read(get_args(kind)[0], each) for each in value]
    if origin in {Union, UnionType}:
        return _read(next(each for each in get_args(kind) if each is not type(None)), value)
    if is_dataclass(kind):
        return cast("Any", kind)(
            **{name: _read(hint, value[name]) for name, hint in _fields(cast("Any", kind)) if name in value}
        )
    return datetime.fromisoformat(value) if kind is datetime else value


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(kind).items())
