"""What each column of each view means: by the event that it comes from, or by what the view or the record adds."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from jobs.contracts.field_meanings import meaning_of
from models import events
from models.events import project_items as project_types
from streams.archive.privacy import Privacy, privacy_of
from streams.archive.schema import TABLES
from streams.archive.views.definitions import ONCE
from streams.archive.views.published import columns_of_views


class ColumnMeaning(NamedTuple):
    """One column of one view."""

    name: str
    type: str
    """As DuckDB spells it."""
    unit: str
    """Empty where it has none: names, words, truth values."""
    meaning: str
    privacy: Privacy


_TABLE_OF_VIEW = {"app_memories": "memories", "app_memory_spaces": "memory_spaces", "topic_compactions": "topics"}
_STRUCTS_OF_VIEW: dict[str, tuple[type[Struct], ...]] = {
    "topic_compactions": (events.TopicCompaction,),
    "project_memories": (project_types.ProjectMemory, project_types.MemoryRevision),
    "project_relationships": (project_types.Relationship,),
    "project_memory_history": (project_types.ProjectMemory, project_types.MemoryRevision),
    "project_episodes": (project_types.ProjectEpisode,),
    "project_chunks": (project_types.ConversationChunk,),
    "project_conversations": (project_types.ProjectConversation,),
    "project_pending": (project_types.PendingFact,),
    "topic_turns": (events.TopicChanged,),
    "alert_labels": (events.AlertLabelled, events.AlertChanged, events.Escalation),
    "sessions": (events.ProfileUpdated, events.Turn),
}
"""Views of parts of an event, or of several."""

_OF_RECORD = {
    "kafka_partition": "Partition of the record, on its topic.",
    "kafka_offset": "Offset of the record in its partition.",
    "appended_at": "When the broker received the record; of Turntide's own topics when it was sent.",
    "record_bytes": "Size of the record's JSON; 0 for a part of a record.",
    "date": "Day on which the broker received the record (UTC), which is the folder: filter by it to read fewer files.",
    "app": "The folder of the app: its id made fit for a path, rare ones share one. Filter by `app_id`.",
    "content_exact": "UTF-8 of the text where `content` had to differ from it (U+0000); else null.",
    "content_bytes": "UTF-8 bytes of the text.",
    "extra": "JSON of the fields that the schema does not name.",
    "mentioned_sessions": "Sessions that the record names.",
    "mentioned_users": "Users that the record names.",
    "mentioned_items": "Items of the project that the record names.",
    "source_appended_at": "When the broker appended the bad record.",
}
_OF_VIEW = {
    "alerts.model": "Name and digest of the model that judged; null where the seed's formulas alone decide.",
    "alert_labels.labelled_at": "Event time of the label.",
    "project_memory_history.memory_id": "The memory, in its project.",
    "project_memory_history.known_until": "When the next one was recorded; null for what is known now.",
    **dict.fromkeys(
        (f"project_{kind}.revision" for kind in ("memories", "episodes", "chunks", "conversations", "pending")),
        "Of the project, with which the item came to be as it is.",
    ),
    "project_relationships.source_id": "Memory that the relation goes out from.",
    "retentions.done_at": "When it was done.",
    "retentions.table_name": "Table of the schema `raw`.",
    "retentions.privacy": "Privacy class by which it was due.",
    "retentions.what": "`words`: columns were emptied; `rows`: they were removed.",
    "retentions.before": "Rows received on earlier days (UTC).",
    "retentions.rows": "How many.",
    "retentions.policy_version": "Version of the policy that said so.",
    "sessions.first_at": "Event time of its earliest turn.",
    "sessions.last_at": "Event time of its latest turn.",
    "sessions.turns": "Turns, each once.",
    "sessions.user_turns": "Of these, the user's.",
    "sessions.content_bytes": "UTF-8 bytes of all its texts.",
    "sessions.ended_at": "Event time at which its latest episode was written; null while it is open.",
    "sessions.alerts": "Alerts raised.",
    "topic_turns.turn": "Turn number in the session.",
    "topic_turns.topic_id": "Topic that the turn belongs to.",
    "windows.risk_mean": "Mean risk of the scored turns; null without any.",
    "windows.partitions": "Partitions that saw turns of it: 1 for a session.",
}
_UNITS = (
    ("_at", "UTC time"),
    ("_from", "UTC time"),
    ("_until", "UTC time"),
    ("_start", "UTC time"),
    ("_end", "UTC time"),
    ("_bytes", "bytes"),
    ("bytes_after", "bytes"),
    ("bytes_before", "bytes"),
    ("_ms", "ms"),
    ("_days", "days"),
    ("_units", "units of energy"),
    ("tokens", "tokens"),
    ("tokens_after", "tokens"),
    ("tokens_before", "tokens"),
    ("tokens_reclaimed", "tokens"),
    ("_per_minute", "turns/min"),
    ("_turn", "turn number"),
    ("_offset", "offset"),
)
_SHARES = frozenset(
    [
        "risk",
        "risk_mean",
        "risk_max",
        "mean_risk",
        "peak_risk",
        "score",
        "suspicion",
        "probability",
        "threshold",
        "confidence",
        "importance",
        "loss",
        "strength",
        "decay_factor",
        "significance",
    ]
)
_EXACT = {
    "timestamp": "UTC time",
    "turn": "turn number",
    "ratio": "bytes/byte",
    "priority": "0-1",
    "risk_sum": "sum of 0-1",
    "emotional_valence": "-1 to 1",
}
_OF_SHARES = "0-1"
_COUNTED = ("BIGINT", "HUGEINT", "INTEGER")
_PLACES = frozenset({"kafka_partition", "partition", "slot", "memory_id", "revision", "episode", "request", "run"})


def columns_of(view: str) -> list[ColumnMeaning]:
    """Every column of a view, in its order.

    Raises:
        KeyError: A column has no meaning or no privacy class.
    """
    return [
        ColumnMeaning(name, kind, unit_of(name, kind), _meaning(view, name), privacy_of(name, kind, table=view))
        for name, kind in columns_of_views()[view].items()
    ]


def unit_of(column: str, kind: str) -> str:
    """The unit of a column's numbers, empty for what is no number.

    >>> unit_of("elapsed_ms", "BIGINT"), unit_of("turns", "BIGINT"), unit_of("severity", "VARCHAR")
    ('ms', 'count', '')
    """
    if kind == "DATE":
        return "UTC day"
    if column in _EXACT and kind != "VARCHAR":
        return _EXACT[column]
    if column in _SHARES and kind == "DOUBLE":
        return _OF_SHARES
    if kind in {"VARCHAR", "BOOLEAN"} or column in _PLACES:
        return ""
    by_ending = next((unit for ending, unit in _UNITS if column.endswith(ending)), "")
    return by_ending or ("count" if kind in _COUNTED else "")


def _meaning(view: str, column: str) -> str:
    said = _OF_VIEW.get(f"{view}.{column}") or _OF_RECORD.get(column)
    if said:
        return said
    for struct in _structs(view):
        if column in struct.__struct_fields__ or column == "type":
            return meaning_of(struct.__name__, column)
    return meaning_of("", column)


def _structs(view: str) -> tuple[type[Struct], ...]:
    table = ONCE[view].table if view in ONCE else _TABLE_OF_VIEW.get(view, view)
    return (*_STRUCTS_OF_VIEW.get(view, ()), *(TABLES[table].carries if table in TABLES else ()))
