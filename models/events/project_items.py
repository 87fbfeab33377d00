"""Types of project memory: memories, relationships, episodes, chunks, conversations, pending facts.

The state keeps these, events carry them, readers and files have them: one form, so that nothing is lost on the way.
Times are aware UTC. Importance, confidence, strength, significance and decay lie in 0-1.
"""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.base import Role
from models.events.fields import *

MOST_CONTENT_CHARS = 4_000
"""Of a memory in a command; the policy keeps fewer."""
MOST_MESSAGE_CHARS = 16_000
"""Of a message in an import: the most that any policy keeps of one."""
ItemId = Annotated[
    str, about(privacy=IDENTIFIER, names="item", min_length=1, max_length=64, pattern=r"^[a-z0-9]+-[a-z0-9]+$")
]
"""Sortable by event time, and deterministic (`models.events.ids.sortable_id`): `mf0k3x2a-9c1d22ab`."""
ItemIds = Annotated[list[str], about(privacy=IDENTIFIER, names="item")]
RelationType = Annotated[str, about(privacy=BEHAVIOUR, min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]
"""How a memory stands to another: `related_to`, `depends_on`, `contradicts`, `supersedes`, or any name so spelled."""
Tags = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=64)]], about("Tags of the item.", CONTENT, max_length=32)
]
Category = Annotated[str, about("Category, freely chosen; empty: none.", BEHAVIOUR, max_length=64)]
Remembered = Annotated[
    str, about("Text of the memory, in a sentence.", CONTENT, min_length=1, max_length=MOST_CONTENT_CHARS)
]
Subject = Annotated[
    str, about("Subject in a normalised form; a newer memory of the same subject supersedes.", CONTENT, max_length=128)
]
ValidFrom = Annotated[UtcTime, about("Start of the validity in the real world.")]
ValidUntil = Annotated[UtcTime | None, about("End of the validity in the real world; null: none.")]
_SummarisedBy = Annotated[
    str,
    about("Summariser: `extractive`, or a model's name; after a merge that of the remaining episode.", OPERATIONAL),
]
Valence = Annotated[float, about(privacy=BEHAVIOUR, unit="-1 to 1", ge=-1.0, le=1.0)]

RELATED_TO, DEPENDS_ON, CONTRADICTS, SUPERSEDES = "related_to", "depends_on", "contradicts", "supersedes"


class MemoryType(StrEnum):
    """Type of a long-term memory."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    ENTITY = "entity"
    PROCEDURE = "procedure"
    CONSTRAINT = "constraint"
    GOAL = "goal"


class EpisodeKind(StrEnum):
    """Kind of an episode."""

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
    """Source of a memory: where it was said."""

    conversation_id: Annotated[SessionId, about("Id of the session in which it was said; empty: by hand.")] = ""
    turn: Annotated[TurnIndex, about("Turn number in the session.")] = 0
    role: Annotated[str, about("Role of the speaker.", BEHAVIOUR)] = ""
    user_id: Annotated[UserId, about("Id of the user who said it; empty: by hand.")] = ""
    said_at: Annotated[UtcTime, about("Event time of the turn.")]
    by: Annotated[Origin, about("Origin: found by rules, added by hand, or imported.", BEHAVIOUR)] = "rules"


class Relationship(Struct, frozen=True, kw_only=True, gc=False):
    """A directed relationship to another memory of the project, stored with its source."""

    target_id: Annotated[ItemId, about("Id of the target memory.")]
    type: Annotated[RelationType, about("Type of the relationship, e.g. depends_on.")]
    strength: Annotated[Ratio, about("Strength, 0-1.")] = 1.0
    created_at: Annotated[UtcTime, about("Creation time.")]
    origin: Annotated[Origin, about("Origin: by rules, by hand, or imported.", BEHAVIOUR)] = "rules"


class MemoryRevision(Struct, frozen=True, kw_only=True, gc=False):
    """An earlier version of a memory, current from `recorded_at` until that of the next version.

    Valid time (`valid_from`, `valid_until`) and transaction time (`recorded_at`) are two time axes.
    """

    recorded_at: Annotated[UtcTime, about("Transaction time: start of this version.")]
    content: Annotated[str, about("Text of this version.", CONTENT)]
    importance: Annotated[Share, about("Importance in this version, 0-1.")]
    valid_from: ValidFrom
    valid_until: ValidUntil


class ProjectMemory(Struct, frozen=True, kw_only=True):
    """A long-term memory."""

    id: Annotated[ItemId, about("Id of the memory; sorts by event time.")]
    type: Annotated[MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)]
    content: Remembered
    category: Category = ""
    tags: Tags = []
    subject: Subject = ""
    importance: Annotated[Ratio, about("Importance, 0-1.")]
    confidence: Annotated[Ratio, about("Confidence of the rules, 0-1; 1 if added by hand.")] = 1.0
    archived: Annotated[bool, about("Whether it is archived: only found on request.", BEHAVIOUR)] = False
    valid_from: ValidFrom
    valid_until: ValidUntil = None
    closed_by: Annotated[str, about("Id of the memory that superseded it; empty: none.", IDENTIFIER, names="item")] = ""
    recorded_at: Annotated[UtcTime, about("Transaction time of the present content and validity.")]
    created_at: Annotated[UtcTime, about("Creation time of the memory.")]
    updated_at: Annotated[UtcTime, about("Time of the last change.")]
    sources: Annotated[list[MemorySource], about("Where it was said, earliest first.", IDENTIFIER, max_length=64)] = []
    mentions: Annotated[Count, about("Number of times it was said.")] = 1
    access_count: Annotated[Count, about("Number of accesses.")] = 0
    last_accessed_at: Annotated[UtcTime, about("Time of the last access; without one, when it was said.")]
    decay_factor: Annotated[Ratio, about("Decay factor, 0-1, as of the last access or consolidation.")] = 1.0
    tokens: Annotated[Count, about("Tokens of the content.", unit="tokens")] = 0
    relationships: Annotated[list[Relationship], about("Outgoing relationships.", IDENTIFIER, max_length=256)] = []
    history: Annotated[list[MemoryRevision], about("Earlier versions, oldest first.", CONTENT, max_length=64)] = []


class ProjectEpisode(Struct, frozen=True, kw_only=True):
    """A key moment of a conversation."""

    id: Annotated[ItemId, about("Id of the episode; sorts by event time.")]
    kind: Annotated[
        EpisodeKind,
        about("Decision made, problem solved, breakthrough, issue identified, task completed or pivot.", BEHAVIOUR),
    ]
    title: Annotated[str, about("What happened, in a few words.", CONTENT)]
    summary: Annotated[str, about("What happened, in a few sentences.", CONTENT)]
    summarised_by: _SummarisedBy = "extractive"
    context: Annotated[str, about("Topic of the conversation when it happened.", CONTENT)] = ""
    participants: Annotated[list[str], about("Participants: users and roles.", IDENTIFIER, names="user")] = []
    outcome: Annotated[str | None, about("Outcome; null: none yet.", CONTENT)] = None
    emotional_valence: Annotated[Valence, about("Mood, from -1 (bad) to 1 (good).")] = 0.0
    significance: Annotated[Ratio, about("Significance for the project, 0-1.")]
    linked_memories: Annotated[ItemIds, about("Ids of the memories that resulted from it.")] = []
    conversation_id: Annotated[SessionId, about("Id of the session in which it happened.")]
    first_turn: Annotated[Count, about("Lowest turn number of the range, inclusive.", unit="turn number")]
    last_turn: Annotated[Count, about("Highest turn number of the range, inclusive.", unit="turn number")]
    started_at: Annotated[UtcTime, about("Event time of its first turn.")]
    ended_at: Annotated[UtcTime, about("Event time of its last turn.")]
    merged_ids: Annotated[ItemIds, about("Ids of the episodes merged into it.")] = []
    access_count: Annotated[Count, about("Number of accesses.")] = 0
    last_accessed_at: Annotated[UtcTime, about("Time of the last access; without one, when it happened.")]
    tokens: Annotated[Count, about("Tokens of title and summary.", unit="tokens")] = 0


class ConversationChunk(Struct, frozen=True, kw_only=True):
    """Compressed messages that left the short-term tier; the archive has the originals."""

    id: Annotated[ItemId, about("Id of the chunk; sorts by event time.")]
    conversation_id: Annotated[SessionId, about("Id of the session of the messages.")]
    first_number: Annotated[
        Count, about("Number in the conversation, from 1; of merged chunks the first.", unit="number")
    ]
    last_number: Annotated[Count, about("Number in the conversation; of merged chunks the last.", unit="number")]
    first_turn: Annotated[Count, about("Lowest turn number of the range, inclusive.", unit="turn number")]
    last_turn: Annotated[Count, about("Highest turn number of the range, inclusive.", unit="turn number")]
    messages: Annotated[Count, about("Number of messages.")]
    summary: Annotated[str, about("Summary of the messages; of merged chunks `Earlier: … Then: …`.", CONTENT)]
    summarised_by: _SummarisedBy = "extractive"
    key_topics: KeyTopics = []
    token_count: Annotated[Count, about("Tokens of the original messages.", unit="tokens")]
    summary_tokens: Annotated[Count, about("Tokens of the summary.", unit="tokens")]
    started_at: Annotated[UtcTime, about("Event time of the first message.")]
    ended_at: Annotated[UtcTime, about("Event time of the last message.")]
    created_at: Annotated[UtcTime, about("Event time of the turn that completed it.")]


class ProjectConversation(Struct, frozen=True, kw_only=True):
    """A conversation of a project: a session."""

    id: Annotated[SessionId, about("Id of the session.")]
    status: Annotated[ConversationStatus, about("Status: active, paused (timed out) or ended.", BEHAVIOUR)]
    started_at: Annotated[UtcTime, about("Event time of its first turn.")]
    last_at: Annotated[UtcTime, about("Event time of the latest turn.")]
    ended_at: Annotated[UtcTime | None, about("Event time of the end; null while active or paused.")] = None
    total_turns: Annotated[Count, about("Number of turns ever received.")]
    recent: Annotated[list[int], about("Numbers of the turns kept verbatim, in order.", BEHAVIOUR)]
    chunks: Annotated[Count, about("Number of its kept chunks.")]
    active_facts: Annotated[ItemIds, about("Ids of the memories said in it, latest last.")] = []
    milestones: Annotated[ItemIds, about("Ids of its episodes, latest last.")] = []
    summary: Annotated[str, about("Summary given when it ended; empty: none.", CONTENT)] = ""


class PendingFact(Struct, frozen=True, kw_only=True):
    """A fact whose confidence is too low for a memory."""

    id: Annotated[ItemId, about("Id of the pending fact; sorts by event time.")]
    content: Annotated[str, about("Text of the fact.", CONTENT)]
    type: Annotated[MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)]
    confidence: Annotated[Ratio, about("Confidence of the rules, 0-1; repetition raises it.")]
    category: Category = ""
    subject: Annotated[str, about("Subject, as normalised words.", CONTENT)] = ""
    tags: Tags = []
    source: Annotated[MemorySource, about("Where it was said.", IDENTIFIER)]
    extracted_at: Annotated[UtcTime, about("Event time of the last turn that said it.")]
    doubts: Annotated[list[str], about("Reasons for the lower confidence: question, negated and others.", CONTENT)] = []


class ImportedMessage(Struct, frozen=True, kw_only=True):
    """A recent message of an imported conversation. It later becomes part of a chunk."""

    conversation_id: Annotated[SessionId, about("Id of the message's session.", min_length=1, max_length=256)]
    turn: Annotated[Count, about("Turn number in the session.", unit="turn number")]
    role: Annotated[Role, about("Role of the speaker.", BEHAVIOUR)]
    user_id: Annotated[UserId, about("Id of the user; empty: unknown.", max_length=256)] = ""
    content: Annotated[str, about("Text of the message.", CONTENT, max_length=MOST_MESSAGE_CHARS)]
    timestamp: Annotated[UtcTime, about("Event time of the message.")]


class ConsolidationFigures(Struct, frozen=True, kw_only=True, gc=False):
    """Result of a consolidation. Fields as in `models.events.project.ProjectConsolidated`."""

    run: Annotated[Count, about("Number of the project's consolidation, starting at 1.", OPERATIONAL, unit="number")]
    memories_looked_at: Annotated[Count, about("Number of examined memories.")]
    decay_updated: Annotated[Count, about("Number of memories whose stored decay factor changed.")]
    memories_archived: Annotated[Count, about("Archived memories: old, importance × decay below the limit.")]
    episodes_merged: Annotated[Count, about("Number of episodes merged into another.")]
    pending_dropped: Annotated[Count, about("Number of expired pending facts.")]
    tokens_reclaimed: Annotated[Count, about("Tokens of archived items, and tokens saved by merging.", unit="tokens")]


ItemKind = Literal["memory", "episode", "chunk", "conversation", "pending"]
ProjectItem = ProjectMemory | ProjectEpisode | ConversationChunk | ProjectConversation | PendingFact
