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
MemoryNumber = Annotated[int, about("Number of the memory in its space, starting at 1.", IDENTIFIER, names="memory")]
MemoryId = Annotated[MemoryNumber, Meta(ge=1, le=2**53)]
"""In a command; no memory gets the number of another."""
MadeBy = Annotated[str, about("Author of the memory: rules, the model's name, or admin.", OPERATIONAL)]
Failure = Annotated[str, about("Reason for the failure: timeout, llm_error or rubbish; empty on success.", OPERATIONAL)]
TokensUsed = Annotated[int, about("Input and output tokens spent.", BEHAVIOUR, unit="tokens", ge=0, le=2**31)]
ElapsedMs = Annotated[int, about("Duration of the work in milliseconds.", OPERATIONAL, unit="ms", ge=0, le=2**31)]
Energy = Annotated[float, about(privacy=OPERATIONAL, unit="units of energy")]
Space = Annotated[Literal["app", "user"], about("Kind of space: the app's own, or one user's in the app.", BEHAVIOUR)]


class NotableKind(StrEnum):
    """Kind of a notable sentence."""

    DECISION = "decision"
    PREFERENCE = "preference"
    FACT = "fact"
    OUTCOME = "outcome"


class NotableSentence(Struct, frozen=True, gc=False):
    """A sentence of a conversation that may be worth remembering."""

    kind: Annotated[NotableKind, about("Decision, preference, fact or outcome.", BEHAVIOUR)]
    role: Speaker
    turn: TurnIndex
    text: Annotated[str, about("Text of the sentence; truncated if long.", CONTENT)]
    weight: Annotated[Share, about("Weight of the sentence, 0-1.")]


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
    """A session ended or timed out. It may become a memory."""

    session_id: Annotated[SessionId, about("Id of the session that ended.")]
    space: Space
    reason: Annotated[str, about("Reason why the session ended.", CONTENT)]
    first_turn: FirstTurn
    last_turn: LastTurn
    turn_count: Annotated[int, about("Number of folded turns, without duplicates.", BEHAVIOUR)]
    summary: Summary
    key_topics: KeyTopics
    notables: Notables
    turns: Annotated[
        list[RequestedTurn],
        about("All turns, or the last that fit; long texts truncated. Empty without a model.", CONTENT),
    ]
    started_at: StartTime
    ended_at: EndTime
    earlier: Annotated[list[str], about("Summaries of the turns before these, in order.", CONTENT)] = field(
        default_factory=list
    )


class SpaceCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the commands of slower stages, admins and the clock to a space of memories."""

    app_id: Annotated[AppId, NAMED, about("Id of the app that owns the space.")]
    timestamp: EventTime
    user_id: Annotated[UserId, about("Id of the space's user; empty for the app's own space.", max_length=256)] = ""


class MemoryProposed(SpaceCommand, frozen=True, kw_only=True, tag="memory_proposed", gc=False):
    """Answer to `MemoryRequested`; without content the memory is skipped."""

    request: Annotated[int, about("Number of the request in its space.", OPERATIONAL, unit="number")]
    content: Annotated[str, about("Text of the memory; empty: none.", CONTENT)] = ""
    importance: Annotated[Ratio | None, about("Importance, 0-1; null: the fold computes it.")] = None
    tags: Annotated[list[str], about("Tags of the memory.", CONTENT, max_length=64)] = []
    made_by: MadeBy = ""
    failure: Failure = ""
    tokens: TokensUsed = 0
    elapsed_ms: ElapsedMs = 0
    asked_offset: AskedOffset = NOT_ASKED


class CompactionDecided(SpaceCommand, frozen=True, kw_only=True, tag="compaction_decided", gc=False):
    """Answer to `CompactionRequested`: the decision, not validated. An invalid one falls back to FIFO."""

    request: Annotated[int, about("Number of the request in its space.", OPERATIONAL, unit="number")]
    action: Annotated[str, about("Action: delete or edit. Another value falls back to FIFO.", BEHAVIOUR)] = ""
    target_memory_id: Annotated[MemoryNumber, about("Id of the memory to delete or edit.")] = 0
    new_content: Annotated[str | None, about("New text of the target; null for a deletion.", CONTENT)] = None
    reason: Annotated[str, about("Reason, in the words of the decider.", CONTENT)] = ""
    decided_by: Annotated[str, about("Decider: rules, or the model's name.", OPERATIONAL)] = ""
    failure: Failure = ""
    tokens: TokensUsed = 0
    elapsed_ms: ElapsedMs = 0
    asked_offset: AskedOffset = NOT_ASKED


class WorkDue(SpaceCommand, frozen=True, kw_only=True, tag="work_due", gc=False):
    """Written by a memory worker when a space has deferred work or an overdue request and nothing else arrives.

    The fold uses the time of the record, so that a replay sees the same clock.
    """


class AdminCommand(SpaceCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the commands of admins. Each emits an `AppMemoryAudited`, even if it changes nothing."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class MemoryEdited(AdminCommand, frozen=True, kw_only=True, tag="memory_edited", gc=False):
    """An admin edits, pins, unpins or shares a memory. None leaves a field unchanged."""

    memory_id: Annotated[MemoryId, about("Id of the memory to edit.")]
    content: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_MEMORY_CHARS)] | None,
        about("New text; null: unchanged.", CONTENT),
    ] = None
    importance: Annotated[Ratio | None, about("New importance, 0-1; null: unchanged.")] = None
    tags: Annotated[
        Annotated[list[str], Meta(max_length=64)] | None,
        about("New tags, replacing the old; null: unchanged.", CONTENT),
    ] = None
    pinned: Annotated[bool | None, about("Whether compaction never removes it; null: unchanged.", BEHAVIOUR)] = None
    shared_with: Annotated[
        Annotated[list[Identifier], Meta(max_length=64)] | None,
        about("Ids of the other apps that may read it; null: unchanged.", IDENTIFIER, names="app"),
    ] = None


class MemoryDeleted(AdminCommand, frozen=True, kw_only=True, tag="memory_deleted", gc=False):
    """An admin deletes a memory. Deleting an unknown memory is a no-op, and the result says so."""

    memory_id: Annotated[MemoryId, about("Id of the memory to delete.")]


class MemoriesPurged(AdminCommand, frozen=True, kw_only=True, tag="memories_purged", gc=False):
    """An admin deletes all memories of the space, and the conversations that wait to become memories."""


class AppUninstalled(AdminCommand, frozen=True, kw_only=True, tag="app_uninstalled", gc=False):
    """The app was uninstalled. Its memories are kept by default."""

    purge_memories: Annotated[bool, about("Whether its memories are deleted too.", BEHAVIOUR)] = False


class SpaceModeSet(AdminCommand, frozen=True, kw_only=True, tag="space_mode_set", gc=False):
    """The user's memory mode in the app is set. Unless active, conversations that end later become no memory."""

    mode: UserMode


Injects = Annotated[
    bool | None, about("Whether all prompts of the app begin with its memories; null: the policy's value.", BEHAVIOUR)
]


class AppInjectionSet(AdminCommand, frozen=True, kw_only=True, tag="app_injection_set", gc=False):
    """Whether all prompts of the app begin with its memories: yes, only on request, or the policy's value."""

    inject: Injects = None


class SearchSaved(AdminCommand, frozen=True, kw_only=True, tag="search_saved"):
    """A search of the app's alerts is saved for all who may read them, replacing one of the same title, or deleted."""

    search: Annotated[SavedSearch, about("Saved search.", BEHAVIOUR)]
    kept: Annotated[bool, about("True: save the search; false: delete it.", BEHAVIOUR)] = True


class MemoriesRead(AdminCommand, frozen=True, kw_only=True, tag="memories_read", gc=False):
    """An admin read memories. Changes nothing, but is audited."""

    how: Annotated[Literal["list", "one", "search", "export"], about("Kind of read.", BEHAVIOUR)]
    count: Annotated[int, about("Number of returned memories.", BEHAVIOUR, ge=0, le=2**31)]
    memory_id: Annotated[MemoryId | None, about("Id of the memory; null: several.")] = None


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
    """A memory as input to a compaction decision, and as reported before and after the compaction."""

    memory_id: MemoryNumber
    content: Annotated[str, about("Text of the memory.", CONTENT)]
    importance: Importance
    pinned: Annotated[bool, about("Whether compaction never removes it.", BEHAVIOUR)]
    created_at: Annotated[UtcTime, about("Creation time: the end of the conversation.")]
    updated_at: Annotated[UtcTime, about("Event time of its last change.")]


class MemoryRequested(Output, frozen=True, kw_only=True, tag="memory_requested"):
    """Requests a memory of a conversation from a slower stage. Answered by `MemoryProposed`."""

    session_id: Annotated[SessionId, about("Id of the session to make it from.")]
    space: Space
    request: Annotated[int, about("Number of the request in its space; the answer has it.", OPERATIONAL, unit="number")]
    summary: Summary
    notables: Notables
    turns: Annotated[list[RequestedTurn], about("All turns, or the last that fit; long texts truncated.", CONTENT)]
    earlier: Annotated[list[str], about("Summaries of the turns before these, in order.", CONTENT)] = field(
        default_factory=list
    )


class CompactionRequested(Output, frozen=True, kw_only=True, tag="compaction_requested"):
    """Asks a slower stage which memory to remove from a full space. Answered by `CompactionDecided`."""

    session_id: Annotated[SessionId, about("Id of the new memory's session.")]
    space: Space
    request: Annotated[int, about("Number of the request in its space; the answer has it.", OPERATIONAL, unit="number")]
    memories: Annotated[list[MemoryToKeep], about("All memories but the new one, oldest first.", CONTENT)]
    new_memory: Annotated[MemoryToKeep, about("New memory, which exceeds the limit.", CONTENT)]


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
    """A memory was created, changed or removed. Compacted by space and slot.

    `session_id` and `user_id` are those of the conversation that it was made from.
    """

    session_id: Annotated[SessionId, about("Id of the session that it was made from; empty if erased.")]
    user_id: Annotated[UserId, about("Id of the user of that session.")]
    space: Space
    slot: Annotated[int, about("Slot in its space, from 0; its next memory replaces it.", IDENTIFIER, unit="number")]
    memory_id: MemoryNumber
    active: Annotated[bool, about("Whether it exists; false in the last event of a removed memory.", BEHAVIOUR)]
    cause: Annotated[MemoryCause, about("Cause of the change.", BEHAVIOUR)]
    content: Annotated[str, about("Text of the memory; empty if removed.", CONTENT)]
    importance: Importance
    tags: Annotated[list[str], about("Tags of the memory.", CONTENT)]
    related_conversations: Annotated[SessionIds, about("Ids of the sessions whose memories were merged into this one.")]
    created_at: Annotated[UtcTime, about("Creation time: the end of the conversation.")]
    updated_at: Annotated[UtcTime, about("Event time of its last change.")]
    pinned: Annotated[bool, about("Whether compaction never removes it.", BEHAVIOUR)]
    shared_with: Annotated[list[str], about("Ids of the other apps that may read it.", IDENTIFIER, names="app")]
    conflicts_with: Annotated[list[int], about("Ids of memories that conflict with it.", IDENTIFIER, names="memory")]
    made_by: MadeBy


class AppMemoriesChanged(Output, frozen=True, kw_only=True, tag="app_memories_changed"):
    """State of a space after each event that changed it; follows its memories' events. Compacted by space."""

    session_id: Annotated[SessionId, about("Always empty: the event is about no session.")]
    user_id: Annotated[UserId, about("Id of the space's user; empty for the app's own space.")]
    space: Space
    memories: Annotated[int, about("Number of memories in the space.", BEHAVIOUR)]
    created: Annotated[int, about("Number of memories ever created.", BEHAVIOUR)]
    compactions: Annotated[int, about("Number of compactions ever made.", BEHAVIOUR)]
    skipped: Annotated[int, about("Number of conversations that ever ended without a memory.", BEHAVIOUR)]
    edited: Annotated[int, about("Number of memories ever changed by admins.", BEHAVIOUR)]
    waiting: Annotated[int, about("Number of conversations that wait for energy or an answer.", BEHAVIOUR)]
    energy_units: Annotated[Energy, about("Energy left for memory work.", BEHAVIOUR)]
    energy_capacity_units: Annotated[Energy, about("Energy of a fully refilled space.")]
    spent_units: Annotated[Energy, about("Energy ever spent.")]
    uninstalled: Annotated[bool, about("Whether the app is uninstalled; a later conversation resets it.", BEHAVIOUR)]
    results: Annotated[list[CommandResult], about("Results of the latest commands of admins.", IDENTIFIER)]
    inject: Injects = None
    searches: Annotated[list[SavedSearch], about("Saved searches of the app's alerts, by title.", BEHAVIOUR)] = field(
        default_factory=list
    )


class AppMemoriesCompacted(Output, frozen=True, kw_only=True, tag="app_memories_compacted"):
    """A memory of a full space was deleted or merged into another."""

    session_id: Annotated[SessionId, about("Id of the new memory's session.")]
    space: Space
    action: Annotated[Literal["delete", "edit"], about("Whether the target was deleted or edited.", BEHAVIOUR)]
    target_memory_id: Annotated[MemoryNumber, about("Id of the memory to delete or edit.")]
    merged_memory_id: Annotated[MemoryNumber | None, about("Id of the memory merged into the target, if any.")]
    new_content: Annotated[str | None, about("New text of the target; null for a deletion.", CONTENT)]
    reason: Annotated[str, about("Reason, in the words of the decider.", CONTENT)]
    decided_by: Annotated[str, about("Decider: rules, the model's name, or fifo as a last resort.", OPERATIONAL)]
    fallback: Annotated[str, about("Reason why the decision was unusable; empty if it was used.", OPERATIONAL)]
    before: Annotated[list[MemoryToKeep], about("Memories of the space before, including the new one.", CONTENT)]
    after: Annotated[list[MemoryToKeep], about("Memories of the space after it.", CONTENT)]


class AppMemorySkipped(Output, frozen=True, kw_only=True, tag="app_memory_skipped"):
    """A conversation ended and became no memory."""

    session_id: Annotated[SessionId, about("Id of the session without a memory.")]
    space: Space
    reason: Annotated[str, about("Cause: nothing_said, not_active, timeout, llm_error, rubbish, no_answer.", BEHAVIOUR)]


class AppMemoryAudited(Output, frozen=True, kw_only=True, tag="app_memory_audited"):
    """An admin read or changed memories of a space."""

    session_id: Annotated[SessionId, about("Always empty: the event is about no session.")]
    user_id: Annotated[UserId, about("Id of the space's user; empty for the app's own space.")]
    space: Space
    action: Annotated[str, about("Name of the command, e.g. `memory_deleted`.", BEHAVIOUR)]
    memory_id: Annotated[MemoryNumber | None, about("Id of the memory; null: all.")]
    by: Operator
    request_id: RequestName
    outcome: Annotated[str, about("Result; of `memories_read` the kind of read.", BEHAVIOUR)]
    count: Annotated[int, about("Number of changed memories; of `memories_read` the returned ones.", BEHAVIOUR)]


SpaceOutput = (
    AppMemoryChanged
    | AppMemoriesChanged
    | AppMemoriesCompacted
    | AppMemorySkipped
    | AppMemoryAudited
    | MemoryRequested
    | CompactionRequested
)
