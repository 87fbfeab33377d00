"""Answers of look-ups in project memory. Items are those of `models.events.project_items`.

In what is read `decay_factor` is the present one; an export has the stored one.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from models import events
from streams.api.users.messages import TurnAnswer

MAX_PAGE = 1_000
EXPORT_FORMAT = "turntide.project-memory"
EXPORT_VERSION = 1


class HeldTokens(Struct, frozen=True, kw_only=True):
    """Tokens of what is kept."""

    memories: int = 0
    """Without archived ones."""
    archived: int = 0
    episodes: int = 0
    chunks: int = 0


class ProjectLimits(Struct, frozen=True, kw_only=True):
    """How much of a project the policy keeps."""

    memories: int
    episodes: int
    pending: int
    conversations: int


class ProjectStanding(Struct, frozen=True, kw_only=True):
    """How far a project is; zeros for one that nothing is known of."""

    app_id: str
    project_id: str
    known: bool
    limits: ProjectLimits
    revision: int = 0
    turn_count: int = 0
    conversations: int = 0
    memories: int = 0
    archived: int = 0
    episodes: int = 0
    pending: int = 0
    chunks: int = 0
    created: int = 0
    consolidated_at: datetime | None = None
    consolidated: events.ConsolidationFigures | None = None
    """What the last consolidation came to."""
    tokens: HeldTokens = HeldTokens()


class ListedProject(Struct, frozen=True, kw_only=True):
    """A project in a list."""

    app_id: str
    project_id: str
    turn_count: int
    memories: int
    changed_at: datetime


class ProjectList(Struct, frozen=True, kw_only=True):
    """Projects, those that changed last first."""

    projects: list[ListedProject]


class MemoryPage(Struct, frozen=True, kw_only=True):
    """Memories, the newest first."""

    memories: list[events.ProjectMemory]
    next: str
    """`before` of the following page; empty: there is none."""


class Edge(Struct, frozen=True, kw_only=True):
    """A relationship with both of its ends."""

    source_id: str
    target_id: str
    type: str
    strength: float


class ProjectMemoryAnswer(Struct, frozen=True, kw_only=True):
    """One memory, and whether it holds."""

    memory: events.ProjectMemory
    valid: bool
    """Now, and not archived."""
    incoming: list[Edge]
    """Relationships that lead to it; its own are in `memory.relationships`."""


class ValidMemories(Struct, frozen=True, kw_only=True):
    """What held at a time (project memory, Temporal Validity), by id."""

    at: datetime
    known_at: datetime | None
    memories: list[events.ProjectMemory]


class PendingFacts(Struct, frozen=True, kw_only=True):
    """Facts that wait to be promoted, the surest first."""

    pending: list[events.PendingFact]
    next: str = ""
    """`after` of the following page; empty: there is none."""


class Conversations(Struct, frozen=True, kw_only=True):
    """Conversations, the latest first."""

    conversations: list[events.ProjectConversation]


class ConversationAnswer(Struct, frozen=True, kw_only=True):
    """A conversation with its chunks, and its messages at hand as far as they are indexed."""

    conversation: events.ProjectConversation
    chunks: list[events.ConversationChunk]
    recent_messages: list[TurnAnswer]


class ChunkAnswer(Struct, frozen=True, kw_only=True):
    """A chunk with the messages it was made of."""

    chunk: events.ConversationChunk
    messages: list[TurnAnswer]
    """In order of number."""
    missing: int
    """How many of them neither the index nor the archive has: released, erased, or not landed yet."""


class Episodes(Struct, frozen=True, kw_only=True):
    """Episodes in order of time."""

    episodes: list[events.ProjectEpisode]


class ArcAnswer(Struct, frozen=True, kw_only=True):
    """The narrative arc (project memory, Narrative Arc Tracking)."""

    conversation_id: str
    """Empty for the whole project."""
    beginning: list[events.ProjectEpisode]
    middle: list[events.ProjectEpisode]
    end: list[events.ProjectEpisode]
    key_moments: list[events.ProjectEpisode]


class Node(Struct, frozen=True, kw_only=True):
    """A memory in a graph, or an episode that it is part of."""

    id: str
    kind: Literal["memory", "episode"]
    type: str
    """Of a memory its type, of an episode its kind."""
    content: str
    valid: bool


class RelatedNode(Node, frozen=True, kw_only=True):
    """What a memory leads to, over its relationships or by way of an episode."""

    distance: int
    """Relationships in between."""
    strength: float
    """Of the strongest path, 0-1."""


class GraphAnswer(Struct, frozen=True, kw_only=True):
    """Memories with relationships."""

    nodes: list[Node]
    edges: list[Edge]


class RelatedMemories(Struct, frozen=True, kw_only=True):
    """What a memory is related to, the nearest first."""

    memory_id: str
    related: list[RelatedNode]


class PathAnswer(Struct, frozen=True, kw_only=True):
    """How one memory leads to another."""

    found: bool
    edges: list[Edge]


class ExportPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Items of one kind as they are kept, by id; decay factors are the stored ones."""

    format: str
    version: int
    app_id: str
    project_id: str
    revision: int
    """The project changed in between if it is another on the next page."""
    next: str
    """`after` of the following page; empty: there is none."""
    memories: list[events.ProjectMemory] = []
    episodes: list[events.ProjectEpisode] = []
    chunks: list[events.ConversationChunk] = []
    conversations: list[events.ProjectConversation] = []
    pending: list[events.PendingFact] = []
    messages: list[TurnAnswer] = []
    """Of conversations those at hand; of chunks, where they were asked for, those they were made of."""
