"""Events of an app's memories (seed 003): conversations that ended, what was made of them, and what admins do.

Memories live in *spaces* of at most ten: one per app, and if the policy wants it one per user of an app. A space is
folded under its key (`space_key`), as a user is under hers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.base import Identifier, Output, Ratio, Role, UtcTime, key_part
from models.events.user import RequestedTurn

MOST_MEMORY_CHARS = 4_000
"""Of a command; the policy keeps fewer."""
MemoryId = Annotated[int, Meta(ge=1, le=2**53)]
"""Counts the memories of a space, from 1; no memory gets the number of another."""
RequestId = Annotated[str, Meta(max_length=64)]
"""Chosen by whoever sends a command; the answer to it is found by it."""
Space = Literal["app", "user"]


class NotableKind(StrEnum):
    """What makes a sentence worth remembering (seed 003, Memory Creation Process: what to identify)."""

    DECISION = "decision"
    PREFERENCE = "preference"
    FACT = "fact"
    OUTCOME = "outcome"


class NotableSentence(Struct, frozen=True, gc=False):
    """A sentence of a conversation that may be worth remembering."""

    kind: NotableKind
    role: Role
    turn: int
    text: str
    weight: float
    """0-1, the higher the better."""


def space_key(app_id: str, user_id: str = "") -> str:
    """Key of everything that changes a space of memories: an app's, or with a user that user's in the app.

    >>> space_key("shop/eu"), space_key("shop/eu", "anna/1")
    ('app:shop%2Feu', 'app:shop%2Feu/anna%2F1')
    """
    app = key_part(app_id)
    return f"app:{app}/{key_part(user_id)}" if user_id else f"app:{app}"


# --- in: commands.v1, key app:<app> or app:<app>/<user> ------------------------------------------------------


class ConversationEnded(Output, frozen=True, kw_only=True, tag="conversation_ended"):
    """A session ended or timed out: a memory may be made of it (seed 003, `end_conversation`)."""

    space: Space
    """Whose memories it goes to: the app's, or those of its user in the app."""
    reason: str
    first_turn: int
    last_turn: int
    turn_count: int
    summary: str
    key_topics: list[str]
    notables: list[NotableSentence]
    """In order of turn."""
    turns: list[RequestedTurn]
    """The last turns, for a language model; empty where none is asked."""
    started_at: UtcTime
    ended_at: UtcTime


class SpaceCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what slower stages, admins and the clock send to a space of memories."""

    app_id: Identifier
    timestamp: UtcTime
    user_id: Annotated[str, Meta(max_length=256)] = ""
    """Whose space in the app; empty for the app's own."""


class MemoryProposed(SpaceCommand, frozen=True, kw_only=True, tag="memory_proposed", gc=False):
    """Answer to `MemoryRequested`; without content the memory is skipped (seed 003, Error Handling)."""

    request: int
    """`MemoryRequested.request`."""
    content: str = ""
    importance: Ratio | None = None
    """None: the fold scores it."""
    tags: Annotated[list[str], Meta(max_length=64)] = []
    made_by: str = ""
    failure: str = ""
    """Why there is no content: `timeout`, `llm_error`, `rubbish`."""
    tokens: Annotated[int, Meta(ge=0, le=2**31)] = 0
    elapsed_ms: Annotated[int, Meta(ge=0, le=2**31)] = 0
    """What making it took, for the energy budget."""


class CompactionDecided(SpaceCommand, frozen=True, kw_only=True, tag="compaction_decided", gc=False):
    """Answer to `CompactionRequested`: the seed's decision, unchecked. What is invalid falls back to FIFO."""

    request: int
    action: str = ""
    target_memory_id: int = 0
    new_content: str | None = None
    reason: str = ""
    decided_by: str = ""
    failure: str = ""
    """Why there is no decision: `timeout`, `llm_error`, `rubbish`."""
    tokens: Annotated[int, Meta(ge=0, le=2**31)] = 0
    elapsed_ms: Annotated[int, Meta(ge=0, le=2**31)] = 0


class WorkDue(SpaceCommand, frozen=True, kw_only=True, tag="work_due", gc=False):
    """Written by a memory worker when a space has deferred work or an overdue request and nothing else arrives.

    The time that counts is that of its record, so that a replay sees the same clock.
    """


class AdminCommand(SpaceCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what an admin does. Each makes an `AppMemoryAudited`, also if it changes nothing."""

    request_id: RequestId = ""
    by: Annotated[str, Meta(max_length=256)] = ""
    """Who: the name of the token's holder, never the token."""


class MemoryEdited(AdminCommand, frozen=True, kw_only=True, tag="memory_edited", gc=False):
    """A memory is put right, pinned or let go by hand; None leaves a field as it is."""

    memory_id: MemoryId
    content: Annotated[str, Meta(min_length=1, max_length=MOST_MEMORY_CHARS)] | None = None
    importance: Ratio | None = None
    tags: Annotated[list[str], Meta(max_length=64)] | None = None
    pinned: bool | None = None
    """A pinned memory is never compacted away."""
    shared_with: Annotated[list[Identifier], Meta(max_length=64)] | None = None
    """Apps that may read it besides: cross-app memories, by explicit sharing only."""


class MemoryDeleted(AdminCommand, frozen=True, kw_only=True, tag="memory_deleted", gc=False):
    """A memory goes. One that is gone already: said so, no error."""

    memory_id: MemoryId


class MemoriesPurged(AdminCommand, frozen=True, kw_only=True, tag="memories_purged", gc=False):
    """All memories of the space go, and conversations that wait to become one."""


class AppUninstalled(AdminCommand, frozen=True, kw_only=True, tag="app_uninstalled", gc=False):
    """The app is gone. Its memories stay unless asked otherwise (seed 003, `uninstallApp`)."""

    purge_memories: bool = False


class MemoriesRead(AdminCommand, frozen=True, kw_only=True, tag="memories_read", gc=False):
    """An admin looked at memories. Changes nothing; it is audited."""

    how: Literal["list", "one", "search", "export"]
    count: Annotated[int, Meta(ge=0, le=2**31)]
    """Memories that were shown."""
    memory_id: MemoryId | None = None


SpaceEvent = (
    ConversationEnded
    | MemoryProposed
    | CompactionDecided
    | WorkDue
    | MemoryEdited
    | MemoryDeleted
    | MemoriesPurged
    | AppUninstalled
    | MemoriesRead
)


# --- out ---------------------------------------------------------------------------------------------------


class MemoryToKeep(Struct, frozen=True, kw_only=True, gc=False):
    """A memory as those see it who decide on a compaction, and as it is told of before and after."""

    memory_id: int
    content: str
    importance: float
    pinned: bool
    created_at: UtcTime
    updated_at: UtcTime


class MemoryRequested(Output, frozen=True, kw_only=True, tag="memory_requested"):
    """A memory of a conversation is wanted of a slower stage. Answered by `MemoryProposed`."""

    space: Space
    request: int
    """Counts the space's requests."""
    summary: str
    notables: list[NotableSentence]
    turns: list[RequestedTurn]


class CompactionRequested(Output, frozen=True, kw_only=True, tag="compaction_requested"):
    """There is one memory too many; a slower stage decides which goes. Answered by `CompactionDecided`."""

    space: Space
    request: int
    memories: list[MemoryToKeep]
    """All but the new one, the oldest first."""
    new_memory: MemoryToKeep


MemoryCause = Literal["created", "remade", "edited", "merged", "conflict", "compacted", "deleted", "purged", "erased"]
"""`remade`: the conversation went on and ended again. `edited`: by an admin, pinning and sharing too."""


class AppMemoryChanged(Output, frozen=True, kw_only=True, tag="app_memory_changed"):
    """A memory came, changed or went (seed 003, `AppMemory`). Compacted by space and slot.

    `session_id` and `user_id` are those of the conversation it was made of.
    """

    space: Space
    slot: int
    """Of the space, from 0: what comes next into it replaces what was there, so the topic stays small."""
    memory_id: int
    active: bool
    """False: it is gone, and with it its text."""
    cause: MemoryCause
    content: str
    importance: float
    tags: list[str]
    related_conversations: list[str]
    created_at: UtcTime
    updated_at: UtcTime
    pinned: bool
    shared_with: list[str]
    conflicts_with: list[int]
    """Memories of the space that say something else of the same."""
    made_by: str


class CommandResult(Struct, frozen=True, kw_only=True, gc=False):
    """What an admin's command came to."""

    request_id: str
    outcome: Literal["done", "unchanged", "not_found", "too_long", "too_many_pinned"]
    count: int
    """Memories that it changed."""


class AppMemoriesChanged(Output, frozen=True, kw_only=True, tag="app_memories_changed"):
    """How far a space is, after each event that changed it, behind its memories. Compacted by space."""

    space: Space
    memories: int
    created: int
    """Of all time, like the following three."""
    compactions: int
    skipped: int
    edited: int
    waiting: int
    """Conversations that wait to become a memory: for energy, or for an answer."""
    energy_units: float
    energy_capacity_units: float
    spent_units: float
    """Of all time."""
    uninstalled: bool
    results: list[CommandResult]
    """Of the last commands of admins, the newest last."""


class AppMemoriesCompacted(Output, frozen=True, kw_only=True, tag="app_memories_compacted"):
    """One of eleven memories went or was merged into another (seed 003, Memory Compaction Process)."""

    space: Space
    action: Literal["delete", "edit"]
    target_memory_id: int
    merged_memory_id: int | None
    """With `edit`: the memory that went into the target."""
    new_content: str | None
    reason: str
    decided_by: str
    """Name of the decider; `fifo` where its decision could not be used."""
    fallback: str
    """Why it could not; empty if it could."""
    before: list[MemoryToKeep]
    after: list[MemoryToKeep]


class AppMemorySkipped(Output, frozen=True, kw_only=True, tag="app_memory_skipped"):
    """No memory was made of a conversation that ended."""

    space: Space
    reason: str
    """`nothing_said`, or why the slower stage gave none: `timeout`, `llm_error`, `rubbish`, `no_answer`."""


class AppMemoryAudited(Output, frozen=True, kw_only=True, tag="app_memory_audited"):
    """An admin did something to a space's memories."""

    space: Space
    action: str
    """The command's name, for instance `memory_deleted`."""
    memory_id: int | None
    by: str
    request_id: str
    outcome: str
    """What came of it; of `memories_read` how they were read."""
    count: int


SpaceOutput = (
    AppMemoryChanged
    | AppMemoriesChanged
    | AppMemoriesCompacted
    | AppMemorySkipped
    | AppMemoryAudited
    | MemoryRequested
    | CompactionRequested
)
