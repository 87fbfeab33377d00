"""What each view of the archive is for: purpose, key, the query that one asks first, and the same in Polars."""

# ruff: noqa: S608 - views and columns are constants of this module

from __future__ import annotations

from typing import NamedTuple


class ViewMeaning(NamedTuple):
    """One view, in the words of the dictionary."""

    purpose: str
    key: tuple[str, ...]
    """Columns whose values no two rows share; empty for a log, where the same may come again."""
    headline: str
    """SQL that shows what the view is good for; below a second on 20 million turns."""
    wanted: str
    """Columns that the example in Polars reads."""
    chain: str
    """What it does with them."""

    def polars(self, view: str) -> str:
        """The example: Python that reads the view through `lake`, a connection to the archive, into `frame`."""
        return f'frame = lake.sql("SELECT {self.wanted} FROM {view}").pl(){self.chain}'


POLARS_BEFORE = """\
import polars as pl
from streams.archive.catalog import open_reader, paths_of
from streams.settings import load_settings

lake = open_reader(paths_of(load_settings()))
"""
"""What stands before every example: the archive of the present settings, read-only."""

_LOG_KEY = ("kafka_partition", "kafka_offset")


def _by(view: str, column: str, *besides: str) -> tuple[str, str, str]:
    """Rows by one column, with further figures: SQL, what Polars reads, what it does."""
    figures = "".join(f", round(avg({name}), 3) AS mean_{name}" for name in besides)
    chained = "".join(f', pl.col("{name}").mean().alias("mean_{name}")' for name in besides)
    return (
        f"SELECT {column}, count(*) AS rows{figures} FROM {view} GROUP BY {column} ORDER BY rows DESC",
        ", ".join((column, *besides)),
        f'.group_by("{column}").agg(pl.len().alias("rows"){chained}).sort("rows", descending=True)',
    )


def _newest(view: str, time: str, *columns: str) -> tuple[str, str, str]:
    named = ", ".join(columns)
    return (
        f"SELECT {time}, {named} FROM {view} ORDER BY {time} DESC LIMIT 20",
        f"{time}, {named}",
        f'.sort("{time}", descending=True).head(20)',
    )


VIEW_MEANINGS: dict[str, ViewMeaning] = {
    "turns": ViewMeaning(
        "Every turn once, as it was said: the first by log order where one came twice.",
        ("session_id", "turn"),
        *_by("turns", "app_id", "content_bytes"),
    ),
    "sessions": ViewMeaning(
        "One row a conversation: its length, its time, and what its latest profile says.",
        ("session_id",),
        *_by("sessions", "mode", "turns", "peak_risk"),
    ),
    "profiles": ViewMeaning(
        "The latest risk profile of each session.", ("session_id",), *_by("profiles", "mode", "score", "suspicion")
    ),
    "profile_history": ViewMeaning(
        "Every risk profile that was written.", ("id",), *_by("profile_history", "mode", "score")
    ),
    "risk_points": ViewMeaning(
        "The risk of each scored turn: the curves.", ("session_id", "turn"), *_by("risk_points", "mode", "risk")
    ),
    "windows": ViewMeaning(
        "What closed windows of time counted, by session and by app; an app's over all partitions.",
        ("scope", "app_id", "session_id", "window_start"),
        *_by("windows", "scope", "turns", "risk_mean"),
    ),
    "alerts": ViewMeaning("Each alert as it stands now.", ("alert_id",), *_by("alerts", "status", "score")),
    "alert_changes": ViewMeaning(
        "Every change of every alert: raised, grown worse, acknowledged, resolved.",
        ("id",),
        *_by("alert_changes", "cause", "score"),
    ),
    "alert_labels": ViewMeaning(
        "What people said of alerts, beside the alert as it was raised.",
        ("alert_id",),
        *_by("alert_labels", "escalating", "score"),
    ),
    "compactions": ViewMeaning(
        "Every summary of a range of turns, and what it saved.",
        ("id",),
        *_by("compactions", "summarised_by", "bytes_before", "bytes_after"),
    ),
    "segments": ViewMeaning(
        "The present summary of each range of turns.",
        ("session_id", "first_turn", "last_turn"),
        *_by("segments", "summarised_by", "tokens_before", "tokens_after"),
    ),
    "topics": ViewMeaning(
        "Each topic of each session as it stands now.",
        ("session_id", "topic_id"),
        *_by("topics", "memory_type", "message_count", "priority"),
    ),
    "topic_changes": ViewMeaning(
        "Every change of every topic: started, joined, merged, evicted.",
        ("session_id", "id"),
        *_by("topic_changes", "cause"),
    ),
    "topic_compactions": ViewMeaning(
        "Each packing of a topic's messages: what it cost, what a search still finds.",
        ("session_id", "id"),
        *_by("topic_compactions", "codec", "ratio", "loss"),
    ),
    "topic_turns": ViewMeaning(
        "Which topic each turn belongs to.", ("session_id", "turn"), *_by("topic_turns", "topic_id")
    ),
    "episodes": ViewMeaning(
        "What is remembered of a session that closed.", ("id",), *_by("episodes", "reason", "turn_count", "peak_risk")
    ),
    "user_episodes": ViewMeaning(
        "A user's older turns, compressed, across sessions.",
        ("id",),
        *_by("user_episodes", "summarised_by", "tokens_after"),
    ),
    "facts": ViewMeaning(
        "What is known of users: the present value of each fact.",
        ("app_id", "user_id", "category", "key"),
        *_by("facts", "category", "confidence"),
    ),
    "fact_changes": ViewMeaning("Every change of every fact.", ("id",), *_by("fact_changes", "cause")),
    "user_memories": ViewMeaning(
        "How full each user's memory is.", ("app_id", "user_id"), *_by("user_memories", "app_id", "facts", "episodes")
    ),
    "app_memories": ViewMeaning(
        "The memories that apps have now, of themselves and of their users.",
        ("app_id", "space", "user_id", "memory_id"),
        *_by("app_memories", "app_id", "importance"),
    ),
    "app_memory_changes": ViewMeaning("Every change of an app's memory.", ("id",), *_by("app_memory_changes", "cause")),
    "app_memory_spaces": ViewMeaning(
        "Each space of memories: how full it is, and its budget of energy.",
        (),
        *_by("app_memory_spaces", "space", "memories", "energy_units"),
    ),
    "app_memory_compactions": ViewMeaning(
        "What was decided when a space was full.", ("id",), *_by("app_memory_compactions", "action")
    ),
    "app_memory_skips": ViewMeaning(
        "Conversations of which no memory was made, and why.", ("id",), *_by("app_memory_skips", "reason")
    ),
    "app_memory_audit": ViewMeaning(
        "Who read or changed an app's memories.",
        ("id",),
        *_newest("app_memory_audit", "timestamp", "action", "outcome", "count"),
    ),
    "projects": ViewMeaning(
        "Each project as it stands now.", ("app_id", "project_id"), *_by("projects", "app_id", "memories", "episodes")
    ),
    "project_items": ViewMeaning(
        "What each project holds now, of all kinds, in its own form.",
        ("app_id", "project_id", "kind", "slot"),
        *_by("project_items", "kind"),
    ),
    "project_memories": ViewMeaning(
        "The memories of projects, a column for each field.",
        ("app_id", "project_id", "slot"),
        *_by("project_memories", "type", "importance", "decay_factor"),
    ),
    "project_relationships": ViewMeaning(
        "How memories of a project relate.", (), *_by("project_relationships", "type", "strength")
    ),
    "project_memory_history": ViewMeaning(
        "What was known when: each revision of a memory, until the next was recorded.",
        (),
        *_by("project_memory_history", "type", "importance"),
    ),
    "project_episodes": ViewMeaning(
        "The episodes of projects.", ("app_id", "project_id", "slot"), *_by("project_episodes", "app_id")
    ),
    "project_chunks": ViewMeaning(
        "Pieces of conversations that a project can find again.",
        ("app_id", "project_id", "slot"),
        *_by("project_chunks", "app_id"),
    ),
    "project_conversations": ViewMeaning(
        "Conversations that a project knows.", ("app_id", "project_id", "slot"), *_by("project_conversations", "status")
    ),
    "project_pending": ViewMeaning(
        "Facts that wait to become memories.", ("app_id", "project_id", "slot"), *_by("project_pending", "app_id")
    ),
    "project_changes": ViewMeaning(
        "Every change of every item of a project.", ("id",), *_by("project_changes", "cause")
    ),
    "project_history": ViewMeaning(
        "Every state of every project.", ("id",), *_newest("project_history", "timestamp", "project_id", "revision")
    ),
    "project_consolidations": ViewMeaning(
        "What each consolidation archived and reclaimed.",
        ("id",),
        *_by("project_consolidations", "cause", "memories_archived", "tokens_reclaimed"),
    ),
    "project_audit": ViewMeaning(
        "Who read or changed what is remembered of a project.",
        ("id",),
        *_newest("project_audit", "timestamp", "action", "outcome", "count"),
    ),
    "project_commands": ViewMeaning(
        "Commands to projects, as they were sent; a repeat stands here, too.",
        _LOG_KEY,
        *_by("project_commands", "type"),
    ),
    "commands": ViewMeaning(
        "Commands to the memory of users and apps, without their text; a repeat stands here, too.",
        _LOG_KEY,
        *_by("commands", "type"),
    ),
    "controls": ViewMeaning(
        "What came beside the turns: endings, acknowledgements, labels, feedback; a repeat stands here, too.",
        _LOG_KEY,
        *_by("controls", "type"),
    ),
    "erasures": ViewMeaning(
        "The proof of each erasure; names nobody.",
        ("request_id",),
        *_newest("erasures", "timestamp", "scope", "complete", "sessions"),
    ),
    "retentions": ViewMeaning(
        "The proof of each run of retention: what went, of which table, and by which rule.",
        (),
        *_newest("retentions", "done_at", "table_name", "what", "rows"),
    ),
    "audit": ViewMeaning(
        "Who read words or changed something over HTTP, and whom it was about.",
        ("id",),
        *_newest("audit", "timestamp", "kind", "route", "user_id", "given"),
    ),
    "dead_letters": ViewMeaning(
        "Input that was refused, with its bytes and the reason.", ("id",), *_by("dead_letters", "reason")
    ),
}
