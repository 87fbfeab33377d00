"""Reads the identities of everything in the archive, for a comparison."""

# ruff: noqa: S608 - tables and columns are constants of this project, values travel as parameters

from __future__ import annotations

from models.events import ConversationEnded, ProjectConversationEnded, ProjectTurnAdded, UserTurnAdded
from models.events.topics import TURNS
from models.wire.envelope import tag_of
from streams.oracle.followers import Archived
from streams.settings import Settings

_IDS = {
    "profiles.v1": "SELECT id FROM profile_history",
    "windows.v1": "SELECT id FROM raw.windows",
    "alerts.v1": "SELECT id FROM alert_changes",
    "compactions.v1": "SELECT id FROM compactions",
    "conversation-topics.v1": "SELECT id FROM topic_changes",
    "episodes.v1": "SELECT id FROM episodes",
    "commands.v1": f"SELECT id FROM raw.commands WHERE type IN {tag_of(UserTurnAdded), tag_of(ConversationEnded)} "
    "UNION SELECT id FROM raw.project_commands "
    f"WHERE type IN {tag_of(ProjectTurnAdded), tag_of(ProjectConversationEnded)}",
    "facts.v1": "SELECT id FROM fact_changes UNION SELECT id FROM raw.user_memories",
    "user-episodes.v1": "SELECT id FROM user_episodes",
    "memories.v1": "SELECT id FROM app_memory_changes UNION SELECT id FROM raw.memory_spaces",
    "projects.v1": "SELECT id FROM project_changes UNION SELECT id FROM project_history",
    "memory-events.v1": "SELECT id FROM app_memory_compactions UNION SELECT id FROM app_memory_skips "
    "UNION SELECT id FROM app_memory_audit UNION SELECT id FROM project_consolidations "
    "UNION SELECT id FROM project_audit",
    "dead-letters.v1": "SELECT id FROM dead_letters",
}
"""Output topic → its ids in the archive."""


def read_archive(settings: Settings) -> Archived:
    """Identities of everything in the archive, from one snapshot.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.schema import ABSENT, AGED, ERASED, EXPIRED

    prefix = settings.topic_prefix
    turns_topic = TURNS.full_name(prefix)
    with reading(paths_of(settings)) as lake:
        lake.execute("BEGIN")
        turns = lake.execute("SELECT session_id, turn FROM turns").fetchall()
        doubled = lake.execute("SELECT count(*) - count(DISTINCT (kafka_partition, kafka_offset)) FROM raw.turns")
        ((doubled_rows,),) = doubled.fetchall()
        ids = {name: {str(row[0]) for row in lake.execute(query).fetchall()} for name, query in _IDS.items()}
        ((refused,),) = lake.execute(
            "SELECT coalesce(sum(last_offset - first_offset + 1), 0)::BIGINT FROM raw.skipped "
            "WHERE topic = ? AND reason NOT IN (?, ?, ?, ?)",
            [turns_topic, ABSENT, AGED, ERASED, EXPIRED],
        ).fetchall()
        absent = lake.execute("SELECT DISTINCT topic FROM raw.skipped WHERE reason = ?", [ABSENT]).fetchall()
        lake.execute("ROLLBACK")
    compacted = {str(topic).removeprefix(f"{prefix}.") for (topic,) in absent}
    return Archived(turns=turns, doubled_rows=doubled_rows, ids=ids, refused=refused, compacted=compacted)
