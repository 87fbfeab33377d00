"""Payloads of projects' points, and events read back from them.

| collection | kind | found by |
|---|---|---|
| project_items | memory, episode, chunk | likeness and words |
| projects | conversation, pending, and how far each project is | filters alone |

A payload has the event's JSON beside the scalars that are filtered by. What went stays as a point without text and
without names (`active` 0), so that readers who hold a view of the project hear of it; it goes when its slot is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, cast

import msgspec

from models.entities import entity_key
from models.events import (
    ConversationChunk,
    DeedResult,
    PendingFact,
    ProjectChanged,
    ProjectConversation,
    ProjectEpisode,
    ProjectItem,
    ProjectItemChanged,
    ProjectMemory,
)
from models.retrieval.lexical import date_words, document_vector
from models.retrieval.relevance import Findable, FoundKind, searched_text, told_text
from streams.index.user_points import PERMILLE, point_key
from streams.ports import PayloadValue, Point, Vectors

PROJECT_ITEMS, PROJECTS = "project_items", "projects"
EMBEDDED = ("memory", "episode", "chunk")
"""Kinds that are found by what they say."""
STANDINGS = "projects"
"""`owner_key` of how far projects are; that of an item is its project's key."""
Payload = Mapping[str, PayloadValue]
_Told = TypeVar("_Told", ProjectItemChanged, ProjectChanged)

_item_event = msgspec.json.Decoder(ProjectItemChanged)
_standing_event = msgspec.json.Decoder(ProjectChanged)


@dataclass(frozen=True, slots=True)
class RememberedProject:
    """How far a project is; fields as in `models.events.project.ProjectChanged`, but for these.

    Attributes:
        partition: Of `commands.v1`, …
        offset: … of the last event that the project knows.
    """

    app_id: str
    project_id: str
    timestamp: datetime
    revision: int
    born: str
    turn_count: int
    conversations: int
    memories: int
    archived: int
    episodes: int
    pending: int
    chunks: int
    created: int
    consolidated_at: datetime | None
    results: list[DeedResult]
    partition: int
    offset: int


def item_of(event: ProjectItemChanged) -> ProjectItem | None:
    """What is there; None if it went."""
    found: ProjectItem | None = getattr(event, event.kind)
    return found if event.active else None


def embedded_text(event: ProjectItemChanged) -> str:
    """What an item is embedded by; nothing of one that went, or that only filters find."""
    item = item_of(event)
    return told_text(item) if isinstance(item, Findable) else ""


def item_words(event: ProjectItemChanged) -> str:
    """What an item is found by, beside its meaning: its words, and the day of which it speaks."""
    item = item_of(event)
    if not isinstance(item, Findable):
        return ""
    day = item.valid_from if isinstance(item, ProjectMemory) else item.started_at
    return f"{searched_text(item)}\n{date_words(day)}"


def sessions_of(payload: Payload) -> list[str]:
    """Sessions that a point names: where its item was said. What went names none, nor does a project's standing."""
    if payload["owner_key"] == STANDINGS:
        return []
    event = item_event(payload)
    match item_of(event):
        case ProjectMemory() as memory:
            named = [source.conversation_id for source in memory.sources]
        case ProjectEpisode() | ConversationChunk() as part:
            named = [part.conversation_id]
        case ProjectConversation() as conversation:
            named = [conversation.id]
        case PendingFact() as fact:
            named = [fact.source.conversation_id]
        case _:
            named = []
    return [event.session_id, *named]


def item_point(event: ProjectItemChanged, offset: int, vector: Vectors) -> Point:
    """An item, or that it went.

    Args:
        event: The last of its slot.
        offset: Of the event's record.
        vector: `(dim,)`, of `embedded_text`.
    """
    item = item_of(event)
    if item is None:
        event = _unnamed(event)
        if event.kind == "conversation":  # its id is that of a session
            event = msgspec.structs.replace(event, item_id="")
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "project_id": event.project_id,
        "owner_key": entity_key(event),
        "event_offset": offset,
        "revision": event.revision,
        "kind": event.kind,
        "slot": event.slot,
        "item_id": event.item_id,
        "active": int(item is not None),
        "archived": 0,
        "event": msgspec.json.encode(event).decode(),
    }
    if isinstance(item, ProjectMemory):
        payload |= {"memory_type": item.type.value, "category": item.category, "archived": int(item.archived)}
        payload["importance_permille"] = round(item.importance * PERMILLE)
    if isinstance(item, ProjectEpisode):
        payload["importance_permille"] = round(item.significance * PERMILLE)
    words = document_vector(item_words(event)) if event.kind in EMBEDDED else None
    return Point(point_key(event), vector, payload, words)


def item_event(payload: Payload) -> ProjectItemChanged:
    """The event of an item's point."""
    return _item_event.decode(str(payload["event"]))


def slot_of_key(key: str) -> tuple[FoundKind, int]:
    """Kind and slot of a point that a search found.

    >>> slot_of_key("project:a/web/memory/7")
    ('memory', 7)
    """
    _, kind, slot = key.rsplit("/", 2)
    return cast("FoundKind", kind), int(slot)


def standing_point(event: ProjectChanged, offset: int, blank: Vectors) -> Point:
    """How far a project is; the vector `(dim,)` is zero."""
    event = _unnamed(event)
    payload: dict[str, PayloadValue] = {
        "app_id": event.app_id,
        "project_id": event.project_id,
        "owner_key": STANDINGS,
        "event_offset": offset,
        "revision": event.revision,
        "event": msgspec.json.encode(event).decode(),
    }
    return Point(point_key(event), blank, payload)


def standing_event(payload: Payload) -> ProjectChanged:
    """The event of a standing's point."""
    return _standing_event.decode(str(payload["event"]))


def remembered_project(event: ProjectChanged) -> RememberedProject:
    """How far a project is, as readers are told."""
    given = {field: getattr(event, field) for field in RememberedProject.__slots__ if hasattr(event, field)}
    return RememberedProject(**given, partition=event.source.partition, offset=event.source.offset)


def _unnamed(event: _Told) -> _Told:
    return msgspec.structs.replace(event, session_id="", user_id="")
