"""Events of a project's memory: what changes it, and what it tells.

A project belongs to an app: the same id in two apps is two projects. It is folded under its key (`project_key`).
"""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.base import NOT_ASKED, AskedOffset, Output, RequestedTurn, RequestId, Speaker, key_part
from models.events.fields import *
from models.events.project_items import *
from models.events.user import MOST_SUMMARY_CHARS

MOST_NAMED = 1_000
"""Ids that one event names."""
MOST_SENTENCES = 60
"""Of one message that a second reader is asked for."""
SummarisedKind = Annotated[Literal["chunk", "episode"], about("Kind of the item.", BEHAVIOUR)]
_Ids = Annotated[list[ItemId], Meta(min_length=1, max_length=MOST_NAMED)]


def project_key(app_id: str, project_id: str) -> str:
    """Key of everything that changes a project's memory.

    >>> project_key("shop/eu", "web/2")
    'project:shop%2Feu/web%2F2'
    """
    return f"project:{key_part(app_id)}/{key_part(project_id)}"


# --- in: commands.v1, key project:<app>/<project> ------------------------------------------------------------


class ProjectTurnAdded(Output, frozen=True, kw_only=True, tag="project_turn_added"):
    """A turn of a session of the project was folded into its session."""

    session_id: Annotated[SessionId, about("Id of the turn's session.")]
    project_id: ProjectId
    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]


class ProjectConversationEnded(Output, frozen=True, kw_only=True, tag="project_conversation_ended"):
    """A session of the project ended or timed out."""

    session_id: Annotated[SessionId, about("Id of the session that ended.")]
    project_id: ProjectId
    status: Annotated[ConversationStatus, about("`ended`, or `paused` if the session timed out.", BEHAVIOUR)]
    reason: Annotated[str, about("Reason why the session closed.", CONTENT)]
    last_turn: Annotated[TurnIndex, about("Highest turn number of the session.")]


class ReadStatement(Struct, frozen=True, kw_only=True, gc=False):
    """A statement that a second reader found in a sentence."""

    content: Annotated[str, about("Text of the sentence.", CONTENT, min_length=1, max_length=MOST_CONTENT_CHARS)]
    memory_type: Annotated[
        MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)
    ]
    confidence: Annotated[Ratio, about("Probability according to the reader, 0-1.")]


class ProjectCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the commands of people, readers and the clock to a project's memory."""

    app_id: Annotated[AppId, NAMED, about("Id of the project's app.")]
    project_id: Annotated[ProjectId, NAMED, about("Id of the project.")]
    timestamp: EventTime


class StatementsRead(ProjectCommand, frozen=True, kw_only=True, tag="statements_read", gc=False):
    """Answer to `StatementsRequested`: statements of its sentences. Ignored if the conversation was removed since."""

    session_id: Annotated[SessionId, about("Id of the session in which it was said.")]
    user_id: Annotated[UserId, about("Id of the user who said it.", max_length=256)] = ""
    turn: Annotated[TurnIndex, about("Number of the turn that says so.")]
    statements: Annotated[list[ReadStatement], about("Statements found.", CONTENT, max_length=MOST_SENTENCES)]
    read_by: Annotated[str, about("Name of the reader.", OPERATIONAL, max_length=256)] = ""
    asked_offset: AskedOffset = NOT_ASKED


class ProjectSummarised(ProjectCommand, frozen=True, kw_only=True, tag="project_summarised", gc=False):
    """Answer to `ProjectSummaryRequested`. Ignored if the chunk or episode was removed, extended or merged since."""

    session_id: Annotated[SessionId, about("Id of the item's session.")]
    kind: SummarisedKind
    item_id: Annotated[ItemId, about("Id of the chunk or episode.")]
    first_turn: FirstTurn
    last_turn: LastTurn
    summary: Annotated[str, about("Summary of what was said.", CONTENT, min_length=1, max_length=MOST_SUMMARY_CHARS)]
    key_topics: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]],
        about("Topics of the text, most prominent first.", CONTENT, max_length=64),
    ] = []
    summarised_by: Annotated[SummarisedBy, Meta(max_length=256)]
    asked_offset: AskedOffset = NOT_ASKED


class MemoriesAccessed(ProjectCommand, frozen=True, kw_only=True, tag="memories_accessed", gc=False):
    """Readers retrieved these memories and episodes. Each mention of an id is one access."""

    ids: Annotated[_Ids, about("Ids of memories and episodes, one for each access.", IDENTIFIER, names="item")]


class ProjectWorkDue(ProjectCommand, frozen=True, kw_only=True, tag="project_work_due", gc=False):
    """Written by a memory worker when a project's consolidation is due and nothing else arrives.

    The fold uses the time of the record, so that a replay sees the same clock.
    """


class ManualProjectCommand(ProjectCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the manual commands. Each has a result in `ProjectChanged.results`, and is audited."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class ProjectMemoryAdded(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_added", gc=False):
    """A memory is added by hand. A valid memory with the same content is strengthened instead."""

    memory_type: Annotated[
        MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)
    ]
    content: Remembered
    category: Category = ""
    tags: Tags = []
    subject: Subject = ""
    importance: Annotated[Ratio | None, about("Importance, 0-1; null: the default of its type.")] = None
    valid_from: Annotated[UtcTime | None, about("Start of the validity; null: the command's time.")] = None
    valid_until: ValidUntil = None


class ProjectMemoryEdited(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_edited", gc=False):
    """A memory is edited, expired, archived or restored by hand. None leaves a field unchanged."""

    memory_id: Annotated[ItemId, about("Id of the memory to edit.")]
    content: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS)] | None,
        about("New text; null: unchanged.", CONTENT),
    ] = None
    category: Annotated[Category | None, about("New category; null: unchanged.")] = None
    tags: Annotated[Tags | None, about("New tags, replacing the old; null: unchanged.")] = None
    importance: Annotated[Ratio | None, about("New importance, 0-1; null: unchanged.")] = None
    valid_from: Annotated[UtcTime | None, about("New start of the validity; null: unchanged.")] = None
    valid_until: Annotated[UtcTime | None, about("New end of the validity; null: unchanged.")] = None
    reopened: Annotated[bool, about("Whether to remove the end of validity; excludes a new end.", BEHAVIOUR)] = False
    archived: Annotated[bool | None, about("Whether it is archived; null: unchanged.", BEHAVIOUR)] = None


class ProjectMemoryDeleted(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_deleted", gc=False):
    """A memory is deleted with all relationships to it. Deleting an unknown one is a no-op, and the result says so."""

    memory_id: Annotated[ItemId, about("Id of the memory to delete.")]


class PendingFactDecided(ManualProjectCommand, frozen=True, kw_only=True, tag="pending_fact_decided", gc=False):
    """A pending fact is promoted or discarded by hand."""

    pending_id: Annotated[ItemId, about("Id of the pending fact.")]
    promoted: Annotated[bool, about("True: it becomes a memory; false: it is discarded.", BEHAVIOUR)]


class RelationshipSet(ManualProjectCommand, frozen=True, kw_only=True, tag="relationship_set", gc=False):
    """A relationship of two memories is set or deleted by hand."""

    source_id: Annotated[ItemId, about("Id of the source memory.")]
    target_id: Annotated[ItemId, about("Id of the target memory.")]
    relation: Annotated[RelationType, about("Type of the relationship, e.g. depends_on.")]
    strength: Annotated[Ratio | None, about("Strength, 0-1; null: delete the relationship.")] = 1.0


class ConversationStatusSet(ManualProjectCommand, frozen=True, kw_only=True, tag="conversation_status_set", gc=False):
    """A conversation of the project is started, paused or ended by hand. Its turns arrive as turns."""

    conversation_id: Annotated[SessionId, NAMED, about("Id of the session.")]
    status: Annotated[ConversationStatus, about("New status: active, paused or ended.", BEHAVIOUR)]
    summary: Annotated[str, about("Summary to keep with the end.", CONTENT, max_length=2_000)] = ""


class ConsolidationAsked(ManualProjectCommand, frozen=True, kw_only=True, tag="consolidation_asked", gc=False):
    """Requests a consolidation now. Consolidations also run on schedule."""


class ProjectImported(ManualProjectCommand, frozen=True, kw_only=True, tag="project_imported", gc=False):
    """Items of an exported project (`turntide memory project export`). An existing item is replaced."""

    memories: Annotated[list[ProjectMemory], about("Memories to import.", CONTENT, max_length=200)] = []
    episodes: Annotated[list[ProjectEpisode], about("Episodes to import.", CONTENT, max_length=200)] = []
    chunks: Annotated[list[ConversationChunk], about("Chunks to import.", CONTENT, max_length=200)] = []
    conversations: Annotated[list[ProjectConversation], about("Sessions to import.", CONTENT, max_length=200)] = []
    pending: Annotated[list[PendingFact], about("Pending facts to import.", CONTENT, max_length=200)] = []
    messages: Annotated[list[ImportedMessage], about("Recent messages of the sessions.", CONTENT, max_length=200)] = []


ProjectEvent = (
    ProjectTurnAdded
    | ProjectConversationEnded
    | StatementsRead
    | ProjectSummarised
    | MemoriesAccessed
    | ProjectWorkDue
    | ProjectMemoryAdded
    | ProjectMemoryEdited
    | ProjectMemoryDeleted
    | PendingFactDecided
    | RelationshipSet
    | ConversationStatusSet
    | ConsolidationAsked
    | ProjectImported
)


# --- out -----------------------------------------------------------------------------------------------------

ItemCause = Literal[
    "created",
    "summarised",
    "said_again",
    "edited",
    "superseded",
    "related",
    "accessed",
    "decayed",
    "archived",
    "restored",
    "merged",
    "promoted",
    "continued",
    "imported",
    "deleted",
    "displaced",
    "erased",
]
"""`summarised`: by a language model. `continued`: a conversation went on. `decayed`: a consolidation brought the decay
factor up to date. `restored`: back from the archived, or valid again as what had superseded it is gone. `displaced`:
there were more than may be kept."""


class ProjectItemChanged(Output, frozen=True, kw_only=True, tag="project_item_changed"):
    """A memory, episode, chunk, conversation or pending fact was added, changed or removed. Compacted by kind and slot.

    Only the field of the event's kind is set; none if the item was removed, so that its text goes too. `session_id`
    and `user_id` say where it was said first; they are empty if that was erased.
    """

    session_id: Annotated[SessionId, about("Id of the session in which it was first said; empty: by hand or erased.")]
    user_id: Annotated[UserId, about("Id of the user who first said it; empty: by hand or erased.")]
    project_id: ProjectId
    revision: Annotated[int, about("Revision of the project; rises with each change.", BEHAVIOUR, unit="number")]
    kind: Annotated[ItemKind, about("Kind of the item; the field of that name has the item.", BEHAVIOUR)]
    slot: Annotated[
        int,
        about("Slot among the items of its kind, from 0; its next item replaces this one.", IDENTIFIER, unit="number"),
    ]
    item_id: Annotated[str, about("Id of the item; of a conversation its session id.", IDENTIFIER, names="item")]
    active: Annotated[bool, about("Whether it exists; false in the last event of a removed item.", BEHAVIOUR)]
    cause: Annotated[ItemCause, about("Cause of the change.", BEHAVIOUR)]
    memory: Annotated[ProjectMemory | None, about("The memory; null for other kinds or if removed.", CONTENT)] = None
    episode: Annotated[ProjectEpisode | None, about("The episode; null for other kinds or if removed.", CONTENT)] = None
    chunk: Annotated[ConversationChunk | None, about("The chunk; null for other kinds or if removed.", CONTENT)] = None
    conversation: Annotated[
        ProjectConversation | None, about("The conversation; null for other kinds or if removed.", CONTENT)
    ] = None
    pending: Annotated[PendingFact | None, about("The fact; null for other kinds or if removed.", CONTENT)] = None


CommandOutcome = Literal["done", "unchanged", "not_found", "too_long", "too_many", "invalid"]


class DeedResult(Struct, frozen=True, kw_only=True, gc=False):
    """Result of a manual command."""

    request_id: RequestName
    outcome: Annotated[CommandOutcome, about("Result: done, unchanged, or the reason for a refusal.", BEHAVIOUR)]
    item_id: Annotated[str, about("Id of the created or changed item; empty: none.", IDENTIFIER, names="item")] = ""
    detail: Annotated[str, about("Reason for a refusal, without any text.", BEHAVIOUR)] = ""
    count: Annotated[int, about("Number of changed items.", BEHAVIOUR)] = 0


class ProjectChanged(Output, frozen=True, kw_only=True, tag="project_changed"):
    """State of a project after each event that changed it; follows its items' events. Compacted by project."""

    session_id: Annotated[SessionId, about("Always empty: the event is about no session.")]
    user_id: Annotated[UserId, about("Always empty: the event is about no user.")]
    project_id: ProjectId
    revision: Annotated[int, about("Number of events that changed the project, from 1.", BEHAVIOUR, unit="number")]
    born: Annotated[str, about("Id of this incarnation of the project; an erasure changes it.", BEHAVIOUR)]
    turn_count: Annotated[Count, about("Number of turns in all conversations of the project.")]
    conversations: Annotated[Count, about("Number of kept conversations.")]
    memories: Annotated[Count, about("Number of kept memories, including archived ones.")]
    archived: Annotated[Count, about("Number of archived memories.")]
    episodes: Annotated[Count, about("Number of kept episodes.")]
    pending: Annotated[Count, about("Number of pending facts.")]
    chunks: Annotated[Count, about("Number of kept chunks in all conversations.")]
    created: Annotated[Count, about("Number of memories ever created.")]
    consolidated_at: Annotated[UtcTime | None, about("End of the last consolidation; null before the first.")]
    consolidated: Annotated[ConsolidationFigures | None, about("Result of the last consolidation.", BEHAVIOUR)] = None
    seen: Annotated[
        dict[str, int],
        about("Offset of the last folded turn of the project, by partition of the turns topic.", IDENTIFIER),
    ]
    results: Annotated[list[DeedResult], about("Results of the latest manual commands, newest last.", IDENTIFIER)]


class ProjectConsolidated(Output, frozen=True, kw_only=True, tag="project_consolidated"):
    """A consolidation ended, with its results."""

    session_id: Annotated[SessionId, about("Always empty: the event is about no session.")]
    user_id: Annotated[UserId, about("Always empty: the event is about no user.")]
    project_id: ProjectId
    run: Annotated[Count, about("Number of the project's consolidation, starting at 1.", OPERATIONAL, unit="number")]
    cause: Annotated[Literal["scheduled", "asked"], about("Whether it was scheduled or requested.", BEHAVIOUR)]
    started_at: Annotated[UtcTime, about("Start time, by the clock of the log.")]
    memories_looked_at: Annotated[Count, about("Number of examined memories.")]
    decay_updated: Annotated[Count, about("Number of memories whose stored decay factor changed.")]
    memories_archived: Annotated[Count, about("Archived memories: old, importance × decay below the limit.")]
    archived_ids: Annotated[ItemIds, about("Ids of archived memories, up to the policy's limit.")]
    episodes_merged: Annotated[Count, about("Number of episodes merged into another.")]
    merged: Annotated[
        list[list[str]],
        about("For each merge, the remaining episode, then those merged into it.", IDENTIFIER, names="item"),
    ]
    pending_dropped: Annotated[Count, about("Number of expired pending facts.")]
    tokens_reclaimed: Annotated[Count, about("Tokens of archived items, and tokens saved by merging.", unit="tokens")]


class ProjectAudited(Output, frozen=True, kw_only=True, tag="project_audited"):
    """A manual command to a project's memory was carried out or refused."""

    session_id: Annotated[SessionId, about("Always empty: the event is about no session.")]
    user_id: Annotated[UserId, about("Always empty: `by` names the caller.")]
    project_id: ProjectId
    action: Annotated[str, about("Name of the command.", BEHAVIOUR)]
    item_id: Annotated[str, about("Id of the item or conversation, if any.", IDENTIFIER, names="item")]
    by: Operator
    request_id: RequestName
    outcome: Annotated[str, about("Result: done, unchanged, or the reason for a refusal.", BEHAVIOUR)]
    count: Annotated[int, about("Number of changed items.", BEHAVIOUR)]


class StatementsRequested(Output, frozen=True, kw_only=True, tag="statements_requested"):
    """Requests from a second reader the statements of sentences in which the rules find nothing.

    Answered by `StatementsRead` on `commands.v1`; nothing waits for it.
    """

    session_id: Annotated[SessionId, about("Id of the session in which it was said.")]
    project_id: ProjectId
    turn: TurnIndex
    sentences: Annotated[
        list[Annotated[str, Meta(min_length=1)]], about("Sentences to read.", CONTENT, max_length=MOST_SENTENCES)
    ]


class ProjectSummaryRequested(Output, frozen=True, kw_only=True, tag="project_summary_requested"):
    """Requests a better summary of a new or grown chunk or episode. Nothing waits for it; see `ProjectSummarised`."""

    session_id: Annotated[SessionId, about("Id of the item's session.")]
    project_id: ProjectId
    kind: SummarisedKind
    item_id: Annotated[str, about("Id of the chunk or episode.", IDENTIFIER, names="item")]
    first_turn: FirstTurn
    last_turn: LastTurn
    summary: Annotated[str, about("Extractive summary, which says what an episode is about; else empty.", CONTENT)]
    turns: Annotated[
        list[RequestedTurn], about("Its available messages, of an episode also those before it; truncated.", CONTENT)
    ]


ProjectOutput = (
    ProjectItemChanged
    | ProjectChanged
    | ProjectConsolidated
    | ProjectAudited
    | StatementsRequested
    | ProjectSummaryRequested
)
ProjectForwarded = ProjectTurnAdded | ProjectConversationEnded
"""What the sessions role sends."""
