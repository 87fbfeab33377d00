"""Questions and commands to project memory and what is answered, in the source's terms.

Times are UTC, RFC 3339; importance and scores lie in 0-1.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from models import events
from models.events.fields import Identifier, Ratio, UtcTime
from models.policy.project import RetrievalWeights
from models.retrieval.context_window import ContextItem
from models.retrieval.relevance import FoundKind, RetrievalFilters, RetrievedItem, Scores
from models.retrieval.token_budget import TokenBudget
from streams.api.answers import answered
from streams.api.users.messages import MAX_QUERY_CHARS, MAX_TOP_K
from streams.http.field_rules import Rules, given, never, some_of

MOST_IMPORTED = 200
"""Items of a kind in one request."""
_Content = Annotated[str, Meta(min_length=1, max_length=events.MOST_CONTENT_CHARS, pattern=r"\S")]
_Subject = Annotated[str, Meta(max_length=128, description="What a decision is about: two of one subject are rivals.")]


class AddMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something to know. What is known already is strengthened."""

    content: _Content
    type: events.MemoryType
    category: events.Category = ""
    tags: events.Tags = []
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
    category: events.Category | None = None
    tags: events.Tags | None = None
    importance: Ratio | None = None
    valid_from: UtcTime | None = None
    valid_until: Annotated[UtcTime, Meta(description="Expire: from then on it does not hold.")] | None = None
    reopened: Annotated[bool, Meta(description="It has no end after all.")] = False
    archived: Annotated[bool, Meta(description="Put away, or restored.")] | None = None


class Relate(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A relationship of one memory to another; one that is there gets the strength."""

    source_id: events.ItemId
    target_id: events.ItemId
    relation: events.RelationType
    strength: Ratio = 1.0


class SetStatus(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A conversation starts, is paused or ends."""

    status: events.ConversationStatus
    summary: Annotated[str, Meta(max_length=2_000, description="What its end is told with.")] = ""


class ImportItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Items of a saved project; one that is there already is replaced, so a repeat changes nothing."""

    memories: Annotated[list[events.ProjectMemory], Meta(max_length=MOST_IMPORTED)] = []
    episodes: Annotated[list[events.ProjectEpisode], Meta(max_length=MOST_IMPORTED)] = []
    chunks: Annotated[list[events.ConversationChunk], Meta(max_length=MOST_IMPORTED)] = []
    conversations: Annotated[list[events.ProjectConversation], Meta(max_length=MOST_IMPORTED)] = []
    pending: Annotated[list[events.PendingFact], Meta(max_length=MOST_IMPORTED)] = []
    messages: Annotated[
        list[events.ImportedMessage],
        Meta(max_length=MOST_IMPORTED, description="At hand, of conversations that are there or come along."),
    ] = []


class DeedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it."""

    success: bool
    outcome: events.CommandOutcome
    """`unchanged`: it was so already. `not_found` of a deletion: it was gone already."""
    item_id: str = ""
    count: int = 0
    """Items that changed."""
    detail: str = ""
    memory: events.ProjectMemory | None = None
    """As it is now, where the deed was to one."""


class PendingDeed(Struct, frozen=True, kw_only=True):
    """It is in the log, and what comes of it is not seen yet."""

    success: Annotated[bool, Meta(description="Not yet.", examples=[False])]
    pending: bool
    request_id: str
    hint: str


MAX_SYSTEM_PROMPT_CHARS = 48_000
MAX_DEPTH = 8

Question = Annotated[str, Meta(max_length=MAX_QUERY_CHARS, description="What is asked; empty: what matters now.")]
Strategy = Literal["tfidf", "hybrid"]
_RecordAccess = Annotated[bool, Meta(description="Whether memories and episodes that it gives count as accessed.")]
_Tokens = Annotated[int, Meta(ge=0, le=10_000_000)]


# --- questions


class Filters(RetrievalFilters, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is left out of what is found (project memory, `RetrievalQuery.filters`)."""


class _ProjectQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every question may say; what it does not say is the policy's."""

    query: Question
    filters: Filters = Filters()
    weights: RetrievalWeights | None = None
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] | None = None
    threshold: Ratio | None = None
    valid_at: UtcTime | None = None
    known_at: UtcTime | None = None
    related_depth: Annotated[int, Meta(ge=0, le=MAX_DEPTH)] = 0
    strategy: Annotated[Strategy, Meta(description="The source's scores, or words and likeness fused.")] = "tfidf"
    record_access: _RecordAccess = True


class RetrieveMemories(_ProjectQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The memories and episodes that matter to a question (project memory, Retrieval Query)."""

    context: Annotated[str, Meta(max_length=MAX_QUERY_CHARS, description="What was said around it.")] = ""


class BudgetOverrides(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Another context window than the policy's; what is not named stays. The total exceeds both reserves together."""

    rules: ClassVar[Rules] = {"examples": [{"total_tokens": 12_000, "system_tokens": 1_000, "working_tokens": 2_000}]}
    total_tokens: _Tokens | None = None
    system_tokens: _Tokens | None = None
    working_tokens: _Tokens | None = None
    recent_share: Ratio | None = None


class BuildContext(_ProjectQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a language model is to be told before it answers (project memory, Context Building Process)."""

    conversation_id: (
        Annotated[Identifier, Meta(description="Whose last messages and chunks; none: no such.")] | None
    ) = None
    system_prompt: Annotated[str, Meta(max_length=MAX_SYSTEM_PROMPT_CHARS)] = ""
    budget: BudgetOverrides = BudgetOverrides()


class SearchProject(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that speaks of something, chunks too, however weak."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S")]
    filters: Filters = Filters(include_chunks=True)
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 10
    strategy: Strategy = "hybrid"
    record_access: _RecordAccess = True


# --- answers


class FoundItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was found, with what its relevance is made of; of the last three one is there, by `kind`."""

    kind: FoundKind
    id: str
    text: str
    score: float
    """Comparable within one answer only."""
    scores: Scores
    via: str = ""
    """The hit over whose relationships it was pulled in."""
    contradicted_by: list[str] = []
    memory: events.ProjectMemory | None = None
    episode: events.ProjectEpisode | None = None
    chunk: events.ConversationChunk | None = None


class FoundItems(Struct, frozen=True, kw_only=True):
    """What was found, best first."""

    results: list[FoundItem]


class ProjectContext(Struct, frozen=True, kw_only=True):
    """A context within its budget (project memory, `ContextBuildResult`)."""

    text: str
    total_tokens: int
    items: list[ContextItem]
    budget: TokenBudget
    warnings: list[str]
    """What did not fit; nothing is left out in silence."""
    retrieval_results: list[FoundItem]


def found_item(found: RetrievedItem) -> FoundItem:
    """Something found, as it is answered."""
    item = found.item
    return answered(
        FoundItem,
        found,
        memory=item if isinstance(item, events.ProjectMemory) else None,
        episode=item if isinstance(item, events.ProjectEpisode) else None,
        chunk=item if isinstance(item, events.ConversationChunk) else None,
    )
