"""Requests and answers of commands on project memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from models.events.fields import Ratio, UtcTime
from models.events.project import CommandOutcome
from models.events.project_items import (
    MOST_CONTENT_CHARS,
    Category,
    ConversationChunk,
    ConversationStatus,
    ImportedMessage,
    ItemId,
    MemoryType,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectMemory,
    RelationType,
    Tags,
)
from streams.http.field_rules import Rules, given, never, some_of

MOST_IMPORTED = 200
"""Items of a kind in one request."""
_Content = Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS, pattern=r"\S")]
_Subject = Annotated[str, Meta(max_length=128, description="What a decision is about: two of one subject are rivals.")]


class AddMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something to know. What is known already is strengthened."""

    content: _Content
    type: MemoryType
    category: Category = ""
    tags: Tags = []
    subject: _Subject = ""
    importance: Annotated[Ratio, Meta(description="None: the type's default.")] | None = None
    valid_from: UtcTime | None = None
    valid_until: UtcTime | None = None


class EditProjectMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is to change of a memory; what is not named, or null, stays."""

    rules: ClassVar[Rules] = {
        **some_of(
            *map(given, ("content", "category", "tags", "importance", "valid_from", "valid_until", "archived")),
            given(reopened=True),
        ),
        **never(given("valid_until", reopened=True)),
    }
    content: _Content | None = None
    category: Category | None = None
    tags: Tags | None = None
    importance: Ratio | None = None
    valid_from: UtcTime | None = None
    valid_until: Annotated[UtcTime, Meta(description="Expire: from then on it does not hold.")] | None = None
    reopened: Annotated[bool, Meta(description="It has no end after all.")] = False
    archived: Annotated[bool, Meta(description="Put away, or restored.")] | None = None


class Relate(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A relationship of one memory to another; one that is there gets the strength."""

    source_id: ItemId
    target_id: ItemId
    relation: RelationType
    strength: Ratio = 1.0


class SetStatus(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A conversation starts, is paused or ends."""

    status: ConversationStatus
    summary: Annotated[str, Meta(max_length=2_000, description="What its end is told with.")] = ""


class ImportItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Items of a saved project; one that is there already is replaced, so a repeat changes nothing."""

    memories: Annotated[list[ProjectMemory], Meta(max_length=MOST_IMPORTED)] = []
    episodes: Annotated[list[ProjectEpisode], Meta(max_length=MOST_IMPORTED)] = []
    chunks: Annotated[list[ConversationChunk], Meta(max_length=MOST_IMPORTED)] = []
    conversations: Annotated[list[ProjectConversation], Meta(max_length=MOST_IMPORTED)] = []
    pending: Annotated[list[PendingFact], Meta(max_length=MOST_IMPORTED)] = []
    messages: Annotated[
        list[ImportedMessage],
        Meta(max_length=MOST_IMPORTED, description="At hand, of conversations that are there or come along."),
    ] = []


class DeedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it."""

    success: bool
    outcome: CommandOutcome
    """`unchanged`: it was so already. `not_found` of a deletion: it was gone already."""
    item_id: str = ""
    count: int = 0
    """Items that changed."""
    detail: str = ""
    memory: ProjectMemory | None = None
    """As it is now, where the deed was to one."""


class PendingDeed(Struct, frozen=True, kw_only=True):
    """It is in the log, and what comes of it is not seen yet."""

    success: Annotated[bool, Meta(description="Not yet.", examples=[False])]
    pending: bool
    request_id: str
    hint: str
