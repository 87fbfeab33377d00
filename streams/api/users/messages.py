"""Requests and answers of the memory routes. Decoded and encoded by msgspec, once; OpenAPI is made from these.

The source names (`structured_facts`, `episodic_context`, `turn_range`, `distance`) are kept. Times are UTC, RFC 3339.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, time
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from models.events.fields import Identifier, MessageId, Ratio, TurnNumber, UtcTime
from models.events.user import EpisodeCompressed, FactCategory, FactChanged, MemoryMode, SessionTurns, TurnRef
from models.retrieval.context import MIN_TOKENS
from streams.api.answers import answered, without
from streams.http.field_rules import Rules, given, never, some_of
from streams.http.problems import invalid_field
from streams.index.between import ALWAYS, Between

MAX_QUERY_CHARS = 8_000
MAX_TOP_K = 100
MAX_RECENT = 100
MAX_TOKEN_BUDGET = 100_000
DEFAULT_WAIT_MS = 2_000
MAX_WAIT_MS = 10_000

QueryText = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S", description="Query text.")]
UserId = Annotated[Identifier, Meta(description="Id of the user in one app, as the producer of the turns named it.")]
AppId = Annotated[Identifier, Meta(description="The user's app. Default: the token's only app, else all its apps.")]
TopK = Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="Maximum number of items.")]
SearchKind = Literal["turns", "episodes"]
_MOMENT = r"^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d))?$"
Moment = Annotated[
    str,
    Meta(
        pattern=_MOMENT,
        description="A time with a UTC offset (RFC 3339), or a whole day in UTC.",
        examples=["2026-01-31"],
    ),
]
From = Annotated[
    Moment,
    Meta(
        description="Start of the window, for turns by their time or the days they mention, episodes and topics by "
        "their end, and memories of apps by creation. Does not limit the last turns and facts of a prompt."
    ),
]
To = Annotated[Moment, Meta(description="End of the window, inclusive.")]
InjectionPoint = Annotated[
    Literal["unanswered_conversation", "conversation_review", "conversation_selection"],
    Meta(
        description="Purpose of the prompt (app memory). If set, the prompt includes memories of the user's "
        "conversations in the app. Those of other users are included only if the policy shares them (`apps.spaces`)."
    ),
]
CaughtUp = Annotated[
    bool | None,
    Meta(description="Whether the response includes all turns that the role received; null: unknown (role `api`)."),
]
UserLanguage = Annotated[
    str, Meta(description="Language of the user, ISO 639-1; `unsupported`: no facts are extracted; empty: unknown.")
]
WithAppMemories = Annotated[
    bool, Meta(description="Whether the prompt begins with memories of the app. Default: if `injection_point` is set.")
]


# --- requests


class After(Struct, frozen=True, forbid_unknown_fields=True):
    """Wait until a turn and everything derived from it is in memory; 504 `turn_not_visible` after `timeout_ms`.

    The session belongs to the app of the request. Name the turn by its number or by its message id.
    """

    rules: ClassVar[Rules] = {
        "oneOf": [given("turn"), given("message_id")],
        "examples": [{"session_id": "order-4711", "turn": 20, "timeout_ms": DEFAULT_WAIT_MS, "message_id": None}],
    }

    session_id: Identifier
    turn: TurnNumber | None = None
    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS)] = DEFAULT_WAIT_MS
    message_id: MessageId | None = None


class Retrieve(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query for a user's memory: facts by exact look-up, episodes by similarity."""

    user_id: UserId
    query: QueryText
    app_id: AppId | None = None
    top_k_episodes: TopK = 3
    max_distance: Annotated[float, Meta(ge=0.0, le=2.0, description="Cosine. Default: the embedder's.")] | None = None
    min_importance: Annotated[Ratio, Meta(description="Minimum importance of facts.")] = 0.5
    format: Annotated[bool, Meta(description="Whether to return `injection`.")] = True
    after: After | None = None


class AssembleContext(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Request for a prompt within a token budget: facts, episodes, related turns and the last turns."""

    user_id: UserId
    query: QueryText
    app_id: AppId | None = None
    session_id: (
        Annotated[Identifier, Meta(description="Session of the last turns. Default: all sessions of the user.")] | None
    ) = None
    token_budget: Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKEN_BUDGET, description="In tokens of ~4 chars.")] = 2_000
    recent_turns: Annotated[int, Meta(ge=0, le=MAX_RECENT, description="Maximum number of turns.")] = 10
    after: After | None = None
    app_memories: WithAppMemories | None = None
    injection_point: InjectionPoint | None = None
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


class SearchMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Search of turns or episodes of a user, a session or an app, by words and similarity."""

    rules: ClassVar[Rules] = {
        **some_of(*map(given, ("user_id", "session_id", "app_id"))),
        **never(given("session_id", kind="episodes")),
        "examples": [{"query": "What did we discuss about databases?", "user_id": "user-17", "app_id": "support"}],
    }
    query: QueryText
    user_id: UserId | None = None
    session_id: Annotated[Identifier, Meta(description="Filter by session; not for episodes.")] | None = None
    app_id: AppId | None = None
    kind: SearchKind = "turns"
    top_k: TopK = 10
    explain: Annotated[bool, Meta(description="Whether turns list the parts of their scores.")] = False
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


class OfUser(Struct, frozen=True, kw_only=True):
    """A request about a user."""

    user_id: UserId
    app_id: AppId | None = None


class UserFacts(OfUser, frozen=True, kw_only=True):
    """A request for a user's facts."""

    category: Annotated[FactCategory, Meta(description="Filter by category.")] | None = None
    include_past: Annotated[bool, Meta(description="Include values that are no longer valid.")] = False


# --- answers


@without("history")
class FactAnswer(FactChanged, frozen=True, kw_only=True, tag=False):
    """A fact of a user, from its last event. Earlier values, if requested, are separate items."""


@without("embedding")
class EpisodeAnswer(EpisodeCompressed, frozen=True, kw_only=True, tag=False):
    """Summary of a range of a user's turns, from its event; both ends are inclusive."""

    turn_start: int
    turn_end: int
    distance: float | None
    """Cosine distance to the query, 0-2; null without a query."""


class TurnAnswer(Struct, frozen=True, kw_only=True):
    """A turn of a session."""

    app_id: str
    user_id: str
    session_id: str
    turn: int
    role: str
    timestamp: UtcTime
    content: str
    message_id: str | None = None
    """Id that the sender gave the message; null if the sender gave a number."""


class Retrieved(Struct, frozen=True, kw_only=True):
    """Results of stages 1 to 3 of the source's retrieval."""

    structured_facts: list[FactAnswer]
    """Most important first."""
    episodic_context: list[EpisodeAnswer]
    """Nearest first."""
    injection: str | None
    """Both as text for a prompt; null if not requested."""
    known: bool = True
    """Whether the user is known."""
    caught_up: CaughtUp = None
    memory_mode: MemoryMode = MemoryMode.ACTIVE
    """With `off`, no memory is returned."""
    language: UserLanguage = ""


class AppMemoryAnswer(Struct, frozen=True, kw_only=True):
    """A memory of an app."""

    app_id: str
    """App that owns it; another app if shared."""
    memory_id: int
    content: str
    created_at: UtcTime
    updated_at: UtcTime


class ContextTurn(Struct, frozen=True, kw_only=True):
    """A turn that was added to a prompt."""

    score: float
    """Fused score; a neighbour has that of its found turn. Comparable within one response only."""
    turn: TurnAnswer
    is_neighbour: bool
    """Whether it was added only as the neighbour of a found turn."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """Number of found items that did not fit into the budget."""

    facts: int
    episodes: int
    recent: int
    last_turn_cut: bool
    found: int = 0
    """Found turns with their neighbours."""
    app_memories: int | UnsetType = UNSET
    """Absent unless requested."""


class AssembledContext(Struct, frozen=True, kw_only=True):
    """A prompt and its parts."""

    prompt: str
    tokens: int
    facts: list[FactAnswer]
    """Facts that share words with the question first, then the most important."""
    episodes: list[EpisodeAnswer]
    recent: list[TurnAnswer]
    found: list[ContextTurn] = []
    """Other turns relevant to the question, best first, each followed by its neighbours; without those in `recent`.
    The prompt has them in chronological order."""
    left_out: LeftOut
    known: bool = True
    """Whether the user is known."""
    caught_up: CaughtUp = None
    memory_mode: MemoryMode = MemoryMode.ACTIVE
    """With `off`, only the session's last turns are returned."""
    language: UserLanguage = ""
    app_memories: list[AppMemoryAnswer] | UnsetType = UNSET
    """Memories in the prompt, latest update first; those shared by other apps come last. Like the next two fields,
    absent unless requested."""
    app_memories_text: str | UnsetType = UNSET
    """Beginning of the prompt (app memory); empty without memories."""
    injection_point: InjectionPoint | UnsetType = UNSET


class TurnHit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn found by a search."""

    score: float
    """Comparable within one response only."""
    turn: TurnAnswer
    signals: dict[str, float] | None = None
    """With `explain`: contributions of the ranking signals, which add up to the score. Null: ranked by the formula."""


class EpisodeHit(Struct, frozen=True, kw_only=True):
    """An episode found by a search."""

    score: float
    """Fused score; comparable within one response only."""
    episode: EpisodeAnswer


class Found(Struct, frozen=True, kw_only=True):
    """Search results, best first. Only the list of the requested kind is filled."""

    turns: list[TurnHit] = []
    episodes: list[EpisodeHit] = []
    known: bool = True
    """Whether the user, or else the session or the app, is known."""
    caught_up: CaughtUp = None
    language: UserLanguage = ""


class StandingAnswer(Struct, frozen=True, kw_only=True):
    """State of a user's memory."""

    user_id: str
    app_id: str | None
    known: bool
    """Whether the user is known."""
    turns: int = 0
    """Number of indexed turns of the user, without erased sessions."""
    turn_count: int = 0
    """Number of the user's newest turn over all sessions; it never falls."""
    compressed_turns: int = 0
    """The user's turns up to this number are in episodes."""
    short_term: list[TurnRef] = []
    facts: int = 0
    episodes: int = 0
    memory_mode: MemoryMode = MemoryMode.ACTIVE
    """Whether it learns and is read for prompts, is only read, or neither."""
    caught_up: CaughtUp = None
    language: UserLanguage = ""


def between(since: str | None, until: str | None) -> Between:
    """The window that a request names, both ends in it.

    Raises:
        Problem: 422, there is no such time, or the end is before the beginning.
    """
    first = ALWAYS.first if since is None else _moment("from", since, time.min)
    last = ALWAYS.last if until is None else _moment("to", until, time.max)
    if last < first:
        raise invalid_field("to", "is before `from`: swap them, or leave one out")
    return Between(first, last)


def _moment(name: str, text: str, of_day: time) -> datetime:
    try:
        moment = datetime.fromisoformat(text.upper())
        return datetime.combine(moment, of_day, UTC) if len(text) == len("2026-01-31") else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid_field(name, "is not a valid day or time: write 2026-01-31 or 2026-01-31T09:30:00Z") from None


def episode_answer(episode: EpisodeCompressed, distance: float | None = None) -> EpisodeAnswer:
    """An episode as it is answered."""
    return answered(
        EpisodeAnswer, episode, turn_start=episode.first_turn, turn_end=episode.last_turn, distance=distance
    )


def turn_refs(runs: Iterable[SessionTurns]) -> list[TurnRef]:
    """Turns one by one, in their order."""
    return [TurnRef(run.session_id, turn) for run in runs for turn in run.turns]
