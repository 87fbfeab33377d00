"""Questions and commands to project memory and what is answered, in the source's terms.

Times are UTC, RFC 3339; importance and scores lie in 0-1.

Project of a request, the fields that every command to it has, and its outcome.

A project id may hold slashes; routes are told apart by their last words, those that end in a fixed word first.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote
from uuid import uuid4

from msgspec import Meta, Struct

from models import events
from models.events.fields import Identifier, Ratio, UtcTime, printable
from models.events.project import DeedResult
from models.policy.project import RetrievalWeights
from models.retrieval.context_window import ContextItem, TokenBudget
from models.retrieval.relevance import FoundKind, RetrievalFilters, RetrievedItem, Scores
from streams.api.answers import answered
from streams.api.users.messages import MAX_QUERY_CHARS, MAX_TOP_K
from streams.http.field_rules import Rules, given, never, some_of
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group, NotSeenYet
from streams.http.security import caller, require_role
from streams.settings.http import TokenRole

MOST_IMPORTED = 200
"""Items of a kind in one request."""
_Content = Annotated[str, Meta(min_length=1, max_length=events.MOST_CONTENT_CHARS, pattern=r"\S")]
_Subject = Annotated[str, Meta(max_length=128, description="Subject of a decision; decisions of one subject compete.")]


class AddMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A memory to add. A valid memory with the same content is strengthened instead."""

    content: _Content
    type: events.MemoryType
    category: events.Category = ""
    tags: events.Tags = []
    subject: _Subject = ""
    importance: Annotated[Ratio, Meta(description="Optional. Default: the type's value.")] | None = None
    valid_from: UtcTime | None = None
    valid_until: UtcTime | None = None


class EditProjectMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to a memory. Omitted and null fields stay unchanged."""

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
    valid_until: Annotated[UtcTime, Meta(description="End of the validity, to expire it.")] | None = None
    reopened: Annotated[bool, Meta(description="True: remove the end of the validity.")] = False
    archived: Annotated[bool, Meta(description="True: archive; false: restore.")] | None = None


class Relate(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A relationship between two memories. An existing one gets the new strength."""

    source_id: events.ItemId
    target_id: events.ItemId
    relation: events.RelationType
    strength: Ratio = 1.0


class SetStatus(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """New status of a conversation."""

    status: events.ConversationStatus
    summary: Annotated[str, Meta(max_length=2_000, description="Summary to keep with the end.")] = ""


class ImportItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Items of an exported project. Existing items are replaced, so a repeated import changes nothing."""

    memories: Annotated[list[events.ProjectMemory], Meta(max_length=MOST_IMPORTED)] = []
    episodes: Annotated[list[events.ProjectEpisode], Meta(max_length=MOST_IMPORTED)] = []
    chunks: Annotated[list[events.ConversationChunk], Meta(max_length=MOST_IMPORTED)] = []
    conversations: Annotated[list[events.ProjectConversation], Meta(max_length=MOST_IMPORTED)] = []
    pending: Annotated[list[events.PendingFact], Meta(max_length=MOST_IMPORTED)] = []
    messages: Annotated[
        list[events.ImportedMessage],
        Meta(max_length=MOST_IMPORTED, description="Recent messages of existing or imported conversations."),
    ] = []


class DeedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a command."""

    success: bool
    outcome: events.CommandOutcome
    """`unchanged`: nothing to change. `not_found` of a deletion: already deleted."""
    item_id: str = ""
    count: int = 0
    """Number of changed items."""
    detail: str = ""
    memory: events.ProjectMemory | None = None
    """Its new state, if the command was about one memory."""


class PendingDeed(Struct, frozen=True, kw_only=True):
    """The command is accepted, but its result is not visible yet."""

    success: Annotated[bool, Meta(description="Always false.", examples=[False])]
    pending: bool
    request_id: str
    hint: str


MAX_SYSTEM_PROMPT_CHARS = 48_000
MAX_DEPTH = 8

Question = Annotated[str, Meta(max_length=MAX_QUERY_CHARS, description="Question; empty: what is relevant now.")]
Strategy = Literal["tfidf", "hybrid"]
_RecordAccess = Annotated[bool, Meta(description="Whether returned memories and episodes count as accessed.")]
_Tokens = Annotated[int, Meta(ge=0, le=10_000_000)]


# --- questions


class Filters(RetrievalFilters, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of the results (project memory, `RetrievalQuery.filters`)."""


class _ProjectQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of every query. Defaults are the policy's values."""

    query: Question
    filters: Filters = Filters()
    weights: RetrievalWeights | None = None
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] | None = None
    threshold: Ratio | None = None
    valid_at: UtcTime | None = None
    known_at: UtcTime | None = None
    related_depth: Annotated[int, Meta(ge=0, le=MAX_DEPTH)] = 0
    strategy: Annotated[Strategy, Meta(description="Scores of the source, or fused word and vector search.")] = "tfidf"
    record_access: _RecordAccess = True


class RetrieveMemories(_ProjectQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query for memories and episodes relevant to a question (project memory, Retrieval Query)."""

    context: Annotated[str, Meta(max_length=MAX_QUERY_CHARS, description="Conversation around the question.")] = ""


class BudgetOverrides(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to the policy's context window. Omitted fields stay. The total must exceed the sum of both reserves."""

    rules: ClassVar[Rules] = {"examples": [{"total_tokens": 12_000, "system_tokens": 1_000, "working_tokens": 2_000}]}
    total_tokens: _Tokens | None = None
    system_tokens: _Tokens | None = None
    working_tokens: _Tokens | None = None
    recent_share: Ratio | None = None


class BuildContext(_ProjectQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Request for the context of a language model (project memory, Context Building Process)."""

    conversation_id: (
        Annotated[Identifier, Meta(description="Adds its last messages and chunks. Default: none.")] | None
    ) = None
    system_prompt: Annotated[str, Meta(max_length=MAX_SYSTEM_PROMPT_CHARS)] = ""
    budget: BudgetOverrides = BudgetOverrides()


class SearchProject(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Search over memories, episodes and chunks, including weak matches."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S")]
    filters: Filters = Filters(include_chunks=True)
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 10
    strategy: Strategy = "hybrid"
    record_access: _RecordAccess = True


# --- answers


class FoundItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result with the parts of its relevance. By `kind`, one of `memory`, `episode` and `chunk` is set."""

    kind: FoundKind
    id: str
    text: str
    score: float
    """Comparable within one response only."""
    scores: Scores
    via: str = ""
    """Id of the hit whose relationships led to it."""
    contradicted_by: list[str] = []
    memory: events.ProjectMemory | None = None
    episode: events.ProjectEpisode | None = None
    chunk: events.ConversationChunk | None = None


class FoundItems(Struct, frozen=True, kw_only=True):
    """Results, best first."""

    results: list[FoundItem]


class ProjectContext(Struct, frozen=True, kw_only=True):
    """A context within its budget (project memory, `ContextBuildResult`)."""

    text: str
    total_tokens: int
    items: list[ContextItem]
    budget: TokenBudget
    warnings: list[str]
    """Items that did not fit: every omission is named."""
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


PROJECTS = Group(
    "projects",
    "Memory of projects: typed and related memories with validity; commands for admins.",
    prefix="/v1/projects/{project_id:path}",
)
DONE_OUTCOMES = frozenset({"done", "unchanged"})
_REFUSED = {
    "not_found": (HTTPStatus.NOT_FOUND, "not_found", "no such item: it may have been merged, displaced or erased"),
    "too_many": (HTTPStatus.CONFLICT, "too_many", "the project has as many as the policy allows (`projects`)"),
}


ItemName = Annotated[str, printable(1, 64)]
"""What a request calls an item by: any name, for which there may be none."""


class OfProject(Struct, frozen=True, kw_only=True):
    """A request about a project."""

    project_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")]
    app_id: Annotated[Identifier, Meta(description="The project's app. Default: the token's only app.")] | None = None


class AskedProject:
    """The project that a request is about.

    Raises:
        Problem: 403 another tenant's app; 422 no app is named.
    """

    def __init__(self, asked: OfProject) -> None:
        found, project_id = caller().app_of(asked.app_id), asked.project_id
        if found is None:
            raise invalid_field("app_id", "is missing: give the project's app, since project ids are per app")
        self.app_id, self.project_id = found, project_id

    def command(self, now: datetime) -> dict[str, Any]:
        """What every command to the project begins with.

        Raises:
            Problem: 403, no admin.
        """
        return {
            "app_id": self.app_id,
            "project_id": self.project_id,
            "timestamp": now,
            "request_id": uuid4().hex,
            "by": require_role(TokenRole.ADMIN).name,
        }

    def pending(self, request_id: str) -> NotSeenYet:
        """It is written, and will be seen; and where to look."""
        result = PendingDeed(
            success=False,
            pending=True,
            request_id=request_id,
            hint="the command is in the log and will be carried out once: request the project again. If the change "
            "does not appear, check that the roles memory and index run",
        )
        place = f"/v1/projects/{quote(self.project_id, safe='')}/standing?app_id={quote(self.app_id, safe='')}"
        return NotSeenYet(Accepted(result, {"Location": place}))


def require_done(result: DeedResult) -> DeedResult:
    """What came of a command.

    Raises:
        Problem: 404, 409 or 422: the fold refused it; the detail says why and what to do.
    """
    if result.outcome in DONE_OUTCOMES:
        return result
    if result.outcome in _REFUSED:
        status, code, detail = _REFUSED[result.outcome]
        raise Problem(status, code, result.detail or detail)
    raise invalid_field("", result.detail or "is longer than the policy allows (`projects.long_term.content_chars`)")


def no_such(what: str, where: str) -> Problem:
    """404, and where those stand that there are."""
    return not_found(f"no such {what}: GET /v1/projects/{{id}}/{where} lists them")
