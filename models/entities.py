"""Kinds of entity, and what follows from them: whose memory an event belongs to, and on which topic it travels.

Whoever adds a memory layer writes its kind here; `tests/support/new_layer.py` is a small one.
"""

from typing import Any, Final, get_args

from msgspec import Struct

from models import events
from models.events import topics
from models.events.registry import Counted, Emits, EntityKind, Index, Registry, count, last, newest, once
from models.events.topics import TOPICS, TURNS


def owner_of(event: events.ConversationEnded | events.SpaceOutput) -> str:
    """The user whose space it is; empty for an app's own, of which `user_id` names who spoke."""
    return event.user_id if event.space == "user" else ""


def _key_of_session(event: Any) -> str:
    """What producers write is keyed by the session's id alone, which also gives its partition."""
    if isinstance(event, events.Turn | events.UnnumberedTurn | events.Control):
        return event.session_id
    return events.session_key(event.app_id, event.session_id) if event.session_id else str(event.app_id)


def _key_of_space(event: Any) -> str:
    return events.space_key(event.app_id, owner_of(event) if hasattr(event, "space") else event.user_id)


def _moved_mode(event: events.ProfileUpdated) -> Counted | None:
    moved = [change.mode.value for change in event.mode_transitions[-1:] if change.turn == event.last_turn]
    return Counted("mode_transitions_total", 1, {"mode": moved[0]}) if moved else None


def _compacted(event: events.AppMemoriesCompacted) -> Counted:
    decider = event.decided_by if event.decided_by in {"rules", "fifo"} else "model"
    return Counted("app_memory_compactions_total", 1, {"result": decider, "reason": event.fallback or "none"})


def _made_and_gone(event: events.AppMemoriesCompacted) -> int:
    """A new memory that went at once was made all the same, though no reader heard of it."""
    return int(event.before[-1].memory_id not in {memory.memory_id for memory in event.after})


def _is_compaction(event: events.TopicChanged) -> bool:
    return event.compaction is not None


SESSION: Final = EntityKind(
    name="session",
    key=_key_of_session,
    source=TURNS,
    accepts=get_args(events.InputEvent),
    erased_by=(events.SessionErased,),
    emits=(
        Emits(
            events.ProfileUpdated,
            topics.PROFILES,
            table="profiles",
            index=Index("profiles", erased_by=()),
            views={"profile_history": once("id"), "profiles": last("app_id", "session_id")},
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
            index=Index("segments"),
            views={"compactions": once("id"), "segments": newest("app_id", "session_id", "first_turn", "last_turn")},
        ),
        Emits(events.SegmentRequested, topics.REQUESTS),
        Emits(events.TopicSummaryRequested, topics.REQUESTS),
        Emits(
            events.TopicChanged,
            topics.CONVERSATION_TOPICS,
            table="topics",
            views={
                "topic_changes": once("app_id", "session_id", "id"),
                "topics": last("app_id", "session_id", "topic_id"),
            },
            index=Index("topics"),
            counts=(
                count("topic_changes_total", "cause"),
                count("topic_history_bytes_total", amount="compaction.bytes_before", when=_is_compaction),
                count("topic_packed_bytes_total", amount="compaction.bytes_after", when=_is_compaction),
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
        Emits(
            events.TurnNumbered,
            topics.NUMBERED,
            table="numbered_turns",
            views={"numbered_turns": once("id")},
            counts=(count("turns_numbered_total"),),
        ),
        *(Emits(event, topics.COMMANDS) for event in get_args(events.Forwarded)),
    ),
)
USER: Final = EntityKind(
    name="user",
    key=lambda event: events.user_key(event.app_id, event.user_id),
    source=topics.COMMANDS,
    accepts=get_args(events.UserEvent),
    erased_by=get_args(events.UserErasure),
    folding="models.user.fold:FOLDING",
    emits=(
        Emits(events.EpisodeRequested, topics.REQUESTS),
        Emits(events.FactsRequested, topics.REQUESTS),
        Emits(events.TopicsRecalled, topics.TURNS),
        Emits(
            events.FactChanged,
            topics.FACTS,
            slot=lambda event: f"/{event.category}/{event.key}",
            table="facts",
            views={"fact_changes": once("id"), "facts": last("app_id", "user_id", "category", '"key"')},
            index=Index("facts"),
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
                count("episode_tokens_total", amount="tokens_after"),
                count("episode_turn_tokens_total", amount="tokens_before"),
            ),
        ),
    ),
)
APP: Final = EntityKind(
    name="app",
    key=_key_of_space,
    source=topics.COMMANDS,
    accepts=get_args(events.SpaceEvent),
    erased_by=get_args(events.SpaceErasure),
    folding="models.app.fold:FOLDING",
    emits=(
        Emits(events.MemoryRequested, topics.REQUESTS),
        Emits(events.CompactionRequested, topics.REQUESTS),
        Emits(
            events.AppMemoryChanged,
            topics.MEMORIES,
            slot=lambda event: f"/memory/{event.slot}",
            table="memories",
            views={"app_memory_changes": once("id")},
            index=Index("memories"),
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
            counts=(_compacted, count("app_memories_created_total", amount=_made_and_gone)),
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
    accepts=get_args(events.ProjectEvent),
    erased_by=get_args(events.ProjectErasure),
    folding="models.project.fold:FOLDING",
    emits=(
        Emits(
            events.ProjectItemChanged,
            topics.PROJECTS,
            slot=lambda event: f"/{event.kind}/{event.slot}",
            table="project_items",
            views={"project_changes": once("id")},
            index=Index("project_items"),
            counts=(count("project_item_changes_total", "cause"),),
        ),
        Emits(
            events.ProjectChanged,
            topics.PROJECTS,
            table="projects",
            views={"project_history": once("id"), "projects": last("app_id", "project_id")},
            index=Index("projects"),
        ),
        Emits(
            events.ProjectConsolidated,
            topics.MEMORY_EVENTS,
            table="project_consolidations",
            views={"project_consolidations": once("id")},
            counts=(
                count("project_consolidations_total", "cause"),
                count("project_tokens_reclaimed_total", amount="tokens_reclaimed"),
            ),
        ),
        Emits(events.ProjectAudited, topics.MEMORY_EVENTS, table="project_audits", views={"project_audit": once("id")}),
        Emits(events.StatementsRequested, topics.REQUESTS),
        Emits(events.ProjectSummaryRequested, topics.REQUESTS),
    ),
)
KINDS: Final = (SESSION, USER, APP, PROJECT)
OTHERS: Final = (
    *(Emits(event, topics.ERASURES) for event in get_args(events.ErasureRecord)),
    Emits(events.AccessAudited, topics.AUDIT, table="audits", views={"audit": once("id")}),
)
"""What roles say of themselves, without a fold."""

REGISTRY: Final = Registry(KINDS, OTHERS, TOPICS)
TOPIC_OF: Final = REGISTRY.topic_of
KIND_OF: Final = REGISTRY.kind_of
ERASURES: Final = REGISTRY.erasures
carried_by = REGISTRY.carried_by


def entity_key(event: Struct) -> str:
    """Key of the session, user, space or project that the event changes or tells of."""
    return KIND_OF[type(event)].key(event)
