"""Events of a project's memory (seed 004): what changes it, and what it tells.

A project belongs to an app: the same id in two apps is two projects. It is folded under its key (`project_key`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.app import RequestId
from models.events.base import Identifier, Output, Ratio, Role, UtcTime, key_part
from models.events.project_items import (
    MOST_CONTENT_CHARS,
    Category,
    ConsolidationFigures,
    ConversationChunk,
    ConversationStatus,
    Count,
    ImportedMessage,
    ItemId,
    ItemKind,
    MemoryType,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectMemory,
    RelationType,
    Tags,
)

MOST_NAMED = 1_000
"""Ids that one event names."""
_Ids = Annotated[list[ItemId], Meta(min_length=1, max_length=MOST_NAMED)]


def project_key(app_id: str, project_id: str) -> str:
    """Key of everything that changes a project's memory.

    >>> project_key("shop/eu", "web/2")
    'project:shop%2Feu/web%2F2'
    """
    return f"project:{key_part(app_id)}/{key_part(project_id)}"


# --- in: commands.v1, key project:<app>/<project> ------------------------------------------------------------


class ProjectTurnAdded(Output, frozen=True, kw_only=True, tag="project_turn_added"):
    """A turn of a session of the project was counted."""

    project_id: str
    turn: int
    role: Role
    content: str


class ProjectConversationEnded(Output, frozen=True, kw_only=True, tag="project_conversation_ended"):
    """A session of the project ended, or fell silent (seed 004, `endConversation`)."""

    project_id: str
    status: ConversationStatus
    """`ended` if its end was told, `paused` if the session timed out."""
    reason: str
    last_turn: int


class ProjectCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what people, readers and the clock send to a project's memory."""

    app_id: Identifier
    project_id: Identifier
    timestamp: UtcTime


class MemoriesAccessed(ProjectCommand, frozen=True, kw_only=True, tag="memories_accessed", gc=False):
    """Readers retrieved these (seed 004, Access Recording): memories and episodes, as often as they are named."""

    ids: _Ids


class ProjectWorkDue(ProjectCommand, frozen=True, kw_only=True, tag="project_work_due", gc=False):
    """Written by a memory worker when a project's consolidation is due and nothing else arrives.

    The time that counts is that of its record, so that a replay sees the same clock.
    """


class ProjectDeed(ProjectCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what somebody does by hand. Each is answered in `ProjectChanged.results` and audited."""

    request_id: RequestId = ""
    by: Annotated[str, Meta(max_length=256)] = ""
    """Who: the name of the token's holder, never the token."""


class ProjectMemoryAdded(ProjectDeed, frozen=True, kw_only=True, tag="project_memory_added", gc=False):
    """Somebody knows something. What is known already is strengthened."""

    memory_type: MemoryType
    content: Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS)]
    category: Category = ""
    tags: Tags = []
    subject: Annotated[str, Meta(max_length=128)] = ""
    importance: Ratio | None = None
    """None: the type's default."""
    valid_from: UtcTime | None = None
    """None: the time of the command."""
    valid_until: UtcTime | None = None


class ProjectMemoryEdited(ProjectDeed, frozen=True, kw_only=True, tag="project_memory_edited", gc=False):
    """A memory is put right, expired, archived or restored; None leaves a field as it is."""

    memory_id: ItemId
    content: Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS)] | None = None
    category: Category | None = None
    tags: Tags | None = None
    importance: Ratio | None = None
    valid_from: UtcTime | None = None
    valid_until: UtcTime | None = None
    """Expire: from then on it does not hold."""
    reopened: bool = False
    """It has no end after all; not together with `valid_until`."""
    archived: bool | None = None


class ProjectMemoryDeleted(ProjectDeed, frozen=True, kw_only=True, tag="project_memory_deleted", gc=False):
    """A memory goes, with all relationships to it. One that is gone already: said so, no error."""

    memory_id: ItemId


class PendingFactDecided(ProjectDeed, frozen=True, kw_only=True, tag="pending_fact_decided", gc=False):
    """Somebody promotes a pending fact, or discards it (seed 004, Fact Lifecycle: manual)."""

    pending_id: ItemId
    promoted: bool


class RelationshipSet(ProjectDeed, frozen=True, kw_only=True, tag="relationship_set", gc=False):
    """Somebody relates two memories, or takes it back."""

    source_id: ItemId
    target_id: ItemId
    relation: RelationType
    strength: Ratio | None = 1.0
    """None: the relationship goes."""


class ConversationStatusSet(ProjectDeed, frozen=True, kw_only=True, tag="conversation_status_set", gc=False):
    """Somebody starts, pauses or ends a conversation of the project; its turns still come as turns."""

    conversation_id: Identifier
    status: ConversationStatus
    summary: Annotated[str, Meta(max_length=2_000)] = ""


class ConsolidationAsked(ProjectDeed, frozen=True, kw_only=True, tag="consolidation_asked", gc=False):
    """A consolidation is wanted now; it also runs by itself (seed 004, Memory Consolidation)."""


class ProjectImported(ProjectDeed, frozen=True, kw_only=True, tag="project_imported", gc=False):
    """Items of a saved project, as `turntide project export` wrote them. An item that is there already is replaced."""

    memories: Annotated[list[ProjectMemory], Meta(max_length=200)] = []
    episodes: Annotated[list[ProjectEpisode], Meta(max_length=200)] = []
    chunks: Annotated[list[ConversationChunk], Meta(max_length=200)] = []
    conversations: Annotated[list[ProjectConversation], Meta(max_length=200)] = []
    pending: Annotated[list[PendingFact], Meta(max_length=200)] = []
    messages: Annotated[list[ImportedMessage], Meta(max_length=200)] = []
    """Those at hand, of conversations that are there or come along."""


ProjectEvent = (
    ProjectTurnAdded
    | ProjectConversationEnded
    | MemoriesAccessed
    | ProjectWorkDue
    | ProjectMemoryAdded
    | ProjectMemoryEdited
    | ProjectMemoryDeleted
    | PendingFactDecided
    | RelationshipSet
    | ConversationStatusSet
    | ConsolidationAsked
    | ProjectImported
)


# --- out -----------------------------------------------------------------------------------------------------

ItemCause = Literal[
    "created",
    "said_again",
    "edited",
    "superseded",
    "related",
    "accessed",
    "decayed",
    "archived",
    "restored",
    "merged",
    "promoted",
    "continued",
    "imported",
    "deleted",
    "displaced",
    "erased",
]
"""`continued`: a conversation went on. `decayed`: a consolidation brought the decay factor up to date. `restored`: back
from the archived, or valid again as what had superseded it is gone. `displaced`: there were more than may be kept."""


class ProjectItemChanged(Output, frozen=True, kw_only=True, tag="project_item_changed"):
    """A memory, episode, chunk, conversation or pending fact came, changed or went. Compacted by kind and slot.

    Of the five only that of the event's kind is there, none if it went: its text goes with it. `session_id` and
    `user_id` say where it was said first; of an erased one they are empty.
    """

    project_id: str
    revision: int
    """Of the project; rises with every event that changes it."""
    kind: ItemKind
    slot: int
    """Of its kind, from 0: what comes next into it replaces what was there, so the topic stays small."""
    item_id: str
    active: bool
    """False: it is gone."""
    cause: ItemCause
    memory: ProjectMemory | None = None
    episode: ProjectEpisode | None = None
    chunk: ConversationChunk | None = None
    conversation: ProjectConversation | None = None
    pending: PendingFact | None = None


DeedOutcome = Literal["done", "unchanged", "not_found", "too_long", "too_many", "invalid"]


class DeedResult(Struct, frozen=True, kw_only=True, gc=False):
    """What a command by hand came to."""

    request_id: str
    outcome: DeedOutcome
    item_id: str = ""
    """What it made or changed."""
    detail: str = ""
    """Why it was refused; names no text."""
    count: int = 0
    """Items that it changed."""


class ProjectChanged(Output, frozen=True, kw_only=True, tag="project_changed"):
    """How far a project is, after each event that changed it, behind its items. Compacted by project."""

    project_id: str
    revision: int
    born: str
    """Names this life of the project: one that was erased and came again has another."""
    turn_count: Count
    conversations: Count
    """Kept ones, like the following four."""
    memories: Count
    archived: Count
    episodes: Count
    pending: Count
    chunks: Count
    created: Count
    """Memories of all time."""
    consolidated_at: UtcTime | None
    """When the last consolidation ended."""
    consolidated: ConsolidationFigures | None = None
    """What it came to."""
    seen: dict[str, int]
    """Partition of `turns.v1` → offset of the last of its turns that is in."""
    results: list[DeedResult]
    """Of the last commands by hand, the newest last."""


class ProjectConsolidated(Output, frozen=True, kw_only=True, tag="project_consolidated"):
    """A consolidation ended (seed 004, `ConsolidationResult`), with what became of what."""

    project_id: str
    run: Count
    """Counts the project's consolidations."""
    cause: Literal["scheduled", "asked"]
    started_at: UtcTime
    memories_looked_at: Count
    decay_updated: Count
    """Memories whose stored factor changed."""
    memories_archived: Count
    archived_ids: list[str]
    """At most as many as the policy names; the others say so themselves (`cause` archived)."""
    episodes_merged: Count
    merged: list[list[str]]
    """Of each merge the episode that stayed, then those that went into it."""
    pending_dropped: Count
    tokens_reclaimed: Count


class ProjectAudited(Output, frozen=True, kw_only=True, tag="project_audited"):
    """Somebody did something to a project's memory by hand."""

    project_id: str
    action: str
    """The command's name, for instance `project_memory_edited`."""
    item_id: str
    by: str
    request_id: str
    outcome: str
    count: int


ProjectOutput = ProjectItemChanged | ProjectChanged | ProjectConsolidated | ProjectAudited
ProjectForwarded = ProjectTurnAdded | ProjectConversationEnded
"""What the sessions role sends."""
