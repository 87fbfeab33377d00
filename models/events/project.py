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
SummarisedKind = Annotated[Literal["chunk", "episode"], about("Which of the two it is.", BEHAVIOUR)]
_Ids = Annotated[list[ItemId], Meta(min_length=1, max_length=MOST_NAMED)]


def project_key(app_id: str, project_id: str) -> str:
    """Key of everything that changes a project's memory.

    >>> project_key("shop/eu", "web/2")
    'project:shop%2Feu/web%2F2'
    """
    return f"project:{key_part(app_id)}/{key_part(project_id)}"


# --- in: commands.v1, key project:<app>/<project> ------------------------------------------------------------


class ProjectTurnAdded(Output, frozen=True, kw_only=True, tag="project_turn_added"):
    """A turn of a session of the project was counted."""

    session_id: Annotated[SessionId, about("Conversation of the turn.")]
    project_id: ProjectId
    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]


class ProjectConversationEnded(Output, frozen=True, kw_only=True, tag="project_conversation_ended"):
    """A session of the project ended, or fell silent."""

    session_id: Annotated[SessionId, about("Conversation that ended.")]
    project_id: ProjectId
    status: Annotated[ConversationStatus, about("`ended`, or `paused` if the session fell silent.", BEHAVIOUR)]
    reason: Annotated[str, about("Why the session closed.", CONTENT)]
    last_turn: Annotated[TurnIndex, about("Highest turn number of the session.")]


class ReadStatement(Struct, frozen=True, kw_only=True, gc=False):
    """What a second reader takes a sentence for."""

    content: Annotated[str, about("The sentence.", CONTENT, min_length=1, max_length=MOST_CONTENT_CHARS)]
    memory_type: Annotated[
        MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)
    ]
    confidence: Annotated[Ratio, about("How probable the reader takes it to be, 0-1.")]


class ProjectCommand(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what people, readers and the clock send to a project's memory."""

    app_id: Annotated[AppId, NAMED, about("App of the project.")]
    project_id: Annotated[ProjectId, NAMED, about("Project whose memory it is.")]
    timestamp: EventTime


class StatementsRead(ProjectCommand, frozen=True, kw_only=True, tag="statements_read", gc=False):
    """Answer to `StatementsRequested`: what its sentences state. Of a conversation that is gone it changes nothing."""

    session_id: Annotated[SessionId, about("Conversation in which it was said.")]
    user_id: Annotated[UserId, about("Who said it.", max_length=256)] = ""
    turn: Annotated[TurnIndex, about("Turn that says so.")]
    statements: Annotated[list[ReadStatement], about("What was found.", CONTENT, max_length=MOST_SENTENCES)]
    read_by: Annotated[str, about("The reader's name.", OPERATIONAL, max_length=256)] = ""
    asked_offset: AskedOffset = NOT_ASKED


class ProjectSummarised(ProjectCommand, frozen=True, kw_only=True, tag="project_summarised", gc=False):
    """Answer to `ProjectSummaryRequested`. Of a chunk or episode that went, grew or merged since it changes nothing."""

    session_id: Annotated[SessionId, about("Conversation that it is of.")]
    kind: SummarisedKind
    item_id: Annotated[ItemId, about("The chunk or episode.")]
    first_turn: FirstTurn
    last_turn: LastTurn
    summary: Annotated[str, about("What was said, shorter.", CONTENT, min_length=1, max_length=MOST_SUMMARY_CHARS)]
    key_topics: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]],
        about("Topics of the text, the most prominent first.", CONTENT, max_length=64),
    ] = []
    summarised_by: Annotated[SummarisedBy, Meta(max_length=256)]
    asked_offset: AskedOffset = NOT_ASKED


class MemoriesAccessed(ProjectCommand, frozen=True, kw_only=True, tag="memories_accessed", gc=False):
    """Readers retrieved these: memories and episodes, as often as they are named."""

    ids: Annotated[_Ids, about("Memories and episodes, as often as they were retrieved.", IDENTIFIER, names="item")]


class ProjectWorkDue(ProjectCommand, frozen=True, kw_only=True, tag="project_work_due", gc=False):
    """Written by a memory worker when a project's consolidation is due and nothing else arrives.

    The time that counts is that of its record, so that a replay sees the same clock.
    """


class ManualProjectCommand(ProjectCommand, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of what somebody does by hand. Each is answered in `ProjectChanged.results` and audited."""

    request_id: RequestId = ""
    by: Annotated[Operator, Meta(max_length=256)] = ""


class ProjectMemoryAdded(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_added", gc=False):
    """Somebody knows something. What is known already is strengthened."""

    memory_type: Annotated[
        MemoryType, about("Fact, decision, preference, entity, procedure, constraint or goal.", BEHAVIOUR)
    ]
    content: Remembered
    category: Category = ""
    tags: Tags = []
    subject: Subject = ""
    importance: Annotated[Ratio | None, about("How much it matters, 0-1; null: the default of its type.")] = None
    valid_from: Annotated[UtcTime | None, about("From when it holds in the world; null: the command's time.")] = None
    valid_until: ValidUntil = None


class ProjectMemoryEdited(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_edited", gc=False):
    """A memory is put right, expired, archived or restored; None leaves a field as it is."""

    memory_id: Annotated[ItemId, about("Memory that is put right, expired, archived or restored.")]
    content: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_CONTENT_CHARS)] | None,
        about("The new text; null: as it was.", CONTENT),
    ] = None
    category: Annotated[Category | None, about("The new category; null: as it was.")] = None
    tags: Annotated[Tags | None, about("In place of the tags it had; null: as they were.")] = None
    importance: Annotated[Ratio | None, about("The new importance, 0-1; null: as it was.")] = None
    valid_from: Annotated[UtcTime | None, about("Time of the world from which it holds; null: as it was.")] = None
    valid_until: Annotated[UtcTime | None, about("From when it no longer holds in the world; null: as it was.")] = None
    reopened: Annotated[bool, about("Whether its end is taken back; not together with an end.", BEHAVIOUR)] = False
    archived: Annotated[bool | None, about("Whether it is put away; null: as it was.", BEHAVIOUR)] = None


class ProjectMemoryDeleted(ManualProjectCommand, frozen=True, kw_only=True, tag="project_memory_deleted", gc=False):
    """A memory goes, with all relationships to it. One that is gone already: said so, no error."""

    memory_id: Annotated[ItemId, about("Memory that goes, with all edges to it.")]


class PendingFactDecided(ManualProjectCommand, frozen=True, kw_only=True, tag="pending_fact_decided", gc=False):
    """Somebody promotes a pending fact, or discards it."""

    pending_id: Annotated[ItemId, about("Pending fact that is decided.")]
    promoted: Annotated[bool, about("Whether it becomes a memory; false: it is discarded.", BEHAVIOUR)]


class RelationshipSet(ManualProjectCommand, frozen=True, kw_only=True, tag="relationship_set", gc=False):
    """Somebody relates two memories, or takes it back."""

    source_id: Annotated[ItemId, about("Memory that the edge goes out from.")]
    target_id: Annotated[ItemId, about("Memory that it leads to.")]
    relation: Annotated[RelationType, about("How the one stands to the other, for instance depends_on.")]
    strength: Annotated[Ratio | None, about("How strong, 0-1; null: the edge goes.")] = 1.0


class ConversationStatusSet(ManualProjectCommand, frozen=True, kw_only=True, tag="conversation_status_set", gc=False):
    """Somebody starts, pauses or ends a conversation of the project; its turns still come as turns."""

    conversation_id: Annotated[SessionId, NAMED, about("Conversation that is started, paused or ended.")]
    status: Annotated[ConversationStatus, about("Active, paused or ended.", BEHAVIOUR)]
    summary: Annotated[str, about("What its end is told with.", CONTENT, max_length=2_000)] = ""


class ConsolidationAsked(ManualProjectCommand, frozen=True, kw_only=True, tag="consolidation_asked", gc=False):
    """A consolidation is wanted now; it also runs by itself."""


class ProjectImported(ManualProjectCommand, frozen=True, kw_only=True, tag="project_imported", gc=False):
    """Items of a saved project (`turntide memory project export`). An item that is there already is replaced."""

    memories: Annotated[list[ProjectMemory], about("Memories to take in.", CONTENT, max_length=200)] = []
    episodes: Annotated[list[ProjectEpisode], about("Episodes to take in.", CONTENT, max_length=200)] = []
    chunks: Annotated[list[ConversationChunk], about("Chunks to take in.", CONTENT, max_length=200)] = []
    conversations: Annotated[list[ProjectConversation], about("Sessions to take in.", CONTENT, max_length=200)] = []
    pending: Annotated[list[PendingFact], about("Pending facts to take in.", CONTENT, max_length=200)] = []
    messages: Annotated[list[ImportedMessage], about("Messages at hand of these.", CONTENT, max_length=200)] = []


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
    """A memory, episode, chunk, conversation or pending fact came, changed or went. Compacted by kind and slot.

    Of the five only that of the event's kind is there, none if it went: its text goes with it. `session_id` and
    `user_id` say where it was said first; of an erased one they are empty.
    """

    session_id: Annotated[SessionId, about("Conversation in which it was said first; empty: by hand, or erased.")]
    user_id: Annotated[UserId, about("Who said it first; empty: by hand, or erased.")]
    project_id: ProjectId
    revision: Annotated[int, about("Of the project; rises with every event that changes it.", BEHAVIOUR, unit="number")]
    kind: Annotated[ItemKind, about("Which of the five it is; the field of that name has it.", BEHAVIOUR)]
    slot: Annotated[
        int,
        about("Place among those of its kind, from 0; what comes next into it replaces it.", IDENTIFIER, unit="number"),
    ]
    item_id: Annotated[str, about("Names the item; of a conversation the session.", IDENTIFIER, names="item")]
    active: Annotated[bool, about("Whether it is there; false in the last event of one that went.", BEHAVIOUR)]
    cause: Annotated[ItemCause, about("What happened to the item.", BEHAVIOUR)]
    memory: Annotated[ProjectMemory | None, about("The memory; null for other kinds, or if it went.", CONTENT)] = None
    episode: Annotated[ProjectEpisode | None, about("The episode; null for other kinds, or if it went.", CONTENT)] = (
        None
    )
    chunk: Annotated[ConversationChunk | None, about("The chunk; null for other kinds, or if it went.", CONTENT)] = None
    conversation: Annotated[
        ProjectConversation | None, about("The session; null for other kinds, or if it went.", CONTENT)
    ] = None
    pending: Annotated[PendingFact | None, about("The fact; null for other kinds, or if it went.", CONTENT)] = None


CommandOutcome = Literal["done", "unchanged", "not_found", "too_long", "too_many", "invalid"]


class DeedResult(Struct, frozen=True, kw_only=True, gc=False):
    """What a command by hand came to."""

    request_id: RequestName
    outcome: Annotated[CommandOutcome, about("Done, unchanged, or why not.", BEHAVIOUR)]
    item_id: Annotated[str, about("What it made or changed; empty for nothing.", IDENTIFIER, names="item")] = ""
    detail: Annotated[str, about("Why it was refused, without any text.", BEHAVIOUR)] = ""
    count: Annotated[int, about("Items that it changed.", BEHAVIOUR)] = 0


class ProjectChanged(Output, frozen=True, kw_only=True, tag="project_changed"):
    """How far a project is, after each event that changed it, behind its items. Compacted by project."""

    session_id: Annotated[SessionId, about("Empty: it is no conversation's.")]
    user_id: Annotated[UserId, about("Empty: it is nobody's.")]
    project_id: ProjectId
    revision: Annotated[int, about("Counts the events that changed the project, from 1.", BEHAVIOUR, unit="number")]
    born: Annotated[str, about("Names this life of the project: after an erasure it has another.", BEHAVIOUR)]
    turn_count: Annotated[Count, about("Turns of the project, of all conversations.")]
    conversations: Annotated[Count, about("Conversations that are kept.")]
    memories: Annotated[Count, about("Memories that are kept, archived ones among them.")]
    archived: Annotated[Count, about("Memories that a consolidation, or somebody, put away.")]
    episodes: Annotated[Count, about("Episodes that are kept.")]
    pending: Annotated[Count, about("Facts that wait to become a memory.")]
    chunks: Annotated[Count, about("Chunks that are kept, of all conversations.")]
    created: Annotated[Count, about("Memories made, of all time.")]
    consolidated_at: Annotated[UtcTime | None, about("When the last consolidation ended; null before the first.")]
    consolidated: Annotated[ConsolidationFigures | None, about("What it came to.", BEHAVIOUR)] = None
    seen: Annotated[
        dict[str, int],
        about("Partition of the turns topic to the offset of the last of the project's turns that is in.", IDENTIFIER),
    ]
    results: Annotated[list[DeedResult], about("What the last commands by hand came to, the newest last.", IDENTIFIER)]


class ProjectConsolidated(Output, frozen=True, kw_only=True, tag="project_consolidated"):
    """A consolidation ended, with what became of what."""

    session_id: Annotated[SessionId, about("Empty: it is no conversation's.")]
    user_id: Annotated[UserId, about("Empty: it is nobody's.")]
    project_id: ProjectId
    run: Annotated[Count, about("Counts the project's consolidations, from 1.", OPERATIONAL, unit="number")]
    cause: Annotated[Literal["scheduled", "asked"], about("Whether it was due, or asked for.", BEHAVIOUR)]
    started_at: Annotated[UtcTime, about("When it began, by the log's clock.")]
    memories_looked_at: Annotated[Count, about("Memories that it went through.")]
    decay_updated: Annotated[Count, about("Memories whose stored decay factor changed.")]
    memories_archived: Annotated[Count, about("Memories put away: old, importance × decay below the limit.")]
    archived_ids: Annotated[ItemIds, about("Which ones, as many as the policy names at most.")]
    episodes_merged: Annotated[Count, about("Episodes that went into another.")]
    merged: Annotated[
        list[list[str]],
        about("Of each merge the episode that stayed, then those that went into it.", IDENTIFIER, names="item"),
    ]
    pending_dropped: Annotated[Count, about("Pending facts that waited too long.")]
    tokens_reclaimed: Annotated[Count, about("Tokens of what was archived, and what merging saved.", unit="tokens")]


class ProjectAudited(Output, frozen=True, kw_only=True, tag="project_audited"):
    """Somebody did something to a project's memory by hand."""

    session_id: Annotated[SessionId, about("Empty: it is no conversation's.")]
    user_id: Annotated[UserId, about("Empty: `by` says who did it.")]
    project_id: ProjectId
    action: Annotated[str, about("The command's name.", BEHAVIOUR)]
    item_id: Annotated[str, about("Item or conversation that was meant, if any.", IDENTIFIER, names="item")]
    by: Operator
    request_id: RequestName
    outcome: Annotated[str, about("Done, unchanged, or why not.", BEHAVIOUR)]
    count: Annotated[int, about("Items that it changed.", BEHAVIOUR)]


class StatementsRequested(Output, frozen=True, kw_only=True, tag="statements_requested"):
    """Asks a second reader for what sentences of a user's message state in which the rules find nothing.

    Answered by `StatementsRead` on `commands.v1`; nothing waits for it.
    """

    session_id: Annotated[SessionId, about("Conversation in which it was said.")]
    project_id: ProjectId
    turn: TurnIndex
    sentences: Annotated[
        list[Annotated[str, Meta(min_length=1)]], about("The sentences.", CONTENT, max_length=MOST_SENTENCES)
    ]


class ProjectSummaryRequested(Output, frozen=True, kw_only=True, tag="project_summary_requested"):
    """Asks a slower summariser for a new or grown chunk or episode. Never waited for; see `ProjectSummarised`."""

    session_id: Annotated[SessionId, about("Conversation that it is of.")]
    project_id: ProjectId
    kind: SummarisedKind
    item_id: Annotated[str, about("The chunk or episode.", IDENTIFIER, names="item")]
    first_turn: FirstTurn
    last_turn: LastTurn
    summary: Annotated[str, about("An episode's summary by the rules, which says what it is of; else empty.", CONTENT)]
    turns: Annotated[
        list[RequestedTurn], about("Its messages at hand, an episode's with those before it; cut.", CONTENT)
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
