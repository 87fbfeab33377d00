"""What a project's memory is made of (seed 004): memories, relationships, episodes, chunks, conversations, facts.

The state keeps these, events carry them, readers and files have them: one form, so that nothing is lost on the way.
Times are aware UTC. Importance, confidence, strength, significance and decay lie in 0-1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.base import Ratio, Role, UtcTime

MOST_CONTENT_CHARS = 4_000
"""Of a memory in a command; the policy keeps fewer."""
MOST_MESSAGE_CHARS = 16_000
"""Of a message in an import: the most that any policy keeps of one."""
ItemId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9]+-[a-z0-9]+$")]
"""Sortable by event time, and deterministic (`models.events.ids.sortable_id`): `mf0k3x2a-9c1d22ab`."""
RelationType = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]
"""How a memory stands to another: `related_to`, `depends_on`, `contradicts`, `supersedes`, or any name so spelled."""
Tags = Annotated[list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=32)]
Category = Annotated[str, Meta(max_length=64)]
Valence = Annotated[float, Meta(ge=-1.0, le=1.0)]
Count = Annotated[int, Meta(ge=0, le=2**53)]

RELATED_TO, DEPENDS_ON, CONTRADICTS, SUPERSEDES = "related_to", "depends_on", "contradicts", "supersedes"


class MemoryType(StrEnum):
    """Kinds of long-term memories (seed 004, Memory Types)."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    ENTITY = "entity"
    PROCEDURE = "procedure"
    CONSTRAINT = "constraint"
    GOAL = "goal"


class EpisodeKind(StrEnum):
    """Kinds of episodes (seed 004, Episode Types)."""

    DECISION_MADE = "decision_made"
    PROBLEM_SOLVED = "problem_solved"
    BREAKTHROUGH = "breakthrough"
    ISSUE_IDENTIFIED = "issue_identified"
    TASK_COMPLETED = "task_completed"
    PIVOT = "pivot"


ConversationStatus = Literal["active", "paused", "ended"]
"""`paused`: it fell silent (the session timed out); its next turn makes it active again."""
Origin = Literal["rules", "hand", "import"]


class MemorySource(Struct, frozen=True, kw_only=True, gc=False):
    """Where something was said (seed 004, `MemorySource`)."""

    conversation_id: str = ""
    """The session; empty for what was written by hand."""
    turn: int = 0
    role: str = ""
    user_id: str = ""
    said_at: UtcTime
    by: Origin = "rules"


class Relationship(Struct, frozen=True, kw_only=True, gc=False):
    """An edge to another memory of the project, kept with the one it goes out from (seed 004, Relationship Graphs)."""

    target_id: ItemId
    type: RelationType
    strength: Ratio = 1.0
    created_at: UtcTime
    origin: Origin = "rules"


class MemoryRevision(Struct, frozen=True, kw_only=True, gc=False):
    """What was known of a memory before it was put right: stood from `recorded_at` until the next one's.

    Time of the world (`valid_from`, `valid_until`) and time of knowing (`recorded_at`) are two axes.
    """

    recorded_at: UtcTime
    content: str
    importance: float
    valid_from: UtcTime
    valid_until: UtcTime | None


class ProjectMemory(Struct, frozen=True, kw_only=True):
    """A long-term memory (seed 004, `LongTermMemory` with its `ItemMetadata`)."""

    id: ItemId
    type: MemoryType
    content: Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS)]
    category: Category = ""
    tags: Tags = []
    subject: Annotated[str, Meta(max_length=128)] = ""
    """What a decision, preference or constraint is about, as words in a fixed form: two of one subject are rivals."""
    importance: Ratio
    confidence: Ratio = 1.0
    archived: bool = False
    """Put away by a consolidation: not found any longer unless asked for, and can be restored."""
    valid_from: UtcTime
    valid_until: UtcTime | None = None
    """Held before it, not at it."""
    closed_by: str = ""
    """The memory that superseded it; empty where nothing did."""
    recorded_at: UtcTime
    """When the present content and validity became known."""
    created_at: UtcTime
    updated_at: UtcTime
    sources: Annotated[list[MemorySource], Meta(max_length=64)] = []
    """Where it was said, the first time first."""
    mentions: Count = 1
    """How often it was said; the same content again strengthens."""
    access_count: Count = 0
    last_accessed_at: UtcTime
    decay_factor: Ratio = 1.0
    """As of its last access or consolidation; readers compute the present one (`memory.long_term.decay_at`)."""
    tokens: Count = 0
    relationships: Annotated[list[Relationship], Meta(max_length=256)] = []
    """Outgoing."""
    history: Annotated[list[MemoryRevision], Meta(max_length=64)] = []
    """Earlier states of knowledge, the oldest first."""


class ProjectEpisode(Struct, frozen=True, kw_only=True):
    """A key moment of a conversation (seed 004, `EpisodicMemory`)."""

    id: ItemId
    kind: EpisodeKind
    title: str
    summary: str
    context: str = ""
    """What was spoken of when it happened."""
    participants: list[str] = []
    outcome: str | None = None
    emotional_valence: Valence = 0.0
    significance: Ratio
    linked_memories: list[str] = []
    conversation_id: str
    first_turn: Count
    last_turn: Count
    """Both inside."""
    started_at: UtcTime
    ended_at: UtcTime
    merged_ids: list[str] = []
    """Episodes that were merged into this one."""
    access_count: Count = 0
    last_accessed_at: UtcTime
    tokens: Count = 0


class ConversationChunk(Struct, frozen=True, kw_only=True):
    """Messages that left the short term, compressed (seed 004, `ConversationChunk`); the archive has the originals."""

    id: ItemId
    conversation_id: str
    first_number: Count
    """Chunks of a conversation are numbered from 1; of merged ones the first …"""
    last_number: Count
    """… and the last."""
    first_turn: Count
    last_turn: Count
    messages: Count
    """So many are in it."""
    summary: str
    key_topics: list[str] = []
    token_count: Count
    """Of the originals."""
    summary_tokens: Count
    started_at: UtcTime
    ended_at: UtcTime
    created_at: UtcTime


class ProjectConversation(Struct, frozen=True, kw_only=True):
    """A conversation of a project: a session (seed 004, `Conversation`)."""

    id: str
    status: ConversationStatus
    started_at: UtcTime
    last_at: UtcTime
    ended_at: UtcTime | None = None
    total_turns: Count
    recent: list[int]
    """Numbers of the turns that are at hand verbatim, in order."""
    chunks: Count
    """Present ones."""
    active_facts: list[str] = []
    """Memories that were said in it, the latest last."""
    milestones: list[str] = []
    """Its episodes, the latest last."""
    summary: str = ""
    """What its end was told with (seed 004, `endConversation`)."""


class PendingFact(Struct, frozen=True, kw_only=True):
    """Something that was said and is not sure enough to be a memory (seed 004, `ExtractedFact`)."""

    id: ItemId
    content: str
    type: MemoryType
    confidence: Ratio
    category: Category = ""
    subject: str = ""
    tags: Tags = []
    source: MemorySource
    """`sourceMessageId` is its conversation and turn."""
    extracted_at: UtcTime
    doubts: list[str] = []
    """What lowered the confidence: `question`, `negated`, `hypothetical`, `third_person` …"""


class ImportedMessage(Struct, frozen=True, kw_only=True):
    """A message at hand of a conversation that is imported: later it becomes part of a chunk."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)]
    turn: Count
    role: Role
    user_id: Annotated[str, Meta(max_length=256)] = ""
    content: Annotated[str, Meta(max_length=MOST_MESSAGE_CHARS)]
    timestamp: UtcTime


class ConsolidationFigures(Struct, frozen=True, kw_only=True, gc=False):
    """What a consolidation came to. Fields as in `models.events.project.ProjectConsolidated`."""

    run: Count
    memories_looked_at: Count
    decay_updated: Count
    memories_archived: Count
    episodes_merged: Count
    pending_dropped: Count
    tokens_reclaimed: Count


ItemKind = Literal["memory", "episode", "chunk", "conversation", "pending"]
ProjectItem = ProjectMemory | ProjectEpisode | ConversationChunk | ProjectConversation | PendingFact
