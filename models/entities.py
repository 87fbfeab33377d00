"""Kinds of entity, and what follows from them: whose memory an event belongs to, and on which topic it travels.

Whoever adds a memory layer writes its kind here, and its fold into `models.partition.commands.FOLDS`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from models import events
from models.events import AppMemoriesCompacted, ConversationEnded, ProfileUpdated, SpaceOutput, topics
from models.events.registry import Counted, Emits, EntityKind, Index, Registry, count, last, once
from models.events.topics import TOPICS, TURNS, Topic


def owner_of(event: ConversationEnded | SpaceOutput) -> str:
    """The user whose space it is; empty for an app's own, of which `user_id` names who spoke."""
    return event.user_id if event.space == "user" else ""


def _key_of_space(event: Any) -> str:
    return events.space_key(event.app_id, owner_of(event) if hasattr(event, "space") else event.user_id)


def _decided(event: AppMemoriesCompacted) -> Counted:
    decider = event.decided_by if event.decided_by in {"rules", "fifo"} else "model"
    return Counted("app_memory_compactions_total", 1, {"result": decider, "reason": event.fallback or "none"})


def _made_and_gone(event: AppMemoriesCompacted) -> int:
    """A new memory that went at once was made all the same, though no reader heard of it."""
    return int(event.before[-1].memory_id not in {memory.memory_id for memory in event.after})


def _moved_mode(event: ProfileUpdated) -> Counted | None:
    changes = [change for change in event.mode_transitions[-1:] if change.turn == event.last_turn]
    return Counted("mode_transitions_total", 1, {"mode": changes[0].mode.value}) if changes else None


SESSION: Final = EntityKind(
    name="session",
    key=lambda event: event.session_id or event.app_id,
    source=TURNS,
    accepts=(
        events.Turn,
        events.SessionEnded,
        events.SessionErased,
        events.AlertAcknowledged,
        events.AlertLabelled,
        events.TurnsJudged,
        events.SegmentSummarised,
        events.TopicAdjusted,
        events.FeedbackGiven,
        events.TopicSummarised,
        events.TopicRestored,
        events.ClockTicked,
    ),
    erased_by=(events.SessionErased,),
    emits=(
        Emits(
            events.ProfileUpdated,
            topics.PROFILES,
            table="profiles",
            views={"profiles": last("session_id"), "profile_history": once("id")},
            counts=(_moved_mode,),
        ),
        Emits(events.WindowClosed, topics.WINDOWS, table="windows"),
        Emits(
            events.AlertChanged,
            topics.ALERTS,
            table="alerts",
            views={"alert_changes": once("id")},
            counts=(count("alerts_total", "severity", "cause"),),
        ),
        Emits(events.JudgementRequested, topics.JUDGEMENTS),
        Emits(
            events.SegmentCompacted,
            topics.COMPACTIONS,
            table="compactions",
            views={"compactions": once("id"), "segments": last("session_id", "first_turn", "last_turn")},
        ),
        Emits(
            events.TopicChanged,
            topics.CONVERSATION_TOPICS,
            table="topics",
            views={"topics": last("session_id", "topic_id"), "topic_changes": once("session_id", "id")},
            index=Index("topics"),
            counts=(
                count("topic_changes_total", "cause"),
                count(
                    "topic_history_bytes_total",
                    amount=lambda event: event.compaction.bytes_before,
                    when=lambda event: event.compaction is not None,
                ),
                count(
                    "topic_packed_bytes_total",
                    amount=lambda event: event.compaction.bytes_after,
                    when=lambda event: event.compaction is not None,
                ),
            ),
        ),
        Emits(events.EpisodeClosed, topics.EPISODES, table="episodes", views={"episodes": once("id")}),
        Emits(
            events.DeadLetter,
            topics.DEAD_LETTERS,
            table="dead_letters",
            views={"dead_letters": once("id")},
            counts=(count("dead_letters_total", "reason"),),
        ),
        *(
            Emits(event, topics.COMMANDS)
            for event in (
                events.UserTurnAdded,
                events.ConversationEnded,
                events.ProjectTurnAdded,
                events.ProjectConversationEnded,
            )
        ),
    ),
)
USER: Final = EntityKind(
    name="user",
    key=lambda event: events.user_key(event.app_id, event.user_id),
    source=topics.COMMANDS,
    accepts=(events.UserTurnAdded, events.EpisodeSummarised, events.FactsExtracted),
    erased_by=(events.UserSessionErased, events.UserErased),
    emits=(
        Emits(events.EpisodeRequested, topics.REQUESTS),
        Emits(events.FactsRequested, topics.REQUESTS),
        Emits(
            events.FactChanged,
            topics.FACTS,
            slot=lambda event: f"/{event.category}/{event.key}",
            table="facts",
            views={"facts": last("app_id", "user_id", "category", "key"), "fact_changes": once("id")},
            index=Index("facts", filters=("active", "category")),
            counts=(count("fact_changes_total", "cause"),),
        ),
        Emits(
            events.UserMemoryChanged,
            topics.FACTS,
            table="user_memories",
            views={"user_memories": last("app_id", "user_id")},
            index=Index("users"),
        ),
        Emits(
            events.EpisodeCompressed,
            topics.USER_EPISODES,
            slot=lambda event: f"/episode/{event.first_turn}",
            table="user_episodes",
            views={"user_episodes": once("id")},
            index=Index("episodes"),
            counts=(
                count("episodes_total"),
                count("episode_tokens_total", amount=lambda event: event.tokens_after),
                count("episode_turn_tokens_total", amount=lambda event: event.tokens_before),
            ),
        ),
    ),
)
APP: Final = EntityKind(
    name="app",
    key=_key_of_space,
    source=topics.COMMANDS,
    accepts=(
        events.ConversationEnded,
        events.MemoryProposed,
        events.CompactionDecided,
        events.WorkDue,
        events.MemoryEdited,
        events.MemoryDeleted,
        events.MemoriesPurged,
        events.AppUninstalled,
        events.MemoriesRead,
    ),
    erased_by=(events.SpaceSessionErased, events.SpaceErased),
    emits=(
        Emits(events.MemoryRequested, topics.REQUESTS),
        Emits(events.CompactionRequested, topics.REQUESTS),
        Emits(
            events.AppMemoryChanged,
            topics.MEMORIES,
            slot=lambda event: f"/memory/{event.slot}",
            table="memories",
            views={"app_memory_changes": once("id")},
            index=Index("memories", filters=("active", "space")),
            counts=(
                count("app_memories_deleted_total", "cause", when=lambda event: not event.active),
                count("app_memories_created_total", when=lambda event: event.active and event.cause == "created"),
                count("app_memories_edited_total", when=lambda event: event.active and event.cause == "edited"),
            ),
        ),
        Emits(events.AppMemoriesChanged, topics.MEMORIES, table="memory_spaces", index=Index("spaces")),
        Emits(
            events.AppMemoriesCompacted,
            topics.MEMORY_EVENTS,
            table="memory_compactions",
            views={"app_memory_compactions": once("id")},
            counts=(_decided, count("app_memories_created_total", amount=_made_and_gone)),
        ),
        Emits(
            events.AppMemorySkipped,
            topics.MEMORY_EVENTS,
            table="memory_skips",
            views={"app_memory_skips": once("id")},
            counts=(count("app_memories_skipped_total", "reason"),),
        ),
        Emits(
            events.AppMemoryAudited,
            topics.MEMORY_EVENTS,
            table="memory_audits",
            views={"app_memory_audit": once("id")},
        ),
    ),
)
PROJECT: Final = EntityKind(
    name="project",
    key=lambda event: events.project_key(event.app_id, event.project_id),
    source=topics.COMMANDS,
    accepts=(
        events.ProjectTurnAdded,
        events.ProjectConversationEnded,
        events.MemoriesAccessed,
        events.ProjectWorkDue,
        events.ProjectMemoryAdded,
        events.ProjectMemoryEdited,
        events.ProjectMemoryDeleted,
        events.PendingFactDecided,
        events.RelationshipSet,
        events.ConversationStatusSet,
        events.ConsolidationAsked,
        events.ProjectImported,
    ),
    erased_by=(events.ProjectSessionErased, events.ProjectErased),
    emits=(
        Emits(
            events.ProjectItemChanged,
            topics.PROJECTS,
            slot=lambda event: f"/{event.kind}/{event.slot}",
            table="project_items",
            views={"project_changes": once("id")},
            index=Index("project_items", filters=("kind",)),
            counts=(count("project_item_changes_total", "cause"),),
        ),
        Emits(
            events.ProjectChanged,
            topics.PROJECTS,
            table="projects",
            views={"projects": last("app_id", "project_id"), "project_history": once("id")},
            index=Index("projects"),
        ),
        Emits(
            events.ProjectConsolidated,
            topics.MEMORY_EVENTS,
            table="project_consolidations",
            views={"project_consolidations": once("id")},
            counts=(
                count("project_consolidations_total", "cause"),
                count("project_tokens_reclaimed_total", amount=lambda event: event.tokens_reclaimed),
            ),
        ),
        Emits(
            events.ProjectAudited,
            topics.MEMORY_EVENTS,
            table="project_audits",
            views={"project_audit": once("id")},
        ),
    ),
)
KINDS: Final = (SESSION, USER, APP, PROJECT)

_OTHERS = (
    *(
        Emits(event, topics.ERASURES, index=Index(""))
        for event in (events.EraseRequested, events.VectorsErasureDue, events.VectorsErased, events.ErasureProved)
    ),
    Emits(events.AccessAudited, topics.AUDIT, table="audits", views={"audit": once("id")}),
)
"""What roles say of themselves, without a fold."""

REGISTRY: Final = Registry(KINDS, _OTHERS, TOPICS)
TOPIC_OF: Final = REGISTRY.topic_of
KIND_OF: Final = REGISTRY.kind_of
ERASURES: Final = REGISTRY.erasures
carried_by = REGISTRY.carried_by
INDEXED_TOPICS: Final[tuple[Topic, ...]] = tuple(
    topic
    for topic in TOPICS
    if topic is TURNS or any(each.index is not None and each.topic is topic for each in REGISTRY.emits.values())
)
"""What the index reads: turns, and what is emitted for it."""


def entity_key(event: Struct) -> str:
    """Key of the session, user, space or project that the event changes or tells of."""
    return KIND_OF[type(event)].key(event)
