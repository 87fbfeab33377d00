"""Requests and answers of the routes over app memory, under the source names and scales.

Importance is 0-10 here and 0-1 everywhere else. Times are UTC, RFC 3339.
"""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from models.events.app import MOST_MEMORY_CHARS, AppMemoryChanged
from models.events.fields import Identifier, UtcTime
from models.policy.app import MOST_LISTED
from streams.api.answers import answered
from streams.http.field_rules import Rules, given, some_of

EXPORT_FORMAT = "turntide.app-memories"
EXPORT_VERSION = 1
SCALE = 10
"""Importance here for one inside."""

Importance = Annotated[float, Meta(ge=0.0, le=10.0, description="Importance, 0-10.")]
Tag = Annotated[str, Meta(min_length=1, max_length=64)]


# --- requests


class EditMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Changes to a memory. Omitted and null fields stay unchanged."""

    rules: ClassVar[Rules] = some_of(*map(given, ("content", "importance", "tags", "pinned", "sharedWith")))
    content: (
        Annotated[str, Meta(min_length=1, max_length=MOST_MEMORY_CHARS, pattern=r"\S", description="New text.")] | None
    ) = None
    importance: Importance | None = None
    tags: Annotated[list[Tag], Meta(max_length=MOST_LISTED)] | None = None
    pinned: Annotated[bool, Meta(description="Whether compaction never removes it.")] | None = None
    shared_with: (
        Annotated[list[Identifier], Meta(max_length=MOST_LISTED, description="All other apps that may read it.")] | None
    ) = None


class UninstallApp(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Uninstallation of an app. Its memories are kept by default."""

    purge_memories: bool = False


class SetInjection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Setting: whether all prompts of an app begin with its memories."""

    inject: Annotated[bool | None, Meta(description="Null: the policy's `apps.inject`.")]


# --- answers


class MemoryMetadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """Metadata of a memory (`AppMemory.metadata` of the source)."""

    importance: Importance
    tags: list[str]
    related_conversations: list[str]


class MemoryAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A memory of an app (`AppMemory` of the source), with further fields."""

    id: int
    app_id: str
    """App that owns it."""
    content: str
    created_at: UtcTime
    updated_at: UtcTime
    source_conversation_id: str
    metadata: MemoryMetadata
    pinned: bool
    shared_with: list[str]
    conflicts_with: list[int]
    """Ids of conflicting memories of the same app."""
    made_by: str


class FoundMemory(MemoryAnswer, frozen=True, kw_only=True, rename="camel"):
    """A search result with its score."""

    score: float
    """Comparable within one response only."""


class Memories(Struct, frozen=True, kw_only=True):
    """Memories, latest update first."""

    memories: list[MemoryAnswer]


class FoundMemories(Struct, frozen=True, kw_only=True):
    """Memories, best first."""

    memories: list[FoundMemory]


class Deleted(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Result of deleting a memory."""

    success: bool
    deleted_count: int | None = None
    """0 if it was already deleted, else omitted."""
    already_gone: bool = False


class Purged(Struct, frozen=True, kw_only=True, rename="camel"):
    """Result of deleting all memories."""

    success: bool
    deleted_count: int


class Edited(Struct, frozen=True, kw_only=True):
    """Result of editing a memory: its new state."""

    success: bool
    memory: MemoryAnswer | None
    """Null if it was deleted in the meantime."""


class Uninstalled(Struct, frozen=True, kw_only=True, rename="camel"):
    """Result of uninstalling an app."""

    success: bool
    purged: bool
    deleted_count: int


class InjectionSet(Struct, frozen=True, kw_only=True):
    """New setting for the prompts of an app."""

    success: bool
    inject: bool | None


class Pending(Struct, frozen=True, kw_only=True, rename="camel"):
    """The command is accepted, but its result is not visible yet."""

    success: Annotated[bool, Meta(description="Always false.", examples=[False])]
    pending: bool
    request_id: str
    hint: str


class Exported(Struct, frozen=True, kw_only=True, rename="camel"):
    """Export of all memories of a space."""

    format: str
    version: int
    app_id: str
    user_id: str
    """Empty for the app's own."""
    exported_at: UtcTime
    memories: list[MemoryAnswer]


def memory_answer(memory: AppMemoryChanged) -> MemoryAnswer:
    """A memory as it is answered."""
    importance = round(memory.importance * SCALE, 2)
    return answered(
        MemoryAnswer,
        memory,
        id=memory.memory_id,
        source_conversation_id=memory.session_id,
        metadata=answered(MemoryMetadata, memory, importance=importance),
    )


def now_utc() -> datetime:
    """The clock of the routes."""
    return datetime.now(UTC)
