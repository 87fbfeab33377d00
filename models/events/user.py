"""Events of a user's memory (seed 002): the turns it is made of, episodes, facts, and what slower stages are asked.

A user is a user of one app: the same id in two apps is two users, so that nothing crosses from one tenant to another.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from models.events.base import Identifier, Output, Ratio, Role, TurnNumber, UtcTime, key_part

FactKey = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9_]+$")]
"""What a fact is about, in snake case: `name`, `location`, `allergy_peanuts`."""
FactValue = Annotated[str, Meta(min_length=1, max_length=400)]


MOST_SUMMARY_CHARS = 8_000
"""Of an answer; the policy keeps fewer."""


class FactCategory(StrEnum):
    """Kinds of facts (seed 002, What Gets Stored)."""

    IDENTITY = "identity"
    PREFERENCE = "preference"
    CONSTRAINT = "constraint"
    INSTRUCTION = "instruction"


class ExtractedFact(Struct, frozen=True, kw_only=True, gc=False):
    """A fact that an extractor found in a message."""

    category: FactCategory
    key: FactKey
    value: FactValue
    confidence: Ratio
    importance: Ratio = 0.8
    corrects: bool = False
    """The user puts something right ("my full name is …"): counts as confidence 1."""


class Retraction(Struct, frozen=True, kw_only=True, gc=False):
    """The user takes something back ("forget my address"). What is None matches anything."""

    category: FactCategory | None = None
    key: FactKey | None = None
    value: FactValue | None = None
    """Only if this is the value."""


class TurnRef(Struct, frozen=True, gc=False):
    """A turn by its session and number."""

    session_id: str
    turn: int


class SessionTurns(Struct, frozen=True, gc=False):
    """Turns of one session that a user's memory has one after the other."""

    session_id: str
    turns: list[int]


# --- in: commands.v1, key user:<app>/<user> ----------------------------------------------------------------


class UserTurnAdded(Output, frozen=True, kw_only=True, tag="user_turn_added"):
    """A turn of a user or an assistant was counted in its session, and is now the user's."""

    turn: int
    role: Role
    content: str


class UserCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what slower stages, users and operators send to a user's memory."""

    app_id: Identifier
    user_id: Identifier
    timestamp: UtcTime


class EpisodeSummarised(UserCommand, frozen=True, kw_only=True, tag="episode_summarised", gc=False):
    """Answer to `EpisodeRequested`: the turns may leave the short-term tier."""

    first_turn: TurnNumber
    last_turn: TurnNumber
    summary: Annotated[str, Meta(min_length=1, max_length=MOST_SUMMARY_CHARS)]
    summarised_by: str
    key_topics: list[str] = []
    embedding: Annotated[list[float], Meta(max_length=4_096)] = []
    """Of the summary, of unit length; empty where nothing could embed it."""
    embedded_by: str = ""


class FactsExtracted(UserCommand, frozen=True, kw_only=True, tag="facts_extracted", gc=False):
    """Answer to `FactsRequested`, or what somebody knows of the user."""

    facts: Annotated[list[ExtractedFact], Meta(max_length=64)] = []
    retractions: Annotated[list[Retraction], Meta(max_length=64)] = []
    session_id: str = ""
    turn: Annotated[int, Meta(ge=-1, le=2**53)] = -1
    """The turn that says so; -1 for none."""
    extracted_by: str = ""


UserEvent = UserTurnAdded | EpisodeSummarised | FactsExtracted


def user_key(app_id: str, user_id: str) -> str:
    """Key of everything that changes a user's memory; no two users share one, nor a user and another's fact.

    >>> user_key("shop/eu", "anna/1")
    'user:shop%2Feu/anna%2F1'
    """
    return f"user:{key_part(app_id)}/{key_part(user_id)}"


# --- out ---------------------------------------------------------------------------------------------------


class RequestedTurn(Struct, frozen=True, gc=False):
    """A turn as a slower stage sees it; long ones are cut."""

    role: Role
    content: str


class EpisodeRequested(Output, frozen=True, kw_only=True, tag="episode_requested"):
    """So many turns of a user are to become one episode (seed 002, flow 1). Answered by `EpisodeSummarised`."""

    first_turn: int
    """The user's turns are counted across sessions, from 1."""
    last_turn: int
    turns: list[RequestedTurn]
    session_ids: list[str] = field(default_factory=list)
    """Of its turns, each once, in order of arrival."""


class FactsRequested(Output, frozen=True, kw_only=True, tag="facts_requested"):
    """A message may say something of its user that rules do not see. Answered by `FactsExtracted`."""

    turn: int
    content: str


class EpisodeCompressed(Output, frozen=True, kw_only=True, tag="episode_compressed"):
    """Turns of a user, of any sessions, became an episode: the middle tier (seed 002)."""

    episode: int
    """Counts the user's episodes, from 1."""
    first_turn: int
    """The user's turns are counted across sessions, from 1. Both ends are inside."""
    last_turn: int
    turn_range: str
    """As the seed writes it: `turns 1-20`."""
    turns: list[SessionTurns]
    """In order of arrival; a session comes again where another was talked in between."""
    summary: str
    summarised_by: str
    key_topics: list[str]
    embedding: list[float]
    embedded_by: str
    started_at: UtcTime
    ended_at: UtcTime
    tokens_before: int
    tokens_after: int


FactCause = Literal["stored", "updated", "confirmed", "retracted", "evicted", "erased"]
"""`erased`: a session is to be forgotten. What it said is gone, with its value and those before; of a fact that stays,
past values are."""


class PastFact(Struct, frozen=True, kw_only=True, gc=False):
    """A value that was true, and when."""

    value: str
    confidence: float
    valid_from: UtcTime
    valid_until: UtcTime


class FactChanged(Output, frozen=True, kw_only=True, tag="fact_changed"):
    """A fact of a user came, changed or was taken back: the upper tier (seed 002). Compacted by user, category, key."""

    category: FactCategory
    key: str
    value: str
    """The active value; of one that was retracted the last."""
    confidence: float
    importance: float
    active: bool
    cause: FactCause
    valid_from: UtcTime
    valid_until: UtcTime | None
    """None while it is active."""
    turn: int
    """Turn of `session_id` that says so; -1 for none."""
    extracted_by: str
    history: list[PastFact]
    """Values before this one, the oldest first; the archive has those beyond the policy's number."""


class UserMemoryChanged(Output, frozen=True, kw_only=True, tag="user_memory_changed"):
    """How far a user's memory is, after each of its turns, behind the facts of the same turn. Compacted by user."""

    turn_count: int
    compressed_turns: int
    """The user's turns up to this number are in episodes …"""
    requested_turns: int
    """… and up to this one asked for."""
    short_term: list[SessionTurns]
    """Turns at hand, in order of arrival (seed 002, the last 10-20)."""
    facts: int
    """Active ones."""
    episodes: int
    seen: dict[str, int]
    """Partition of `turns.v1` → the offset up to which the user's turns are in."""


UserOutput = FactChanged | UserMemoryChanged | EpisodeCompressed | EpisodeRequested | FactsRequested
