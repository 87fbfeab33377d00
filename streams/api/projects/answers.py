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
    """Tokens of the stored items."""

    memories: int = 0
    """Without archived memories."""
    archived: int = 0
    episodes: int = 0
    chunks: int = 0


class ProjectLimits(Struct, frozen=True, kw_only=True):
    """Limits of a project by the policy."""

    memories: int
    episodes: int
    pending: int
    conversations: int


class ProjectStanding(Struct, frozen=True, kw_only=True):
    """State of a project; zeros for an unknown one."""

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
    """Result of the last consolidation."""
    tokens: HeldTokens = HeldTokens()


class ListedProject(Struct, frozen=True, kw_only=True):
    """A project in a list."""

    app_id: str
    project_id: str
    turn_count: int
    memories: int
    changed_at: datetime


class ProjectList(Struct, frozen=True, kw_only=True):
    """Projects, latest change first."""

    projects: list[ListedProject]


class MemoryPage(Struct, frozen=True, kw_only=True):
    """Memories, newest first."""

    memories: list[events.ProjectMemory]
    next: str
    """`before` of the next page; empty: last page."""


class Edge(Struct, frozen=True, kw_only=True):
    """A relationship with both ends."""

    source_id: str
    target_id: str
    type: str
    strength: float


class ProjectMemoryAnswer(Struct, frozen=True, kw_only=True):
    """A memory, and whether it is valid."""

    memory: events.ProjectMemory
    valid: bool
    """Whether it is valid now and not archived."""
    incoming: list[Edge]
    """Incoming relationships; outgoing ones are in `memory.relationships`."""


class ValidMemories(Struct, frozen=True, kw_only=True):
    """Memories valid at a time (project memory, Temporal Validity), sorted by id."""

    at: datetime
    known_at: datetime | None
    memories: list[events.ProjectMemory]


class PendingFacts(Struct, frozen=True, kw_only=True):
    """Pending facts, highest confidence first."""

    pending: list[events.PendingFact]
    next: str = ""
    """`after` of the next page; empty: last page."""


class Conversations(Struct, frozen=True, kw_only=True):
    """Conversations, latest first."""

    conversations: list[events.ProjectConversation]


class ConversationAnswer(Struct, frozen=True, kw_only=True):
    """A conversation with its chunks, and its recent messages as far as they are indexed."""

    conversation: events.ProjectConversation
    chunks: list[events.ConversationChunk]
    recent_messages: list[TurnAnswer]


class ChunkAnswer(Struct, frozen=True, kw_only=True):
    """A chunk with its original messages."""

    chunk: events.ConversationChunk
    messages: list[TurnAnswer]
    """In order of number."""
    missing: int
    """Number of messages in neither index nor archive: released, erased, or not archived yet."""


class Episodes(Struct, frozen=True, kw_only=True):
    """Episodes in chronological order."""

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
    """A memory in a graph, or an episode linked to one."""

    id: str
    kind: Literal["memory", "episode"]
    type: str
    """Of a memory its type, of an episode its kind."""
    content: str
    valid: bool


class RelatedNode(Node, frozen=True, kw_only=True):
    """A node reachable from a memory over relationships or an episode."""

    distance: int
    """Number of relationships in between."""
    strength: float
    """Strength of the strongest path, 0-1."""


class GraphAnswer(Struct, frozen=True, kw_only=True):
    """Memories and their relationships."""

    nodes: list[Node]
    edges: list[Edge]


class RelatedMemories(Struct, frozen=True, kw_only=True):
    """Items related to a memory, nearest first."""

    memory_id: str
    related: list[RelatedNode]


class PathAnswer(Struct, frozen=True, kw_only=True):
    """Path from one memory to another."""

    found: bool
    edges: list[Edge]


class ExportPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Items of one kind as stored, sorted by id, with the stored decay factors."""

    format: str
    version: int
    app_id: str
    project_id: str
    revision: int
    """If it differs on the next page, the project changed in between."""
    next: str
    """`after` of the next page; empty: last page."""
    memories: list[events.ProjectMemory] = []
    episodes: list[events.ProjectEpisode] = []
    chunks: list[events.ConversationChunk] = []
    conversations: list[events.ProjectConversation] = []
    pending: list[events.PendingFact] = []
    messages: list[TurnAnswer] = []
    """Of conversations the recent messages; of chunks, on request, the original messages."""
