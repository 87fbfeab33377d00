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

QueryText = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S", description="A question.")]
UserId = Annotated[Identifier, Meta(description="Whose memory; of one app, as the producer of the turns named it.")]
AppId = Annotated[Identifier, Meta(description="The user's app; none: the token's only one, else all it may read.")]
TopK = Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="How many at most.")]
SearchKind = Literal["turns", "episodes"]
_MOMENT = r"^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d))?$"
Moment = Annotated[
    str,
    Meta(
        pattern=_MOMENT,
        description="A time with its offset (RFC 3339), or a day, the whole of it, in UTC.",
        examples=["2026-01-31"],
    ),
]
From = Annotated[
    Moment,
    Meta(
        description="Found turns that were said, or tell of days, from then on; episodes and topics not over before; "
        "memories of apps made since. Not the last turns and facts of a prompt."
    ),
]
To = Annotated[Moment, Meta(description="Likewise until then, itself among them.")]
InjectionPoint = Annotated[
    Literal["unanswered_conversation", "conversation_review", "conversation_selection"],
    Meta(
        description="What the prompt is for (app memory); naming it asks for memories of the user's conversations in "
        "the app too. What other users said is among them only if the policy shares it (`apps.spaces`)."
    ),
]
CaughtUp = Annotated[
    bool | None,
    Meta(description="Whether all that the role has heard of is in it; null: it cannot tell (role `api`)."),
]
UserLanguage = Annotated[
    str, Meta(description="What the user speaks, ISO 639-1; `unsupported`: no facts are read of it; empty: not known.")
]
WithAppMemories = Annotated[
    bool, Meta(description="Whether memories of the app stand first; none: if an injection point is named.")
]


# --- requests


class After(Struct, frozen=True, forbid_unknown_fields=True):
    """Wait until this turn, and what follows from it, is in memory; 504 `turn_not_visible` if it is not in time.

    Its session is one of the request's app; the turn is named by its number, or by its message's id.
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
    """What is known of a user that matters to a question: facts by exact look-up, episodes by likeness."""

    user_id: UserId
    query: QueryText
    app_id: AppId | None = None
    top_k_episodes: TopK = 3
    max_distance: Annotated[float, Meta(ge=0.0, le=2.0, description="Cosine; none: the embedder's own.")] | None = None
    min_importance: Annotated[Ratio, Meta(description="Of facts.")] = 0.5
    format: Annotated[bool, Meta(description="Whether `injection` is wanted.")] = True
    after: After | None = None


class AssembleContext(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole prompt for a question within a token budget: facts, episodes, what was said of it, the last turns."""

    user_id: UserId
    query: QueryText
    app_id: AppId | None = None
    session_id: (
        Annotated[Identifier, Meta(description="Whose last turns; none: the user's, of all sessions.")] | None
    ) = None
    token_budget: Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKEN_BUDGET, description="At ~4 characters each.")] = 2_000
    recent_turns: Annotated[int, Meta(ge=0, le=MAX_RECENT, description="How many turns at most.")] = 10
    after: After | None = None
    app_memories: WithAppMemories | None = None
    injection_point: InjectionPoint | None = None
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


class SearchMemory(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Turns or episodes by words and likeness together; of a user, a session or an app."""

    rules: ClassVar[Rules] = {
        **some_of(*map(given, ("user_id", "session_id", "app_id"))),
        **never(given("session_id", kind="episodes")),
        "examples": [{"query": "What did we discuss about databases?", "user_id": "user-17", "app_id": "support"}],
    }
    query: QueryText
    user_id: UserId | None = None
    session_id: Annotated[Identifier, Meta(description="Only this session's; episodes have none.")] | None = None
    app_id: AppId | None = None
    kind: SearchKind = "turns"
    top_k: TopK = 10
    explain: Annotated[bool, Meta(description="Whether each turn says what its score is made of.")] = False
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


class OfUser(Struct, frozen=True, kw_only=True):
    """A question about a user."""

    user_id: UserId
    app_id: AppId | None = None


class UserFacts(OfUser, frozen=True, kw_only=True):
    """A question for a user's facts."""

    category: Annotated[FactCategory, Meta(description="Only facts of this kind.")] | None = None
    include_past: Annotated[bool, Meta(description="Also values that no longer hold.")] = False


# --- answers


@without("history")
class FactAnswer(FactChanged, frozen=True, kw_only=True, tag=False):
    """A fact of a user: the event that told of it last. Earlier values are facts of their own, where asked for."""


@without("embedding")
class EpisodeAnswer(EpisodeCompressed, frozen=True, kw_only=True, tag=False):
    """Turns of a user as one summary: the event that told of it; both ends of the range are inside."""

    turn_start: int
    turn_end: int
    distance: float | None
    """Cosine distance to the query, 0-2; None where there was none."""


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
    """Its sender's id of it; None where the sender gave a number."""


class Retrieved(Struct, frozen=True, kw_only=True):
    """Stages 1 to 3 of the source's retrieval."""

    structured_facts: list[FactAnswer]
    """The most important first."""
    episodic_context: list[EpisodeAnswer]
    """The nearest first."""
    injection: str | None
    """Both as text for a prompt; None if it was not wanted."""
    known: bool = True
    """Whether the user was ever heard of."""
    caught_up: CaughtUp = None
    memory_mode: MemoryMode = MemoryMode.ACTIVE
    """Of a user whose memory is `off` nothing is told."""
    language: UserLanguage = ""


class AppMemoryAnswer(Struct, frozen=True, kw_only=True):
    """A memory of an app."""

    app_id: str
    """Whose it is; another app's if that shares it."""
    memory_id: int
    content: str
    created_at: UtcTime
    updated_at: UtcTime


class ContextTurn(Struct, frozen=True, kw_only=True):
    """A turn that a prompt was filled with."""

    score: float
    """Fused; of a neighbour that of the turn it stands beside. Comparable within one answer only."""
    turn: TurnAnswer
    is_neighbour: bool
    """Whether it was not found itself, and only stands beside a turn that was."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """What was found and did not fit into the budget."""

    facts: int
    episodes: int
    recent: int
    last_turn_cut: bool
    found: int = 0
    """Turns that were found, with their neighbours."""
    app_memories: int | UnsetType = UNSET
    """Not there where none were wanted."""


class AssembledContext(Struct, frozen=True, kw_only=True):
    """A prompt, and what it is made of."""

    prompt: str
    tokens: int
    facts: list[FactAnswer]
    """Those that share words with the question first, then the most important."""
    episodes: list[EpisodeAnswer]
    recent: list[TurnAnswer]
    found: list[ContextTurn] = []
    """What else was said that speaks of the question, best first, each with its neighbours behind it; none that is
    among `recent`. The prompt has them in order of time."""
    left_out: LeftOut
    known: bool = True
    """Whether the user was ever heard of."""
    caught_up: CaughtUp = None
    memory_mode: MemoryMode = MemoryMode.ACTIVE
    """Of a user whose memory is `off` only the session's last turns are told."""
    language: UserLanguage = ""
    app_memories: list[AppMemoryAnswer] | UnsetType = UNSET
    """In the prompt, the latest updated first, those that other apps share after the app's own. Like the following, not
    there where none were wanted."""
    app_memories_text: str | UnsetType = UNSET
    """With what the prompt begins (app memory); empty for no memories."""
    injection_point: InjectionPoint | UnsetType = UNSET


class TurnHit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn that was found."""

    score: float
    """Comparable within one answer only."""
    turn: TurnAnswer
    signals: dict[str, float] | None = None
    """With `explain`: what each signal of the ranking gave, together the score. None: the formula ranked."""


class EpisodeHit(Struct, frozen=True, kw_only=True):
    """An episode that was found."""

    score: float
    """Fused; comparable within one answer only."""
    episode: EpisodeAnswer


class Found(Struct, frozen=True, kw_only=True):
    """Hits of a search, best first; one of the lists is of the kind that was asked for."""

    turns: list[TurnHit] = []
    episodes: list[EpisodeHit] = []
    known: bool = True
    """Whether the user was ever heard of, or else the session or the app."""
    caught_up: CaughtUp = None
    language: UserLanguage = ""


class StandingAnswer(Struct, frozen=True, kw_only=True):
    """How far a user's memory is."""

    user_id: str
    app_id: str | None
    known: bool
    """Whether the user was ever heard of."""
    turns: int = 0
    """Turns of the user that are indexed; those of erased sessions are not counted."""
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
        raise invalid_field(
            name, "is no day of a calendar, or no time of a day: 2026-01-31, 2026-01-31T09:30:00Z"
        ) from None


def episode_answer(episode: EpisodeCompressed, distance: float | None = None) -> EpisodeAnswer:
    """An episode as it is answered."""
    return answered(
        EpisodeAnswer, episode, turn_start=episode.first_turn, turn_end=episode.last_turn, distance=distance
    )


def turn_refs(runs: Iterable[SessionTurns]) -> list[TurnRef]:
    """Turns one by one, in their order."""
    return [TurnRef(run.session_id, turn) for run in runs for turn in run.turns]
