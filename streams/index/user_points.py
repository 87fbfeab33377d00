"""Payloads of users' points, and events' fields read back from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from models.events import EpisodeCompressed, FactChanged, OutputEvent, UserMemoryChanged
from models.events.user import SessionTurns, TurnRef
from models.retrieval.lexical import date_words, document_vector
from models.wire.envelope import key_of
from streams.ports import PayloadValue, Point, Vectors

PERMILLE = 1_000


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """A fact of a user, active or past; fields as in `models.events.user.FactChanged`."""

    app_id: str
    user_id: str
    category: str
    key: str
    value: str
    confidence: float
    importance: float
    active: bool
    valid_from: datetime
    valid_until: datetime | None
    session_id: str
    turn: int
    extracted_by: str


@dataclass(frozen=True, slots=True)
class RememberedEpisode:
    """Turns of a user that became a summary; fields as in `models.events.user.EpisodeCompressed`.

    Attributes:
        distance: Cosine distance to the query, 0-2; None where there was no query.
    """

    app_id: str
    user_id: str
    episode: int
    first_turn: int
    last_turn: int
    turn_range: str
    summary: str
    summarised_by: str
    key_topics: list[str]
    started_at: datetime
    ended_at: datetime
    turns: list[TurnRef]
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class RememberedUser:
    """How far a user's memory is; fields as in `models.events.user.UserMemoryChanged`."""

    app_id: str
    user_id: str
    turn_count: int
    compressed_turns: int
    short_term: list[TurnRef]
    facts: int
    episodes: int
    seen: dict[str, int]


def point_key(event: OutputEvent) -> str:
    """Readable id of the point of an event that is the last word on its key: that key."""
    return (key_of(event) or b"").decode()


def _flat(runs: Sequence[SessionTurns]) -> list[TurnRef]:
    return [TurnRef(run.session_id, turn) for run in runs for turn in run.turns]


def episode_point(event: EpisodeCompressed, offset: int, vector: Vectors) -> Point:
    """An episode, by a vector `(dim,)`."""
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "session_id": event.session_id,
        "turn": event.first_turn,
        "event_offset": offset,
        "episode": event.episode,
        "first_turn": event.first_turn,
        "last_turn": event.last_turn,
        "turn_range": event.turn_range,
        "summary": event.summary,
        "summarised_by": event.summarised_by,
        "key_topics": msgspec.json.encode(event.key_topics).decode(),
        "turns": msgspec.json.encode(event.turns).decode(),
        "started_at": event.started_at.isoformat(),
        "ended_at": event.ended_at.isoformat(),
    }
    words = episode_words(event.summary, event.key_topics, event.started_at)
    return Point(point_key(event), vector, payload, document_vector(words))


def episode_words(summary: str, key_topics: Sequence[str], started_at: datetime) -> str:
    """What an episode is found by, beside its meaning."""
    return " ".join([summary, *key_topics, date_words(started_at)])


def remembered_episode(payload: Mapping[str, PayloadValue]) -> RememberedEpisode:
    """An episode from what the store has of it."""
    lists = {
        "key_topics": msgspec.json.decode(str(payload["key_topics"])),
        "turns": _flat(msgspec.json.decode(str(payload["turns"]), type=list[SessionTurns])),
    }
    return msgspec.convert({**payload, **lists}, RememberedEpisode)


def fact_points(event: FactChanged, offset: int, blank: Vectors) -> Iterable[Point]:
    """A fact and its earlier values; facts are not searched, so the vector `(dim,)` is zero."""
    key = point_key(event)
    common: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "session_id": event.session_id,
        "turn": event.turn,
        "event_offset": offset,
        "category": event.category.value,
        "key": event.key,
        "importance": event.importance,
        "importance_permille": round(event.importance * 1_000_000) // PERMILLE,
        "extracted_by": event.extracted_by,
    }
    now: dict[str, PayloadValue] = {
        "value": event.value,
        "confidence": event.confidence,
        "active": int(event.active),
        "valid_from": event.valid_from.isoformat(),
        "valid_until": None if event.valid_until is None else event.valid_until.isoformat(),
    }
    yield Point(key, blank, common | now)
    for past in event.history:
        then: dict[str, PayloadValue] = {
            "value": past.value,
            "confidence": past.confidence,
            "active": 0,
            "valid_from": past.valid_from.isoformat(),
            "valid_until": past.valid_until.isoformat(),
            # Which turn said it and who understood it, the event no longer says.
            "session_id": "",
            "turn": -1,
            "extracted_by": "",
        }
        # The times alone do not tell values apart that were said at the same time.
        place = f"{past.valid_from.isoformat()}/{past.valid_until.isoformat()}/{past.value}"
        yield Point(f"{key}@{place}", blank, common | then)


def remembered_fact(payload: Mapping[str, PayloadValue]) -> RememberedFact:
    """A fact from what the store has of it."""
    return msgspec.convert({**payload, "active": bool(payload["active"])}, RememberedFact)


def user_point(event: UserMemoryChanged, offset: int, blank: Vectors) -> Point:
    """How far a user is; the vector `(dim,)` is zero."""
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": event.user_id,
        "event_offset": offset,
        "event_time_ms": int(event.timestamp.timestamp() * 1000),
        "turn_count": event.turn_count,
        "compressed_turns": event.compressed_turns,
        "facts": event.facts,
        "episodes": event.episodes,
        "short_term": msgspec.json.encode(event.short_term).decode(),
        "seen": msgspec.json.encode(event.seen).decode(),
    }
    return Point(point_key(event), blank, payload)


def remembered_user(payload: Mapping[str, PayloadValue]) -> RememberedUser:
    """How far a user is from what the store has of it."""
    parts = {
        "short_term": _flat(msgspec.json.decode(str(payload["short_term"]), type=list[SessionTurns])),
        "seen": msgspec.json.decode(str(payload["seen"])),
    }
    return msgspec.convert({**payload, **parts}, RememberedUser)
