"""Queries and hits of project memory: the form that all strategies share (project memory, Retrieval).

    relevance = Σ weight_i · score_i / Σ weight_i        over semantic, keyword, recency, importance, access

`models.retrieval.candidates` computes it; `models.project.view` answers with it.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.fields import Ratio, UtcTime
from models.events.project_items import Category, ConversationChunk, MemoryType, ProjectEpisode, ProjectMemory, Tags
from models.policy.project import RetrievalWeights

FoundKind = Literal["memory", "episode", "chunk"]
"""What retrieval can find; the source's conversations and pending facts are looked up, not found."""
Findable = ProjectMemory | ProjectEpisode | ConversationChunk
Found = tuple[FoundKind, str]
"""Kind and id of something that can be found."""


class RetrievalFilters(Struct, frozen=True, kw_only=True):
    """Everything that is given must hold (project memory, `RetrievalQuery.filters`).

    Only memories have a type, category and tags, and chunks have no importance either: what has none of a thing that
    is filtered by is left out.
    """

    memory_types: Annotated[list[MemoryType], Meta(max_length=16)] = []
    """One of them."""
    categories: Annotated[list[Category], Meta(max_length=64)] = []
    """One of them."""
    tags: Tags = []
    """At least one of them."""
    date_from: UtcTime | None = None
    """Memories first said, episodes and chunks that went on, at this time or later …"""
    date_to: UtcTime | None = None
    """… and at this time or earlier."""
    min_importance: Ratio | None = None
    """Of an episode, its minimum significance."""
    include_episodic: bool = True
    include_chunks: bool = False
    include_archived: bool = False
    """Include archived memories. A query for another time (`valid_at`, `known_at`) always includes them: archiving
    hides them from the present only."""


class RetrievalQuery(Struct, frozen=True, kw_only=True):
    """A question to a project's memory (project memory, Retrieval Query); what is not given is the policy's."""

    text: str
    """May be empty, or of stop words only: then the query uses the context or, without one, importance and recency."""
    context: str = ""
    """Conversation around the question. It raises results that share its words, and lowers none."""
    filters: RetrievalFilters = RetrievalFilters()
    weights: RetrievalWeights | None = None
    top_k: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    threshold: Ratio | None = None
    valid_at: UtcTime | None = None
    """Valid time; default: now. An episode or chunk is valid from its start."""
    known_at: UtcTime | None = None
    """Transaction time: memories as known then, with their text of then."""
    related_depth: Annotated[int, Meta(ge=0, le=8)] = 0
    """Maximum distance in relationships of memories added to a hit."""


class Scores(Struct, frozen=True, gc=False):
    """Parts of the relevance of a result, each 0-1, in the order of their weights (`RetrievalWeights`)."""

    semantic: float = 0.0
    keyword: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    access: float = 0.0


class RetrievedItem(Struct, frozen=True, kw_only=True):
    """Something that was found (project memory, `RetrievedMemory`).

    Attributes:
        text: What is told of it.
        score: Relevance by which it was ranked, 0-1 with the source's strategy.
        scores: Its own; that of what was pulled in can be below the threshold.
        item: The whole of it, as it was known at the time asked for.
        via: The hit over whose relationships it was pulled in; empty for a hit.
        contradicted_by: Memories that hold too and contradict it, either way round.
    """

    kind: FoundKind
    id: str
    text: str
    score: float
    scores: Scores
    item: Findable
    via: str = ""
    contradicted_by: list[str] = []


def searched_text(item: Findable) -> str:
    """The words that something is found by.

    A memory also by its type, category, tags and subject: "the database decision" finds "We went with PostgreSQL".
    """
    match item:
        case ProjectMemory():
            return "\n".join([item.content, item.type, item.category, item.subject, *item.tags])
        case ProjectEpisode():
            kind = item.kind.replace("_", " ")
            return "\n".join([item.title, item.summary, kind, item.outcome or "", *item.participants])
        case ConversationChunk():
            return "\n".join([item.summary, *item.key_topics])


def rendered(item: Findable) -> str:
    """What a reader or a language model is told of something."""
    match item:
        case ProjectMemory():
            return item.content
        case ProjectEpisode():
            return f"{item.title}: {item.summary}"
        case ConversationChunk():
            return item.summary
