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
    list[Annotated[str, Meta(min_length=1, max_length=64)]], about("Words to find it by.", CONTENT, max_length=32)
]
Category = Annotated[str, about("Field that it belongs to, freely chosen; empty for none.", BEHAVIOUR, max_length=64)]
Remembered = Annotated[
    str, about("What is remembered, in a sentence.", CONTENT, min_length=1, max_length=MOST_CONTENT_CHARS)
]
Subject = Annotated[
    str, about("What it is about, in a fixed form: the newer of one subject supersedes.", CONTENT, max_length=128)
]
ValidFrom = Annotated[UtcTime, about("Time of the world from which it holds.")]
ValidUntil = Annotated[UtcTime | None, about("Time of the world at which it no longer holds; null: it holds.")]
_SummarisedBy = Annotated[
    str,
    about(
        "What wrote the summary: extractive by rules, else a model's name; of merged ones the kept one's.", OPERATIONAL
    ),
]
Valence = Annotated[float, about(privacy=BEHAVIOUR, unit="-1 to 1", ge=-1.0, le=1.0)]

RELATED_TO, DEPENDS_ON, CONTRADICTS, SUPERSEDES = "related_to", "depends_on", "contradicts", "supersedes"


class MemoryType(StrEnum):
    """Kinds of long-term memories."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    ENTITY = "entity"
    PROCEDURE = "procedure"
    CONSTRAINT = "constraint"
    GOAL = "goal"


class EpisodeKind(StrEnum):
    """Kinds of episodes."""

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
    """Where something was said."""

    conversation_id: Annotated[SessionId, about("Conversation in which it was said; empty: by hand.")] = ""
    turn: Annotated[TurnIndex, about("Turn number in that conversation.")] = 0
    role: Annotated[str, about("Who speaks.", BEHAVIOUR)] = ""
    user_id: Annotated[UserId, about("Who said it; empty: by hand.")] = ""
    said_at: Annotated[UtcTime, about("Event time of the turn.")]
    by: Annotated[Origin, about("How it came: found by rules, added by hand, or imported.", BEHAVIOUR)] = "rules"


class Relationship(Struct, frozen=True, kw_only=True, gc=False):
    """An edge to another memory of the project, kept with the one it goes out from."""

    target_id: Annotated[ItemId, about("Memory that the edge leads to.")]
    type: Annotated[RelationType, about("How the one stands to the other, for instance depends_on.")]
    strength: Annotated[Ratio, about("How strong, 0-1.")] = 1.0
    created_at: Annotated[UtcTime, about("When it was drawn.")]
    origin: Annotated[Origin, about("How it came: by rules, by hand, or imported.", BEHAVIOUR)] = "rules"


class MemoryRevision(Struct, frozen=True, kw_only=True, gc=False):
    """What was known of a memory before it was put right: stood from `recorded_at` until the next one's.

    Time of the world (`valid_from`, `valid_until`) and time of knowing (`recorded_at`) are two axes.
    """

    recorded_at: Annotated[UtcTime, about("Time of knowing: it stood from then until the next one's.")]
    content: Annotated[str, about("What was known.", CONTENT)]
    importance: Annotated[Share, about("How much it mattered, 0-1.")]
    valid_from: ValidFrom
    valid_until: ValidUntil


class ProjectMemory(Struct, frozen=True, kw_only=True):
    """A long-term memory."""

    id: Annotated[ItemId, about("Names the memory; sorts by event time.")]
    type: Annotated[MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)]
    content: Remembered
    category: Category = ""
    tags: Tags = []
    subject: Subject = ""
    importance: Annotated[Ratio, about("How much it matters, 0-1.")]
    confidence: Annotated[Ratio, about("How sure the rules are, 0-1; by hand counts as 1.")] = 1.0
    archived: Annotated[bool, about("Whether it is put away: not found unless asked for.", BEHAVIOUR)] = False
    valid_from: ValidFrom
    valid_until: ValidUntil = None
    closed_by: Annotated[str, about("Memory that superseded it; empty where none did.", IDENTIFIER, names="item")] = ""
    recorded_at: Annotated[UtcTime, about("Time of knowing: when its present content and validity became known.")]
    created_at: Annotated[UtcTime, about("When it became a memory.")]
    updated_at: Annotated[UtcTime, about("When it was changed last.")]
    sources: Annotated[list[MemorySource], about("Where it was said, the first first.", IDENTIFIER, max_length=64)] = []
    mentions: Annotated[Count, about("How often it was said.")] = 1
    access_count: Annotated[Count, about("How often it was retrieved.")] = 0
    last_accessed_at: Annotated[UtcTime, about("When it was retrieved last; before that, when it was said.")]
    decay_factor: Annotated[Ratio, about("How much of it is left, 0-1, as of its last access or consolidation.")] = 1.0
    tokens: Annotated[Count, about("Tokens of its content.", unit="tokens")] = 0
    relationships: Annotated[list[Relationship], about("Edges that go out from it.", IDENTIFIER, max_length=256)] = []
    history: Annotated[list[MemoryRevision], about("Earlier knowledge, the oldest first.", CONTENT, max_length=64)] = []


class ProjectEpisode(Struct, frozen=True, kw_only=True):
    """A key moment of a conversation."""

    id: Annotated[ItemId, about("Names the episode; sorts by event time.")]
    kind: Annotated[
        EpisodeKind,
        about("Decision made, problem solved, breakthrough, issue identified, task completed or pivot.", BEHAVIOUR),
    ]
    title: Annotated[str, about("What happened, in a few words.", CONTENT)]
    summary: Annotated[str, about("What happened, in a few sentences.", CONTENT)]
    summarised_by: _SummarisedBy = "extractive"
    context: Annotated[str, about("What was spoken of when it happened.", CONTENT)] = ""
    participants: Annotated[list[str], about("Who took part: users, and roles.", IDENTIFIER, names="user")] = []
    outcome: Annotated[str | None, about("What came of it; null for nothing yet.", CONTENT)] = None
    emotional_valence: Annotated[Valence, about("Mood, from -1 (bad) to 1 (good).")] = 0.0
    significance: Annotated[Ratio, about("How much it matters to the project's story, 0-1.")]
    linked_memories: Annotated[ItemIds, about("Memories that came of it.")] = []
    conversation_id: Annotated[SessionId, about("Conversation in which it happened.")]
    first_turn: Annotated[Count, about("Lowest turn number, inside the range.", unit="turn number")]
    last_turn: Annotated[Count, about("Highest turn number, inside the range.", unit="turn number")]
    started_at: Annotated[UtcTime, about("Event time of its first turn.")]
    ended_at: Annotated[UtcTime, about("Event time of its last turn.")]
    merged_ids: Annotated[ItemIds, about("Episodes that were merged into it.")] = []
    access_count: Annotated[Count, about("How often it was retrieved.")] = 0
    last_accessed_at: Annotated[UtcTime, about("When it was retrieved last; before that, when it happened.")]
    tokens: Annotated[Count, about("Tokens of title and summary.", unit="tokens")] = 0


class ConversationChunk(Struct, frozen=True, kw_only=True):
    """Messages that left the short term, compressed; the archive has the originals."""

    id: Annotated[ItemId, about("Names the chunk; sorts by event time.")]
    conversation_id: Annotated[SessionId, about("Conversation that the messages are of.")]
    first_number: Annotated[Count, about("Number in the conversation, from 1; of merged the first.", unit="number")]
    last_number: Annotated[Count, about("Of merged ones the last number.", unit="number")]
    first_turn: Annotated[Count, about("Lowest turn number, inside the range.", unit="turn number")]
    last_turn: Annotated[Count, about("Highest turn number, inside the range.", unit="turn number")]
    messages: Annotated[Count, about("How many messages are in it.")]
    summary: Annotated[str, about("What they said, shorter; of merged chunks `Earlier: … Then: …`.", CONTENT)]
    summarised_by: _SummarisedBy = "extractive"
    key_topics: KeyTopics = []
    token_count: Annotated[Count, about("Tokens of the original messages.", unit="tokens")]
    summary_tokens: Annotated[Count, about("Tokens of the summary.", unit="tokens")]
    started_at: Annotated[UtcTime, about("Event time of the first message.")]
    ended_at: Annotated[UtcTime, about("Event time of the last message.")]
    created_at: Annotated[UtcTime, about("Event time of the turn that made it a chunk.")]


class ProjectConversation(Struct, frozen=True, kw_only=True):
    """A conversation of a project: a session."""

    id: Annotated[SessionId, about("The session.")]
    status: Annotated[ConversationStatus, about("Active, paused (it fell silent) or ended.", BEHAVIOUR)]
    started_at: Annotated[UtcTime, about("Event time of its first turn.")]
    last_at: Annotated[UtcTime, about("Event time of its latest turn.")]
    ended_at: Annotated[UtcTime | None, about("Event time of its end; null while it goes on, or may.")] = None
    total_turns: Annotated[Count, about("Turns of it, of all time.")]
    recent: Annotated[list[int], about("Numbers of the turns at hand verbatim, in order.", BEHAVIOUR)]
    chunks: Annotated[Count, about("Chunks of it that are kept.")]
    active_facts: Annotated[ItemIds, about("Memories that were said in it, the latest last.")] = []
    milestones: Annotated[ItemIds, about("Its episodes, the latest last.")] = []
    summary: Annotated[str, about("What its end was told with; empty for nothing.", CONTENT)] = ""


class PendingFact(Struct, frozen=True, kw_only=True):
    """Something that was said and is not sure enough to be a memory."""

    id: Annotated[ItemId, about("Names the pending fact; sorts by event time.")]
    content: Annotated[str, about("What was said, and is not sure enough to be a memory.", CONTENT)]
    type: Annotated[MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)]
    confidence: Annotated[Ratio, about("How sure the rules are, 0-1; saying it again raises it.")]
    category: Category = ""
    subject: Annotated[str, about("What it is about, as words in a fixed form.", CONTENT)] = ""
    tags: Tags = []
    source: Annotated[MemorySource, about("Where it was said.", IDENTIFIER)]
    extracted_at: Annotated[UtcTime, about("Event time of the turn that said it last.")]
    doubts: Annotated[list[str], about("What lowered the confidence: question, negated and others.", CONTENT)] = []


class ImportedMessage(Struct, frozen=True, kw_only=True):
    """A message at hand of a conversation that is imported: later it becomes part of a chunk."""

    conversation_id: Annotated[SessionId, about("Conversation in which it was said.", min_length=1, max_length=256)]
    turn: Annotated[Count, about("Number of the turn in its session.", unit="turn number")]
    role: Annotated[Role, about("Who said it.", BEHAVIOUR)]
    user_id: Annotated[UserId, about("Who the user is; empty if nobody said.", max_length=256)] = ""
    content: Annotated[str, about("The text.", CONTENT, max_length=MOST_MESSAGE_CHARS)]
    timestamp: Annotated[UtcTime, about("When it was said.")]


class ConsolidationFigures(Struct, frozen=True, kw_only=True, gc=False):
    """What a consolidation came to. Fields as in `models.events.project.ProjectConsolidated`."""

    run: Annotated[Count, about("Counts the project's consolidations, from 1.", OPERATIONAL, unit="number")]
    memories_looked_at: Annotated[Count, about("Memories that it went through.")]
    decay_updated: Annotated[Count, about("Memories whose stored decay factor changed.")]
    memories_archived: Annotated[Count, about("Memories put away: old, importance × decay below the limit.")]
    episodes_merged: Annotated[Count, about("Episodes that went into another.")]
    pending_dropped: Annotated[Count, about("Pending facts that waited too long.")]
    tokens_reclaimed: Annotated[Count, about("Tokens of what was archived, and what merging saved.", unit="tokens")]


ItemKind = Literal["memory", "episode", "chunk", "conversation", "pending"]
ProjectItem = ProjectMemory | ProjectEpisode | ConversationChunk | ProjectConversation | PendingFact
