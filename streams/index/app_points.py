"""Payloads of app memories' points, and memories read back from them.

Every app that a memory is shared with has a point of its own, filed under that app. So the condition that keeps each
caller to its own apps (`streams.http.tenancy`) lets through what was shared, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from models.entities import owner_of
from models.events import AppMemoriesChanged, AppMemoryChanged, CommandResult
from models.retrieval.lexical import date_words, document_vector
from streams.index.user_points import point_key
from streams.ports import PayloadValue, Point, Vectors

_LISTS = ("tags", "related_conversations", "shared_with", "conflicts_with")
"""Fields kept as JSON text: a payload holds scalars."""


@dataclass(frozen=True, slots=True)
class RememberedMemory:
    """A memory of an app; fields as in `models.events.app.AppMemoryChanged`, but for these.

    Attributes:
        app_id: Whose memory it is, also where another app reads it.
        space_user_id: Whose space in the app; empty for the app's own.
        session_id: The conversation that it was made of …
        said_by: … and its user. What another app reads names neither, nor conversations, conflicts and other apps.
    """

    app_id: str
    space_user_id: str
    space: str
    slot: int
    memory_id: int
    content: str
    importance: float
    tags: list[str]
    session_id: str
    said_by: str
    related_conversations: list[str]
    created_at: datetime
    updated_at: datetime
    pinned: bool
    shared_with: list[str]
    conflicts_with: list[int]
    made_by: str


@dataclass(frozen=True, slots=True)
class RememberedSpace:
    """How far a space of memories is; fields as in `models.events.app.AppMemoriesChanged`, but for these.

    Attributes:
        user_id: Whose space in the app; empty for the app's own.
        partition: Of `commands.v1`, …
        offset: … of the last event that the space knows.
    """

    app_id: str
    user_id: str
    space: str
    timestamp: datetime
    memories: int
    created: int
    compactions: int
    skipped: int
    edited: int
    waiting: int
    energy_units: float
    energy_capacity_units: float
    spent_units: float
    uninstalled: bool
    results: list[CommandResult]
    partition: int
    offset: int


def memory_points(event: AppMemoryChanged, offset: int, vector: Vectors) -> Iterable[Point]:
    """A memory that is there, and one point more for each app it is shared with; found by `vector` and its words."""
    key = point_key(event)
    words = document_vector(memory_words(event.content, event.tags, event.created_at))
    common: dict[str, PayloadValue] = {
        "event_offset": offset,
        "owner_key": key,
        "owner_app_id": event.app_id,
        "user_id": owner_of(event),
        "space": event.space,
        "slot": event.slot,
        "memory_id": event.memory_id,
        "content": event.content,
        "importance": event.importance,
        "created_at": event.created_at.isoformat(),
        "updated_at": event.updated_at.isoformat(),
        "pinned": int(event.pinned),
        "made_by": event.made_by,
    }
    own: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "owned": 1,
        "session_id": event.session_id,
        "said_by": event.user_id,
    }
    lists: dict[str, PayloadValue] = {field: _json(getattr(event, field)) for field in _LISTS}
    yield Point(key, vector, common | own | lists, words)
    untold: dict[str, PayloadValue] = {
        "owned": 0,
        "session_id": "",
        "said_by": "",
        "related_conversations": "[]",
        "conflicts_with": "[]",
    }
    for app in dict.fromkeys(event.shared_with):
        if app != event.app_id:
            told: dict[str, PayloadValue] = {"app_id": app, "tags": lists["tags"], "shared_with": _json([app])}
            yield Point(f"{key}@{app}", vector, common | untold | told, words)


def memory_words(content: str, tags: Sequence[str], created_at: datetime) -> str:
    """What a memory is found by, beside its meaning."""
    return " ".join([content, *tags, date_words(created_at)])


def remembered_memory(payload: Mapping[str, PayloadValue]) -> RememberedMemory:
    """A memory from what the store has of it."""
    lists = {field: msgspec.json.decode(str(payload[field])) for field in _LISTS}
    named = {"app_id": payload["owner_app_id"], "space_user_id": payload["user_id"], "pinned": bool(payload["pinned"])}
    return msgspec.convert({**payload, **lists, **named}, RememberedMemory)


def space_point(event: AppMemoriesChanged, offset: int, blank: Vectors) -> Point:
    """How far a space is; the vector `(dim,)` is zero."""
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "user_id": owner_of(event),
        "event_offset": offset,
        "space": event.space,
        "timestamp": event.timestamp.isoformat(),
        "memories": event.memories,
        "created": event.created,
        "compactions": event.compactions,
        "skipped": event.skipped,
        "edited": event.edited,
        "waiting": event.waiting,
        "energy_units": event.energy_units,
        "energy_capacity_units": event.energy_capacity_units,
        "spent_units": event.spent_units,
        "uninstalled": int(event.uninstalled),
        "results": _json(event.results),
        "partition": event.source.partition,
        "offset": event.source.offset,
    }
    return Point(point_key(event), blank, payload)


def remembered_space(payload: Mapping[str, PayloadValue]) -> RememberedSpace:
    """How far a space is from what the store has of it."""
    parts = {"results": msgspec.json.decode(str(payload["results"])), "uninstalled": bool(payload["uninstalled"])}
    return msgspec.convert({**payload, **parts}, RememberedSpace)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
