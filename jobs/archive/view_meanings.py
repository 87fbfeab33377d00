"""Purpose of each view of the archive: its key, the query that one asks first, and the same in Polars."""

# ruff: noqa: S608 - views and columns are constants of this module

from __future__ import annotations

from inspect import cleandoc
from typing import NamedTuple

from models.entities import REGISTRY


class ViewMeaning(NamedTuple):
    """One view, in the words of the dictionary."""

    view: str
    purpose: str
    key: tuple[str, ...]
    """Columns whose values no two rows share; empty for a log, where the same may come again."""
    headline: str
    """SQL that shows what the view is good for; below a second on 20 million turns."""
    polars: str
    """The same in Python, through `lake`, a connection to the archive, into `frame`."""


POLARS_BEFORE = """\
import polars as pl
from streams.archive.catalog import open_reader, paths_of
from streams.settings import load_settings

lake = open_reader(paths_of(load_settings()))
"""
"""What stands before every example: the archive of the present settings, read-only."""


def _by(view: str, key: str, columns: str, purpose: str) -> ViewMeaning:
    """Rows by the first of the columns, with means of the others."""
    column, *besides = columns.split()
    figures = "".join(f", round(avg({name}), 3) AS mean_{name}" for name in besides)
    chained = "".join(f', pl.col("{name}").mean().alias("mean_{name}")' for name in besides)
    return ViewMeaning(
        view,
        purpose,
        tuple(key.split()),
        f"SELECT {column}, count(*) AS rows{figures} FROM {view} GROUP BY {column} ORDER BY rows DESC",
        f'frame = lake.sql("SELECT {", ".join((column, *besides))} FROM {view}").pl()'
        f'.group_by("{column}").agg(pl.len().alias("rows"){chained}).sort("rows", descending=True)',
    )


def _newest(view: str, key: str, columns: str, purpose: str) -> ViewMeaning:
    """The latest rows, by the first of the columns."""
    time, *others = columns.split()
    named = ", ".join((time, *others))
    return ViewMeaning(
        view,
        purpose,
        tuple(key.split()),
        f"SELECT {named} FROM {view} ORDER BY {time} DESC LIMIT 20",
        f'frame = lake.sql("SELECT {named} FROM {view}").pl().sort("{time}", descending=True).head(20)',
    )


# fmt: off
VIEW_MEANINGS: dict[str, ViewMeaning] = {
    meaning.view: meaning
    for meaning in (
        _by("turns", "session_id turn", "app_id content_bytes",
             "Every turn once, as it was said: the first by log order where one came twice."),
        _by("sessions", "session_id", "mode turns peak_risk",
             "One row a conversation: its length, its time, and what its latest profile says."),
        _by("profiles", "session_id", "mode score suspicion", "The latest risk profile of each session."),
        _by("profile_history", "id", "mode score", "Every risk profile that was written."),
        _by("risk_points", "session_id turn", "mode risk", "The risk of each scored turn: the curves."),
        _by("windows", "scope app_id session_id window_start", "scope turns risk_mean",
             "What closed windows of time counted, by session and by app; an app's over all partitions."),
        _by("alerts", "alert_id", "status score", "Each alert as it stands now."),
        _by("alert_changes", "id", "cause score",
             "Every change of every alert: raised, grown worse, acknowledged, resolved."),
        _by("alert_labels", "alert_id", "escalating score",
             "What people said of alerts, beside the alert as it was raised."),
        _by("compactions", "id", "summarised_by bytes_before bytes_after",
             "Every summary of a range of turns, and what it saved."),
        _by("segments", "session_id first_turn last_turn", "summarised_by tokens_before tokens_after",
             "The present summary of each range of turns."),
        _by("topics", "session_id topic_id", "memory_type message_count priority",
             "Each topic of each session as it stands now."),
        _by("topic_changes", "session_id id", "cause",
             "Every change of every topic: started, joined, merged, evicted."),
        _by("topic_compactions", "session_id id", "codec ratio loss",
             "Each packing of a topic's messages: what it cost, what a search still finds."),
        _by("topic_turns", "session_id turn", "topic_id", "Which topic each turn belongs to."),
        _by("episodes", "id", "reason turn_count peak_risk", "What is remembered of a session that closed."),
        _by("user_episodes", "id", "summarised_by tokens_after", "A user's older turns, compressed, across sessions."),
        _by("facts", "app_id user_id category key", "category confidence",
             "What is known of users: the present value of each fact."),
        _by("fact_changes", "id", "cause", "Every change of every fact."),
        _by("user_memories", "app_id user_id", "app_id facts episodes", "How full each user's memory is."),
        _by("app_memories", "app_id space user_id memory_id", "app_id importance",
             "The memories that apps have now, of themselves and of their users."),
        _by("app_memory_changes", "id", "cause", "Every change of an app's memory."),
        _by("app_memory_spaces", "", "space memories energy_units",
             "Each space of memories: how full it is, and its budget of energy."),
        _by("app_memory_compactions", "id", "action", "What was decided when a space was full."),
        _by("app_memory_skips", "id", "reason", "Conversations of which no memory was made, and why."),
        _newest("app_memory_audit", "id", "timestamp action outcome count", "Who read or changed an app's memories."),
        _by("projects", "app_id project_id", "app_id memories episodes", "Each project as it stands now."),
        _by("project_items", "app_id project_id kind slot", "kind",
             "What each project holds now, of all kinds, in its own form."),
        _by("project_memories", "app_id project_id slot", "type importance decay_factor",
             "The memories of projects, a column for each field."),
        _by("project_relationships", "", "type strength", "How memories of a project relate."),
        _by("project_memory_history", "", "type importance",
             "What was known when: each revision of a memory, until the next was recorded."),
        _by("project_episodes", "app_id project_id slot", "app_id", "The episodes of projects."),
        _by("project_chunks", "app_id project_id slot", "app_id",
             "Pieces of conversations that a project can find again."),
        _by("project_conversations", "app_id project_id slot", "status", "Conversations that a project knows."),
        _by("project_pending", "app_id project_id slot", "app_id", "Facts that wait to become memories."),
        _by("project_changes", "id", "cause", "Every change of every item of a project."),
        _newest("project_history", "id", "timestamp project_id revision", "Every state of every project."),
        _by("project_consolidations", "id", "cause memories_archived tokens_reclaimed",
             "What each consolidation archived and reclaimed."),
        _newest("project_audit", "id", "timestamp action outcome count",
             "Who read or changed what is remembered of a project."),
        _by("project_commands", "kafka_partition kafka_offset", "type",
             "Commands to projects, as they were sent; a repeat stands here, too."),
        _by("commands", "kafka_partition kafka_offset", "type",
             "Commands to the memory of users and apps, without their text; a repeat stands here, too."),
        _by("controls", "kafka_partition kafka_offset", "type",
             "What came beside the turns: endings, acknowledgements, labels, feedback; a repeat stands here, too."),
        _newest("erasures", "request_id", "timestamp scope complete sessions",
             "The proof of each erasure; names nobody."),
        _newest("retentions", "", "done_at table_name what rows",
             "The proof of each run of retention: what went, of which table, and by which rule."),
        _newest("audit", "id", "timestamp kind route user_id given",
             "Who read words or changed something over HTTP, and whom it was about."),
        _by("dead_letters", "id", "reason", "Input that was refused, with its bytes and the reason."),
    )
}
# fmt: on
VIEW_MEANINGS |= {
    name: _newest(name, " ".join(view.by), " ".join(("timestamp", *view.by)), cleandoc(str(emits.event.__doc__)))
    for emits in REGISTRY.emits.values()
    for name, view in emits.views.items()
    if name not in VIEW_MEANINGS
}
"""View → what it is for; one that stands above under no name says what its event says."""
