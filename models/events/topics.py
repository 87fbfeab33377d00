"""Every topic, as data: purpose, owner, key, what travels on it and how the broker keeps it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

_MIB = 1024 * 1024


class Cleanup(StrEnum):
    """What the broker does with old records (Kafka's `cleanup.policy`)."""

    DELETE = "delete"
    COMPACT = "compact"


class Topic(Struct, frozen=True, kw_only=True):
    """One topic. The full name is `<prefix>.<name>`."""

    name: str
    purpose: str
    owner: str
    """The role that writes it."""
    key: str
    cleanup: Cleanup = Cleanup.DELETE
    retention: timedelta | None = timedelta(days=30)
    """How long records stay; None for a compacted topic keeps the latest per key for ever."""
    compaction_lag: timedelta = timedelta(0)
    """Of a compacted topic: a record is not compacted before."""
    compacted_within: timedelta = timedelta(days=7)
    """Of a compacted topic: what was replaced is gone after it, once the partition is written to again."""
    segment: timedelta | None = None
    """The broker closes a file after it, and removes closed ones only. None: Kafka's seven days."""
    partitions: int = 12
    max_message_bytes: int = _MIB
    log_append_time: bool = False
    """Inputs: the broker stamps records, since producers' event times are no basis for retention."""
    public: bool = True
    archived: bool = True
    """Whether the archive keeps it; what says again what another topic says need not be kept twice."""

    def full_name(self, prefix: str) -> str:
        """Name on the broker."""
        return f"{prefix}.{self.name}"


TURNS = Topic(
    name="turns.v1",
    purpose="Turns and the control events beside them: everything that changes a session, in one order.",
    owner="producers",
    key="session_id",
    log_append_time=True,
)
PROFILES = Topic(
    name="profiles.v1",
    purpose="Latest profile of each session, with the risk points since the one before.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
WINDOWS = Topic(
    name="windows.v1",
    purpose="Closed event-time windows per session and per app.",
    owner="sessions",
    key="session:<app_id>/<session_id>, or app_id",
)
ALERTS = Topic(
    name="alerts.v1",
    purpose="Every change of every alert, with its evidence.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
    retention=timedelta(days=90),
)
JUDGEMENTS = Topic(
    name="judgement-requests.v1",
    purpose="Last turns of sessions with an alert, for a slower judge; it answers on turns.v1.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
    retention=timedelta(days=1),
    segment=timedelta(hours=1),
    max_message_bytes=4 * _MIB,
    archived=False,
)
COMPACTIONS = Topic(
    name="compactions.v1",
    purpose="Segments of the working memory that became summaries, with lineage.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
)
CONVERSATION_TOPICS = Topic(
    name="conversation-topics.v1",
    purpose="Every change of what a session is about: topics that come, are compacted, unpacked, merged and evicted.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
)
EPISODES = Topic(
    name="episodes.v1",
    purpose="What is kept of a session that ended or timed out.",
    owner="sessions",
    key="session:<app_id>/<session_id>",
)
COMMANDS = Topic(
    name="commands.v1",
    purpose="What changes memories of users, apps and projects: turns, ended conversations, answers of slower stages, "
    "people.",
    owner="sessions",
    key="user:<app_id>/<user_id>, app:<app_id>[/<user_id>] or project:<app_id>/<project_id>, with % and / in the ids "
    "percent-encoded",
    max_message_bytes=2 * _MIB,
)
REQUESTS = Topic(
    name="requests.v1",
    purpose="What the memory role asks of slower stages; each answers on commands.v1.",
    owner="memory",
    key="as commands.v1",
    retention=timedelta(days=7),
    max_message_bytes=2 * _MIB,
    archived=False,
)
FACTS = Topic(
    name="facts.v1",
    purpose="Facts of users, the latest value of each, and how far each user's memory is.",
    owner="memory",
    key="<key of commands.v1>/<category>/<key> for a fact, the key of commands.v1 for a user",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
USER_EPISODES = Topic(
    name="user-episodes.v1",
    purpose="Turns of users, across sessions, that became episodes.",
    owner="memory",
    key="<key of commands.v1>/episode/<first turn>",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
MEMORIES = Topic(
    name="memories.v1",
    purpose="Memories of apps, the latest of each slot, and how far each space of them is.",
    owner="memory",
    key="<key of commands.v1>/memory/<slot> for a memory, the key of commands.v1 for a space",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
PROJECTS = Topic(
    name="projects.v1",
    purpose="Memory of projects: the latest of each memory, episode, chunk, conversation and pending fact, and how far "
    "each project is.",
    owner="memory",
    key="<key of commands.v1>/<kind>/<slot> for an item, the key of commands.v1 for a project",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
MEMORY_EVENTS = Topic(
    name="memory-events.v1",
    purpose="What happened to memories of apps and projects: compactions and consolidations with their reasons, "
    "skipped ones, deeds of admins.",
    owner="memory",
    key="as commands.v1",
    retention=timedelta(days=90),
)
ERASURES = Topic(
    name="erasures.v1",
    purpose="Erasures: who is to be forgotten, and the proof, which names nobody.",
    owner="archive",
    key="<request_id>/<type>",
    cleanup=Cleanup.COMPACT,
    retention=None,
    max_message_bytes=8 * _MIB,
)
AUDIT = Topic(
    name="audit.v1",
    purpose="Who read words or changed something over HTTP, and whom it was about; never the words.",
    owner="index and api",
    key="id",
    retention=timedelta(days=90),
)
DEAD_LETTERS = Topic(
    name="dead-letters.v1",
    purpose="Bad input: original bytes, reason and place.",
    owner="sessions",
    key="the original key",
    retention=timedelta(days=90),
    max_message_bytes=4 * _MIB,
)


def _changelog(role: str, name: str, *, of: str, key: str) -> Topic:
    return Topic(
        name=name,
        purpose=f"Changelog of the {of} role: its state is rebuilt from here. Private.",
        owner=role,
        key=f"{key} and part",
        cleanup=Cleanup.COMPACT,
        retention=None,
        # What a replaced worker wrote late is mended by the next recovery, which must find what it overruled.
        compaction_lag=timedelta(hours=1),
        max_message_bytes=8 * _MIB,
        public=False,
    )


SESSION_STATE = _changelog("sessions", "sessions-state.v1", of="session", key="session:<app_id>/<session_id>")
MEMORY_STATE = _changelog("memory", "memory-state.v1", of="memory", key="user, space or project")

TOPICS: tuple[Topic, ...] = (
    TURNS,
    PROFILES,
    WINDOWS,
    ALERTS,
    JUDGEMENTS,
    COMPACTIONS,
    CONVERSATION_TOPICS,
    EPISODES,
    COMMANDS,
    REQUESTS,
    FACTS,
    USER_EPISODES,
    MEMORIES,
    PROJECTS,
    MEMORY_EVENTS,
    ERASURES,
    AUDIT,
    DEAD_LETTERS,
    SESSION_STATE,
    MEMORY_STATE,
)
