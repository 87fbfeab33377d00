"""Events of a user's memory: the turns it is made of, episodes, facts, and what slower stages are asked.

A user is a user of one app: the same id in two apps is two users, so that nothing crosses from one tenant to another.
"""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from models.events.base import (
    NOT_ASKED,
    AskedOffset,
    CommandResult,
    Output,
    RequestedTurn,
    RequestId,
    Speaker,
    key_part,
)
from models.events.fields import *
from models.events.topic import TopicsKept, TopicsRecalled

FactKey = Annotated[str, about(privacy=CONTENT, min_length=1, max_length=64, pattern=r"^[a-z0-9_]+$")]
"""What a fact is about, in snake case: `name`, `location`, `allergy_peanuts`."""
FactValue = Annotated[str, about(privacy=CONTENT, min_length=1, max_length=400)]

MOST_SUMMARY_CHARS = 8_000
"""Of an answer; the policy keeps fewer."""


class FactCategory(StrEnum):
    """Category of a fact."""

    IDENTITY = "identity"
    PREFERENCE = "preference"
    CONSTRAINT = "constraint"
    INSTRUCTION = "instruction"


class MemoryMode(StrEnum):
    """Mode of a user's memory (user memory, flow 1: retrieval only if `mode="active"`)."""

    ACTIVE = "active"
    """It learns, and is read for prompts."""
    READ_ONLY = "read_only"
    """It is read, and learns nothing new of what is said."""
    OFF = "off"
    """Neither; what it has stays until it is erased."""


UserMode = Annotated[MemoryMode, about("Mode of the memory: active, read_only or off.", BEHAVIOUR)]


class ExtractedFact(Struct, frozen=True, kw_only=True, gc=False):
    """A fact that an extractor found in a message."""

    category: Annotated[FactCategory, about("Category: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[FactKey, about("Key of the fact in snake case, e.g. name, location, allergy_peanuts.")]
    value: Annotated[FactValue, about("Value of the fact.")]
    confidence: Annotated[Ratio, about("Confidence of the extractor, 0-1.")] = 1.0
    importance: Annotated[Ratio, about("Importance, 0-1.")] = 0.8
    corrects: Annotated[bool, about("Whether it is a correction; sets confidence 1.", BEHAVIOUR)] = False


class Retraction(Struct, frozen=True, kw_only=True, gc=False):
    """The user retracts facts ("forget my address"). None matches any value."""

    category: Annotated[FactCategory | None, about("Category of the facts; null: any.", BEHAVIOUR)] = None
    key: Annotated[FactKey | None, about("Key of the fact; null: any.")] = None
    value: Annotated[FactValue | None, about("Value that the fact must have; null: any.")] = None


class TurnRef(Struct, frozen=True, gc=False):
    """Reference to a turn by session and number."""

    session_id: SessionId
    turn: TurnIndex


class SessionTurns(Struct, frozen=True, gc=False):
    """Turns of one session that follow one another in a user's memory."""

    session_id: SessionId
    turns: Annotated[list[int], about("Turn numbers in the session.", BEHAVIOUR)]


# --- in: commands.v1, key user:<app>/<user> ----------------------------------------------------------------


class UserTurnAdded(Output, frozen=True, kw_only=True, tag="user_turn_added"):
    """A turn of a user or an assistant was folded into its session, and enters the user's memory."""

    session_id: Annotated[SessionId, about("Id of the turn's session.")]
    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    language: Annotated[str, about("Language of the user, ISO 639-1.", BEHAVIOUR)] = "en"


class UserTurnCorrected(Output, frozen=True, kw_only=True, tag="user_turn_corrected"):
    """A turn of the user was corrected: its recent text is replaced, and its facts are extracted again."""

    session_id: Annotated[SessionId, about("Id of the turn's session.")]
    turn: TurnIndex
    content: Annotated[str, about("New text of the message.", CONTENT)]


class UserCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the commands of slower stages, users and operators to a user's memory."""

    app_id: Annotated[AppId, NAMED, about("Id of the user's app.")]
    user_id: Annotated[UserId, NAMED, about("Id of the user who owns the memory.")]
    timestamp: EventTime


class EpisodeSummarised(UserCommand, frozen=True, kw_only=True, tag="episode_summarised", gc=False):
    """Answer to `EpisodeRequested`: the turns may leave the short-term tier."""

    first_turn: Annotated[TurnNumber, about("Same as in the request.")]
    last_turn: Annotated[TurnNumber, about("Same as in the request.")]
    summary: Annotated[Summary, Meta(min_length=1, max_length=MOST_SUMMARY_CHARS)]
    summarised_by: SummarisedBy
    key_topics: KeyTopics = []
    embedding: Annotated[Embedding, Meta(max_length=4_096)] = []
    embedded_by: EmbeddedBy = ""
    asked_offset: AskedOffset = NOT_ASKED


class FactsExtracted(UserCommand, frozen=True, kw_only=True, tag="facts_extracted", gc=False):
    """Answer to `FactsRequested`, or facts of the user from another source."""

    facts: Annotated[list[ExtractedFact], about("Extracted facts.", CONTENT, max_length=64)] = []
    retractions: Annotated[list[Retraction], about("Facts that the user retracts.", CONTENT, max_length=64)] = []
    session_id: Annotated[SessionId, about("Id of the session in which it was said; empty: none.")] = ""
    turn: Annotated[TurnIndex, about("Number of the turn that says so; -1: none.", ge=-1, le=2**53)] = -1
    extracted_by: Annotated[str, about("Extractor of the fact: rules, the model's name, or admin.", OPERATIONAL)] = ""
    asked_offset: AskedOffset = NOT_ASKED


class UserDeed(UserCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the manual commands to a user's memory."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class MemoryModeSet(UserDeed, frozen=True, kw_only=True, tag="memory_mode_set", gc=False):
    """The mode of the user's memory is set: it learns and is read, is only read, or neither."""

    mode: UserMode


class FactCommand(UserDeed, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the manual commands to a fact."""

    category: Annotated[FactCategory, about("Category: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[FactKey, about("Key of the fact in snake case, e.g. name, location, allergy_peanuts.")]


class FactEdited(FactCommand, frozen=True, kw_only=True, tag="fact_edited", gc=False):
    """A fact is added, corrected, pinned or unpinned by hand. None leaves a field unchanged."""

    value: Annotated[FactValue | None, about("New value; null: unchanged.")] = None
    importance: Annotated[Ratio | None, about("New importance, 0-1; null: unchanged.")] = None
    pinned: Annotated[bool | None, about("Whether later messages cannot replace it; null: unchanged.", BEHAVIOUR)] = (
        None
    )


class FactDeleted(FactCommand, frozen=True, kw_only=True, tag="fact_deleted", gc=False):
    """A fact is ended by hand, pinned or not. Ending an inactive fact is a no-op, and the result says so."""


UserEvent = (
    UserTurnAdded
    | UserTurnCorrected
    | TopicsKept
    | EpisodeSummarised
    | FactsExtracted
    | FactEdited
    | FactDeleted
    | MemoryModeSet
)


def user_key(app_id: str, user_id: str) -> str:
    """Key of everything that changes a user's memory; no two users share one, nor a user and another's fact.

    >>> user_key("shop/eu", "anna/1")
    'user:shop%2Feu/anna%2F1'
    """
    return f"user:{key_part(app_id)}/{key_part(user_id)}"


# --- out ---------------------------------------------------------------------------------------------------


class EpisodeRequested(Output, frozen=True, kw_only=True, tag="episode_requested"):
    """Requests the summary of turns that become an episode. Answered by `EpisodeSummarised`."""

    session_id: Annotated[SessionId, about("Id of the last turn's session.")]
    first_turn: Annotated[TurnIndex, about("First of the user's turns, counted across sessions from 1, inclusive.")]
    last_turn: Annotated[TurnIndex, about("Last of the user's turns, counted likewise, inclusive.")]
    turns: Annotated[list[RequestedTurn], about("The turns; long texts truncated.", CONTENT)]
    session_ids: Annotated[SessionIds, about("Distinct ids of the turns' sessions, in order.")] = field(
        default_factory=list
    )


class FactsRequested(Output, frozen=True, kw_only=True, tag="facts_requested"):
    """Requests facts of a message that the rules may have missed. Answered by `FactsExtracted`."""

    session_id: Annotated[SessionId, about("Id of the message's session.")]
    turn: TurnIndex
    content: Annotated[str, about("Text of the user's message; truncated if long.", CONTENT)]


class EpisodeCompressed(Output, frozen=True, kw_only=True, tag="episode_compressed"):
    """Turns of a user, from any sessions, became an episode: the middle tier."""

    session_id: Annotated[SessionId, about("Id of the last turn's session.")]
    episode: Annotated[int, about("Number of the user's episode, starting at 1.", BEHAVIOUR, unit="number")]
    first_turn: Annotated[TurnIndex, about("First of the user's turns, counted across sessions from 1, inclusive.")]
    last_turn: Annotated[TurnIndex, about("Last of the user's turns, counted likewise, inclusive.")]
    turn_range: Annotated[str, about("The range as text, e.g. `turns 1-20`.", BEHAVIOUR)]
    turns: Annotated[list[SessionTurns], about("The turns by session, in order of arrival.", IDENTIFIER)]
    summary: Summary
    summarised_by: SummarisedBy
    key_topics: KeyTopics
    embedding: Embedding
    embedded_by: EmbeddedBy
    started_at: StartTime
    ended_at: EndTime
    tokens_before: Annotated[Tokens, about("Tokens of the summarised turns.")]
    tokens_after: Tokens


FactCause = Literal[
    "stored", "updated", "confirmed", "retracted", "evicted", "erased", "edited", "deleted", "withdrawn", "contradicted"
]
"""`erased`: a session is to be forgotten. What it said is gone, with its value and those before; of a fact that stays,
past values are. `edited`, `deleted`: by hand, pinning too. `withdrawn`: its turn was put right and says it no more.
`contradicted`: another value was said of a pinned one, which stays; its history has the other."""


class PastFact(Struct, frozen=True, kw_only=True, gc=False):
    """An earlier value of a fact, and when it was valid."""

    value: Annotated[str, about("Earlier value.", CONTENT)]
    confidence: Confidence
    valid_from: Annotated[UtcTime, about("Event time from which the value is valid.")]
    valid_until: Annotated[UtcTime, about("Event time at which the value ceased to be valid.")]
    made_by: Annotated[str, about("Extractor: rules, a model's name, or admin; empty: unknown.", OPERATIONAL)] = ""
    by: Annotated[Operator, about("Name of the token that set it by hand; empty: none.")] = ""
    contradicted: Annotated[
        bool, about("Whether it contradicted a pinned value and was never valid; if empty, a retraction.", BEHAVIOUR)
    ] = False


class FactChanged(Output, frozen=True, kw_only=True, tag="fact_changed"):
    """A fact of a user was added, changed or ended: the upper tier. Compacted by user, category, key."""

    session_id: Annotated[SessionId, about("Id of the session in which it was said.")]
    category: Annotated[FactCategory, about("Category: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[str, about("Key of the fact in snake case, e.g. name, location, allergy_peanuts.", CONTENT)]
    value: Annotated[str, about("Active value; of an ended fact the last value.", CONTENT)]
    confidence: Confidence
    importance: Importance
    active: Annotated[bool, about("Whether it is active; false in the last event of an ended fact.", BEHAVIOUR)]
    cause: Annotated[FactCause, about("Cause of the change.", BEHAVIOUR)]
    valid_from: Annotated[UtcTime, about("Event time from which the value is valid.")]
    valid_until: Annotated[UtcTime | None, about("Event time at which the value ceased to be valid; null: valid.")]
    turn: Annotated[TurnIndex, about("Number of the turn of `session_id` that says so; -1: none.")]
    extracted_by: Annotated[str, about("Extractor of the fact: rules, the model's name, or admin.", OPERATIONAL)]
    history: Annotated[list[PastFact], about("Earlier values, oldest first; the archive has more.", CONTENT)]
    pinned: Annotated[bool, about("Whether later messages cannot replace it.", BEHAVIOUR)] = False
    by: Annotated[Operator, about("Name of the token that last changed it by hand; empty: none.")] = ""


class UserMemoryChanged(Output, frozen=True, kw_only=True, tag="user_memory_changed"):
    """State of a user's memory after each of its turns; follows the facts of the turn. Compacted by user."""

    session_id: Annotated[SessionId, about("Id of the session that changed it; empty: none.")]
    turn_count: Annotated[int, about("Number of the user's turns in all sessions.", BEHAVIOUR)]
    compressed_turns: Annotated[int, about("The user's turns up to this number are in episodes.", BEHAVIOUR)]
    requested_turns: Annotated[int, about("The user's turns up to this number are compressed or requested.", BEHAVIOUR)]
    short_term: Annotated[list[SessionTurns], about("Turns of the short-term tier, in order of arrival.", IDENTIFIER)]
    facts: Annotated[int, about("Number of the user's active facts.", BEHAVIOUR)]
    episodes: Annotated[int, about("Number of the user's episodes.", BEHAVIOUR)]
    seen: Annotated[dict[str, int], about("Offset up to which turns are folded, by partition.", IDENTIFIER)]
    results: Annotated[list[CommandResult], about("Results of the latest commands.", IDENTIFIER)] = field(
        default_factory=list
    )
    memory_mode: UserMode = MemoryMode.ACTIVE
    language: Annotated[str, about("Language of the user's last turn, ISO 639-1.", BEHAVIOUR)] = "en"
    unsupported_turns: Annotated[
        int, about("Number of user turns from which no facts were read, as their language is not supported.", BEHAVIOUR)
    ] = 0


UserOutput = FactChanged | UserMemoryChanged | EpisodeCompressed | EpisodeRequested | FactsRequested | TopicsRecalled
