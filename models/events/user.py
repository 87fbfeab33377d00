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
    """Kinds of facts."""

    IDENTITY = "identity"
    PREFERENCE = "preference"
    CONSTRAINT = "constraint"
    INSTRUCTION = "instruction"


class MemoryMode(StrEnum):
    """What a user's memory does (user memory, flow 1: retrieval only if `mode="active"`)."""

    ACTIVE = "active"
    """It learns, and is read for prompts."""
    READ_ONLY = "read_only"
    """It is read, and learns nothing new of what is said."""
    OFF = "off"
    """Neither; what it has stays until it is erased."""


UserMode = Annotated[MemoryMode, about("What the memory does: active, read_only or off.", BEHAVIOUR)]


class ExtractedFact(Struct, frozen=True, kw_only=True, gc=False):
    """A fact that an extractor found in a message."""

    category: Annotated[FactCategory, about("Kind: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[FactKey, about("What the fact is about, in snake case: name, location, allergy_peanuts.")]
    value: Annotated[FactValue, about("What is so.")]
    confidence: Annotated[Ratio, about("How sure the extractor is, 0-1.")] = 1.0
    importance: Annotated[Ratio, about("How much it matters, 0-1.")] = 0.8
    corrects: Annotated[bool, about("Whether it puts something right: confidence 1.", BEHAVIOUR)] = False


class Retraction(Struct, frozen=True, kw_only=True, gc=False):
    """The user takes something back ("forget my address"). What is None matches anything."""

    category: Annotated[FactCategory | None, about("Which facts; null: of any category.", BEHAVIOUR)] = None
    key: Annotated[FactKey | None, about("Which fact; null: any.")] = None
    value: Annotated[FactValue | None, about("Only if this is its value; null: whatever it is.")] = None


class TurnRef(Struct, frozen=True, gc=False):
    """A turn by its session and number."""

    session_id: SessionId
    turn: TurnIndex


class SessionTurns(Struct, frozen=True, gc=False):
    """Turns of one session that a user's memory has one after the other."""

    session_id: SessionId
    turns: Annotated[list[int], about("Turn numbers in that conversation.", BEHAVIOUR)]


# --- in: commands.v1, key user:<app>/<user> ----------------------------------------------------------------


class UserTurnAdded(Output, frozen=True, kw_only=True, tag="user_turn_added"):
    """A turn of a user or an assistant was counted in its session, and is now the user's."""

    session_id: Annotated[SessionId, about("Conversation of the turn.")]
    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    language: Annotated[str, about("That the user speaks, ISO 639-1.", BEHAVIOUR)] = "en"


class UserTurnCorrected(Output, frozen=True, kw_only=True, tag="user_turn_corrected"):
    """A turn of the user was put right: its text at hand is replaced, and what it said of the user is read anew."""

    session_id: Annotated[SessionId, about("Conversation of the turn.")]
    turn: TurnIndex
    content: Annotated[str, about("The new text of the message.", CONTENT)]


class UserCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what slower stages, users and operators send to a user's memory."""

    app_id: Annotated[AppId, NAMED, about("App of the user.")]
    user_id: Annotated[UserId, NAMED, about("User whose memory it is.")]
    timestamp: EventTime


class EpisodeSummarised(UserCommand, frozen=True, kw_only=True, tag="episode_summarised", gc=False):
    """Answer to `EpisodeRequested`: the turns may leave the short-term tier."""

    first_turn: Annotated[TurnNumber, about("As in the request.")]
    last_turn: Annotated[TurnNumber, about("As in the request.")]
    summary: Annotated[Summary, Meta(min_length=1, max_length=MOST_SUMMARY_CHARS)]
    summarised_by: SummarisedBy
    key_topics: KeyTopics = []
    embedding: Annotated[Embedding, Meta(max_length=4_096)] = []
    embedded_by: EmbeddedBy = ""
    asked_offset: AskedOffset = NOT_ASKED


class FactsExtracted(UserCommand, frozen=True, kw_only=True, tag="facts_extracted", gc=False):
    """Answer to `FactsRequested`, or what somebody knows of the user."""

    facts: Annotated[list[ExtractedFact], about("What was found.", CONTENT, max_length=64)] = []
    retractions: Annotated[list[Retraction], about("What the user takes back.", CONTENT, max_length=64)] = []
    session_id: Annotated[SessionId, about("Conversation in which it was said; empty for none.")] = ""
    turn: Annotated[TurnIndex, about("Turn that says so; -1 for none.", ge=-1, le=2**53)] = -1
    extracted_by: Annotated[str, about("What found the fact: rules, or the model's name.", OPERATIONAL)] = ""
    asked_offset: AskedOffset = NOT_ASKED


class UserDeed(UserCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what somebody does to a user's memory by hand."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class MemoryModeSet(UserDeed, frozen=True, kw_only=True, tag="memory_mode_set", gc=False):
    """The user's memory learns from now on, only answers, or does neither."""

    mode: UserMode


class FactCommand(UserDeed, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what somebody does to a fact by hand."""

    category: Annotated[FactCategory, about("Kind: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[FactKey, about("What the fact is about, in snake case: name, location, allergy_peanuts.")]


class FactEdited(FactCommand, frozen=True, kw_only=True, tag="fact_edited", gc=False):
    """A fact is written, put right, pinned or let go by hand; None leaves a field as it is."""

    value: Annotated[FactValue | None, about("What is so; null: as it was.")] = None
    importance: Annotated[Ratio | None, about("The new importance, 0-1; null: as it was.")] = None
    pinned: Annotated[bool | None, about("Whether nothing that is said replaces it; null: as it was.", BEHAVIOUR)] = (
        None
    )


class FactDeleted(FactCommand, frozen=True, kw_only=True, tag="fact_deleted", gc=False):
    """A fact holds no longer, pinned or not. One that does not hold already: said so, no error."""


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
    """So many turns of a user are to become one episode. Answered by `EpisodeSummarised`."""

    session_id: Annotated[SessionId, about("Conversation of the last turn.")]
    first_turn: Annotated[TurnIndex, about("Of the user's turns, counted across sessions from 1; inside the range.")]
    last_turn: Annotated[TurnIndex, about("Last of the user's turns, inside the range.")]
    turns: Annotated[list[RequestedTurn], about("The turns, long ones cut.", CONTENT)]
    session_ids: Annotated[SessionIds, about("Conversations of the turns, each once, in order.")] = field(
        default_factory=list
    )


class FactsRequested(Output, frozen=True, kw_only=True, tag="facts_requested"):
    """A message may say something of its user that rules do not see. Answered by `FactsExtracted`."""

    session_id: Annotated[SessionId, about("Conversation of the message.")]
    turn: TurnIndex
    content: Annotated[str, about("The user's message; a long one is cut.", CONTENT)]


class EpisodeCompressed(Output, frozen=True, kw_only=True, tag="episode_compressed"):
    """Turns of a user, of any sessions, became an episode: the middle tier."""

    session_id: Annotated[SessionId, about("Conversation of the last turn.")]
    episode: Annotated[int, about("Counts the user's episodes, from 1.", BEHAVIOUR, unit="number")]
    first_turn: Annotated[TurnIndex, about("Of the user's turns, counted across sessions from 1; inside the range.")]
    last_turn: Annotated[TurnIndex, about("Last of the user's turns, inside the range.")]
    turn_range: Annotated[str, about("The range in words: `turns 1-20`.", BEHAVIOUR)]
    turns: Annotated[list[SessionTurns], about("Which turns these are, by session, in order of arrival.", IDENTIFIER)]
    summary: Summary
    summarised_by: SummarisedBy
    key_topics: KeyTopics
    embedding: Embedding
    embedded_by: EmbeddedBy
    started_at: StartTime
    ended_at: EndTime
    tokens_before: Annotated[Tokens, about("Tokens of the turns that it stands for.")]
    tokens_after: Tokens


FactCause = Literal[
    "stored", "updated", "confirmed", "retracted", "evicted", "erased", "edited", "deleted", "withdrawn", "contradicted"
]
"""`erased`: a session is to be forgotten. What it said is gone, with its value and those before; of a fact that stays,
past values are. `edited`, `deleted`: by hand, pinning too. `withdrawn`: its turn was put right and says it no more.
`contradicted`: another value was said of a pinned one, which stays; its history has the other."""


class PastFact(Struct, frozen=True, kw_only=True, gc=False):
    """A value that was true, and when."""

    value: Annotated[str, about("What was so.", CONTENT)]
    confidence: Confidence
    valid_from: Annotated[UtcTime, about("Event time from which the value holds.")]
    valid_until: Annotated[UtcTime, about("Event time at which it ceased to hold.")]
    made_by: Annotated[str, about("What found it: rules, a model, or admin; empty: not known.", OPERATIONAL)] = ""
    by: Annotated[Operator, about("Who wrote it by hand; empty: nobody.")] = ""
    contradicted: Annotated[
        bool, about("Whether it was said against a pinned value, and never held; empty: taken back.", BEHAVIOUR)
    ] = False


class FactChanged(Output, frozen=True, kw_only=True, tag="fact_changed"):
    """A fact of a user came, changed or was taken back: the upper tier. Compacted by user, category, key."""

    session_id: Annotated[SessionId, about("Conversation in which it was said.")]
    category: Annotated[FactCategory, about("Kind: identity, preference, constraint or instruction.", BEHAVIOUR)]
    key: Annotated[str, about("What the fact is about, in snake case: name, location, allergy_peanuts.", CONTENT)]
    value: Annotated[str, about("The active value; of one that was retracted the last.", CONTENT)]
    confidence: Confidence
    importance: Importance
    active: Annotated[bool, about("Whether it holds; false in the last event of one that went.", BEHAVIOUR)]
    cause: Annotated[FactCause, about("What happened to the fact.", BEHAVIOUR)]
    valid_from: Annotated[UtcTime, about("Event time from which the value holds.")]
    valid_until: Annotated[UtcTime | None, about("Event time at which it ceased to hold; null: it holds.")]
    turn: Annotated[TurnIndex, about("Turn of `session_id` that says so; -1 for none.")]
    extracted_by: Annotated[str, about("What found the fact: rules, or the model's name.", OPERATIONAL)]
    history: Annotated[list[PastFact], about("Earlier values, the oldest first; the archive has more.", CONTENT)]
    pinned: Annotated[bool, about("Whether nothing that is said replaces it.", BEHAVIOUR)] = False
    by: Annotated[Operator, about("Who changed it by hand last; empty: nobody.")] = ""


class UserMemoryChanged(Output, frozen=True, kw_only=True, tag="user_memory_changed"):
    """How far a user's memory is, after each of its turns, behind the facts of the same turn. Compacted by user."""

    session_id: Annotated[SessionId, about("Conversation that changed it; empty where none did.")]
    turn_count: Annotated[int, about("Turns of the user, of all sessions.", BEHAVIOUR)]
    compressed_turns: Annotated[int, about("The user's turns up to this number are in episodes.", BEHAVIOUR)]
    requested_turns: Annotated[int, about("The user's turns up to this number are in, or asked for.", BEHAVIOUR)]
    short_term: Annotated[list[SessionTurns], about("Turns at hand, in order of arrival.", IDENTIFIER)]
    facts: Annotated[int, about("Active facts of the user.", BEHAVIOUR)]
    episodes: Annotated[int, about("Episodes of the user.", BEHAVIOUR)]
    seen: Annotated[dict[str, int], about("Partition of turns to the offset up to which they are in.", IDENTIFIER)]
    results: Annotated[list[CommandResult], about("What the last commands came to.", IDENTIFIER)] = field(
        default_factory=list
    )
    memory_mode: UserMode = MemoryMode.ACTIVE
    language: Annotated[str, about("Of the user's last turn, ISO 639-1.", BEHAVIOUR)] = "en"
    unsupported_turns: Annotated[
        int, about("User turns in languages of which the rules read no facts, and no language model did.", BEHAVIOUR)
    ] = 0


UserOutput = FactChanged | UserMemoryChanged | EpisodeCompressed | EpisodeRequested | FactsRequested | TopicsRecalled
