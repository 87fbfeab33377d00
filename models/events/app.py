"""Events of an app's memories: conversations that ended, what was made of them, and what admins do.

Memories live in *spaces* of at most ten: one per app, and if the policy wants it one per user of an app. A space is
folded under its key (`space_key`), as a user is under hers.
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
from models.events.saved_search import SavedSearch
from models.events.user import UserMode

MOST_MEMORY_CHARS = 4_000
"""Of a command; the policy keeps fewer."""
MemoryNumber = Annotated[int, about("Counts the memories of its space, from 1.", IDENTIFIER, names="memory")]
MemoryId = Annotated[MemoryNumber, Meta(ge=1, le=2**53)]
"""In a command; no memory gets the number of another."""
MadeBy = Annotated[str, about("What wrote the memory: rules, the model's name, or admin.", OPERATIONAL)]
Failure = Annotated[str, about("Why there is none: timeout, llm_error or rubbish; empty if there is one.", OPERATIONAL)]
TokensUsed = Annotated[int, about("Tokens read and written for it.", BEHAVIOUR, unit="tokens", ge=0, le=2**31)]
ElapsedMs = Annotated[int, about("What making it took, in milliseconds.", OPERATIONAL, unit="ms", ge=0, le=2**31)]
Energy = Annotated[float, about(privacy=OPERATIONAL, unit="units of energy")]
Space = Annotated[
    Literal["app", "user"], about("Whose memories: the app's, or those of its user in the app.", BEHAVIOUR)
]


class NotableKind(StrEnum):
    """What makes a sentence worth remembering."""

    DECISION = "decision"
    PREFERENCE = "preference"
    FACT = "fact"
    OUTCOME = "outcome"


class NotableSentence(Struct, frozen=True, gc=False):
    """A sentence of a conversation that may be worth remembering."""

    kind: Annotated[NotableKind, about("Decision, preference, fact or outcome.", BEHAVIOUR)]
    role: Speaker
    turn: TurnIndex
    text: Annotated[str, about("The sentence, a long one cut.", CONTENT)]
    weight: Annotated[Share, about("How much it is worth remembering, 0-1.")]


Notables = Annotated[
    list[NotableSentence], about("Sentences that may be worth remembering, in order of turn.", CONTENT)
]


def space_key(app_id: str, user_id: str = "") -> str:
    """Key of everything that changes a space of memories: an app's, or with a user that user's in the app.

    >>> space_key("shop/eu"), space_key("shop/eu", "anna/1")
    ('app:shop%2Feu', 'app:shop%2Feu/anna%2F1')
    """
    app = key_part(app_id)
    return f"app:{app}/{key_part(user_id)}" if user_id else f"app:{app}"


# --- in: commands.v1, key app:<app> or app:<app>/<user> ------------------------------------------------------


class ConversationEnded(Output, frozen=True, kw_only=True, tag="conversation_ended"):
    """A session ended or timed out: a memory may be made of it."""

    session_id: Annotated[SessionId, about("Conversation that ended.")]
    space: Space
    reason: Annotated[str, about("Why the conversation ended.", CONTENT)]
    first_turn: FirstTurn
    last_turn: LastTurn
    turn_count: Annotated[int, about("Turns folded, duplicates not counted.", BEHAVIOUR)]
    summary: Summary
    key_topics: KeyTopics
    notables: Notables
    turns: Annotated[
        list[RequestedTurn],
        about("All turns, or the last that fit, long ones cut; empty if no model is asked.", CONTENT),
    ]
    started_at: StartTime
    ended_at: EndTime
    earlier: Annotated[
        list[str], about("Summaries of what was said before the turns that are here, in order.", CONTENT)
    ] = field(default_factory=list)


class SpaceCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what slower stages, admins and the clock send to a space of memories."""

    app_id: Annotated[AppId, NAMED, about("App whose space it is.")]
    timestamp: EventTime
    user_id: Annotated[UserId, about("User whose space it is; empty for the app's own.", max_length=256)] = ""


class MemoryProposed(SpaceCommand, frozen=True, kw_only=True, tag="memory_proposed", gc=False):
    """Answer to `MemoryRequested`; without content the memory is skipped."""

    request: Annotated[int, about("Number of the request in its space.", OPERATIONAL, unit="number")]
    content: Annotated[str, about("The memory; empty for none.", CONTENT)] = ""
    importance: Annotated[Ratio | None, about("How much it matters, 0-1; null: the fold scores it.")] = None
    tags: Annotated[list[str], about("Words for what it is about.", CONTENT, max_length=64)] = []
    made_by: MadeBy = ""
    failure: Failure = ""
    tokens: TokensUsed = 0
    elapsed_ms: ElapsedMs = 0
    asked_offset: AskedOffset = NOT_ASKED


class CompactionDecided(SpaceCommand, frozen=True, kw_only=True, tag="compaction_decided", gc=False):
    """Answer to `CompactionRequested`: the decision, unchecked. What is invalid falls back to FIFO."""

    request: Annotated[int, about("Number of the request in its space.", OPERATIONAL, unit="number")]
    action: Annotated[str, about("Delete or edit; anything else falls back to the oldest.", BEHAVIOUR)] = ""
    target_memory_id: Annotated[MemoryNumber, about("Memory that is deleted or edited.")] = 0
    new_content: Annotated[str | None, about("Text of the target afterwards; null for a deletion.", CONTENT)] = None
    reason: Annotated[str, about("Why, in the decider's words.", CONTENT)] = ""
    decided_by: Annotated[str, about("What decided: rules, or the model's name.", OPERATIONAL)] = ""
    failure: Failure = ""
    tokens: TokensUsed = 0
    elapsed_ms: ElapsedMs = 0
    asked_offset: AskedOffset = NOT_ASKED


class WorkDue(SpaceCommand, frozen=True, kw_only=True, tag="work_due", gc=False):
    """Written by a memory worker when a space has deferred work or an overdue request and nothing else arrives.

    The time that counts is that of its record, so that a replay sees the same clock.
    """


class AdminCommand(SpaceCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what an admin does. Each makes an `AppMemoryAudited`, also if it changes nothing."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class MemoryEdited(AdminCommand, frozen=True, kw_only=True, tag="memory_edited", gc=False):
    """A memory is put right, pinned or let go by hand; None leaves a field as it is."""

    memory_id: Annotated[MemoryId, about("Memory that is put right.")]
    content: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_MEMORY_CHARS)] | None,
        about("The new text; null: as it was.", CONTENT),
    ] = None
    importance: Annotated[Ratio | None, about("The new importance, 0-1; null: as it was.")] = None
    tags: Annotated[
        Annotated[list[str], Meta(max_length=64)] | None,
        about("In place of the tags it had; null: as they were.", CONTENT),
    ] = None
    pinned: Annotated[bool | None, about("Whether it is never compacted away; null: as it was.", BEHAVIOUR)] = None
    shared_with: Annotated[
        Annotated[list[Identifier], Meta(max_length=64)] | None,
        about("Apps that may read it besides; null: as they were.", IDENTIFIER, names="app"),
    ] = None


class MemoryDeleted(AdminCommand, frozen=True, kw_only=True, tag="memory_deleted", gc=False):
    """A memory goes. One that is gone already: said so, no error."""

    memory_id: Annotated[MemoryId, about("Memory that goes.")]


class MemoriesPurged(AdminCommand, frozen=True, kw_only=True, tag="memories_purged", gc=False):
    """All memories of the space go, and conversations that wait to become one."""


class AppUninstalled(AdminCommand, frozen=True, kw_only=True, tag="app_uninstalled", gc=False):
    """The app is gone. Its memories stay unless asked otherwise."""

    purge_memories: Annotated[bool, about("Whether its memories go too.", BEHAVIOUR)] = False


class SpaceModeSet(AdminCommand, frozen=True, kw_only=True, tag="space_mode_set", gc=False):
    """The user's memory in the app was switched: unless it is active, no memory is made of what ends from now on."""

    mode: UserMode


Injects = Annotated[
    bool | None, about("Whether all prompts of the app begin with its memories; null: as the policy says.", BEHAVIOUR)
]


class AppInjectionSet(AdminCommand, frozen=True, kw_only=True, tag="app_injection_set", gc=False):
    """The app's prompts were switched, all of them: with its memories, without, or as the policy says."""

    inject: Injects = None


class SearchSaved(AdminCommand, frozen=True, kw_only=True, tag="search_saved"):
    """A search of the app's alerts is kept for everybody who may see them, in place of one of its name; or let go."""

    search: Annotated[SavedSearch, about("The search.", BEHAVIOUR)]
    kept: Annotated[bool, about("Whether it is kept from now on; false: let go.", BEHAVIOUR)] = True


class MemoriesRead(AdminCommand, frozen=True, kw_only=True, tag="memories_read", gc=False):
    """An admin looked at memories. Changes nothing; it is audited."""

    how: Annotated[Literal["list", "one", "search", "export"], about("A list, one, a search, or an export.", BEHAVIOUR)]
    count: Annotated[int, about("Memories that were shown.", BEHAVIOUR, ge=0, le=2**31)]
    memory_id: Annotated[MemoryId | None, about("Memory that was read; null: several.")] = None


SpaceEvent = (
    ConversationEnded
    | MemoryProposed
    | CompactionDecided
    | WorkDue
    | MemoryEdited
    | MemoryDeleted
    | MemoriesPurged
    | AppUninstalled
    | SpaceModeSet
    | AppInjectionSet
    | SearchSaved
    | MemoriesRead
)


# --- out ---------------------------------------------------------------------------------------------------


class MemoryToKeep(Struct, frozen=True, kw_only=True, gc=False):
    """A memory as those see it who decide on a compaction, and as it is told of before and after."""

    memory_id: MemoryNumber
    content: Annotated[str, about("The memory.", CONTENT)]
    importance: Importance
    pinned: Annotated[bool, about("Whether it is never compacted away.", BEHAVIOUR)]
    created_at: Annotated[UtcTime, about("When the memory was made, by the conversation's end.")]
    updated_at: Annotated[UtcTime, about("Event time of its last change.")]


class MemoryRequested(Output, frozen=True, kw_only=True, tag="memory_requested"):
    """A memory of a conversation is wanted of a slower stage. Answered by `MemoryProposed`."""

    session_id: Annotated[SessionId, about("Conversation that it is wanted of.")]
    space: Space
    request: Annotated[int, about("Counts the requests of a space; the answer names it.", OPERATIONAL, unit="number")]
    summary: Summary
    notables: Notables
    turns: Annotated[list[RequestedTurn], about("All turns, or the last that fit, long ones cut.", CONTENT)]
    earlier: Annotated[
        list[str], about("Summaries of what was said before the turns that are here, in order.", CONTENT)
    ] = field(default_factory=list)


class CompactionRequested(Output, frozen=True, kw_only=True, tag="compaction_requested"):
    """There is one memory too many; a slower stage decides which goes. Answered by `CompactionDecided`."""

    session_id: Annotated[SessionId, about("Conversation of the new memory.")]
    space: Space
    request: Annotated[int, about("Counts the requests of a space; the answer names it.", OPERATIONAL, unit="number")]
    memories: Annotated[list[MemoryToKeep], about("All but the new one, the oldest first.", CONTENT)]
    new_memory: Annotated[MemoryToKeep, about("The memory that is one too many.", CONTENT)]


MemoryCause = Literal[
    "created",
    "remade",
    "edited",
    "merged",
    "conflict",
    "compacted",
    "deleted",
    "purged",
    "erased",
    "outdated",
    "expired",
]
"""`remade`: the conversation went on and ended again. `outdated`: its user said another date, sum or place since;
what said the old one is left out. `expired`: the policy keeps none so long unchanged. `edited`: by an
admin, pinning and sharing too."""


class AppMemoryChanged(Output, frozen=True, kw_only=True, tag="app_memory_changed"):
    """A memory came, changed or went. Compacted by space and slot.

    `session_id` and `user_id` are those of the conversation it was made of.
    """

    session_id: Annotated[SessionId, about("Conversation that it was made of; empty of an erased one.")]
    user_id: Annotated[UserId, about("User of that conversation.")]
    space: Space
    slot: Annotated[int, about("Place in its space, from 0; what comes next replaces it.", IDENTIFIER, unit="number")]
    memory_id: MemoryNumber
    active: Annotated[bool, about("Whether it is there; false in the last event of one that went.", BEHAVIOUR)]
    cause: Annotated[MemoryCause, about("What happened to the memory.", BEHAVIOUR)]
    content: Annotated[str, about("The memory; empty for one that went.", CONTENT)]
    importance: Importance
    tags: Annotated[list[str], about("Words for what it is about.", CONTENT)]
    related_conversations: Annotated[SessionIds, about("Conversations whose memories were merged into this one.")]
    created_at: Annotated[UtcTime, about("When the memory was made, by the conversation's end.")]
    updated_at: Annotated[UtcTime, about("Event time of its last change.")]
    pinned: Annotated[bool, about("Whether it is never compacted away.", BEHAVIOUR)]
    shared_with: Annotated[list[str], about("Apps that may read it besides.", IDENTIFIER, names="app")]
    conflicts_with: Annotated[list[int], about("Memories that say something else of it.", IDENTIFIER, names="memory")]
    made_by: MadeBy


class AppMemoriesChanged(Output, frozen=True, kw_only=True, tag="app_memories_changed"):
    """How far a space is, after each event that changed it, behind its memories. Compacted by space."""

    session_id: Annotated[SessionId, about("Empty: it is no conversation's.")]
    user_id: Annotated[UserId, about("User whose space it is; empty for the app's own.")]
    space: Space
    memories: Annotated[int, about("Memories of the space.", BEHAVIOUR)]
    created: Annotated[int, about("Memories made, of all time.", BEHAVIOUR)]
    compactions: Annotated[int, about("Compactions of all time.", BEHAVIOUR)]
    skipped: Annotated[int, about("Conversations of which no memory was made, of all time.", BEHAVIOUR)]
    edited: Annotated[int, about("Memories that admins changed, of all time.", BEHAVIOUR)]
    waiting: Annotated[int, about("Conversations that wait for energy, or for an answer.", BEHAVIOUR)]
    energy_units: Annotated[Energy, about("What is left of the budget for memory work.", BEHAVIOUR)]
    energy_capacity_units: Annotated[Energy, about("Budget of a space that has rested.")]
    spent_units: Annotated[Energy, about("Energy spent, of all time.")]
    uninstalled: Annotated[bool, about("Whether the app is gone; a later conversation takes it back.", BEHAVIOUR)]
    results: Annotated[list[CommandResult], about("What the last commands of admins came to.", IDENTIFIER)]
    inject: Injects = None
    searches: Annotated[list[SavedSearch], about("Saved for its alerts, by title.", BEHAVIOUR)] = field(
        default_factory=list
    )


class AppMemoriesCompacted(Output, frozen=True, kw_only=True, tag="app_memories_compacted"):
    """One of eleven memories went or was merged into another."""

    session_id: Annotated[SessionId, about("Conversation of the new memory.")]
    space: Space
    action: Annotated[Literal["delete", "edit"], about("Whether the target was deleted or edited.", BEHAVIOUR)]
    target_memory_id: Annotated[MemoryNumber, about("Memory that is deleted or edited.")]
    merged_memory_id: Annotated[MemoryNumber | None, about("Memory that went into the target, if any.")]
    new_content: Annotated[str | None, about("Text of the target afterwards; null for a deletion.", CONTENT)]
    reason: Annotated[str, about("Why, in the decider's words.", CONTENT)]
    decided_by: Annotated[str, about("What decided: rules, a model's name, or fifo as a last resort.", OPERATIONAL)]
    fallback: Annotated[str, about("Why the decision could not be used; empty if it could.", OPERATIONAL)]
    before: Annotated[list[MemoryToKeep], about("Memories of the space before, the new one among them.", CONTENT)]
    after: Annotated[list[MemoryToKeep], about("Memories of the space afterwards.", CONTENT)]


class AppMemorySkipped(Output, frozen=True, kw_only=True, tag="app_memory_skipped"):
    """No memory was made of a conversation that ended."""

    session_id: Annotated[SessionId, about("Conversation of which there is none.")]
    space: Space
    reason: Annotated[str, about("`nothing_said`, `not_active`, timeout, llm_error, rubbish, no_answer.", BEHAVIOUR)]


class AppMemoryAudited(Output, frozen=True, kw_only=True, tag="app_memory_audited"):
    """An admin did something to a space's memories."""

    session_id: Annotated[SessionId, about("Empty: it is no conversation's.")]
    user_id: Annotated[UserId, about("User whose space it is; empty for the app's own.")]
    space: Space
    action: Annotated[str, about("The command's name, for instance `memory_deleted`.", BEHAVIOUR)]
    memory_id: Annotated[MemoryNumber | None, about("Memory that was meant; null: all.")]
    by: Operator
    request_id: RequestName
    outcome: Annotated[str, about("What came of it; of `memories_read` how they were read.", BEHAVIOUR)]
    count: Annotated[int, about("Memories that it changed; of `memories_read` those that were shown.", BEHAVIOUR)]


SpaceOutput = (
    AppMemoryChanged
    | AppMemoriesChanged
    | AppMemoriesCompacted
    | AppMemorySkipped
    | AppMemoryAudited
    | MemoryRequested
    | CompactionRequested
)
