"""Topics of a session as the archive has them: what became of each, and every message of one, evicted or not."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb
from msgspec import Struct

from models.events import Role

_TOPICS = """
SELECT
  t.topic_id, t.title, t.kept, t.active, t.cause, t.detail, t.message_count AS messages,
  len(t.active_turns) AS at_hand, len(t.packed_turns) AS packed, t.released_messages AS released, t.packed_bytes,
  (SELECT count(*) FROM topic_compactions c WHERE c.session_id = t.session_id AND c.topic_id = t.topic_id)
    AS compactions,
  t.access_count, t.importance, t.memory_type, t.tags, t.summary, t.created_at, t.last_active_at,
  t.timestamp AS changed_at
FROM topics t
WHERE t.session_id = ?
ORDER BY t.last_active_at DESC, t.kafka_offset DESC
"""
_MERGED_INTO = "SELECT topic_id, detail FROM topics WHERE session_id = ? AND NOT kept AND cause = 'merged'"
_INTO = "into "
"""How the event of a topic that merged into another begins its detail."""
_MESSAGES = """
SELECT t.turn, t.role, coalesce(t.content_exact, t.content::BLOB) AS content, t.timestamp
FROM topic_turns o JOIN turns t ON t.session_id = o.session_id AND t.turn = o.turn
WHERE o.session_id = ? AND t.session_id = ? AND list_contains(?::VARCHAR[], o.topic_id)
ORDER BY t.timestamp, t.turn
"""
_OPEN = 'SELECT "open" FROM profiles WHERE session_id = ?'


class ArchivedTopic(Struct, frozen=True, kw_only=True):
    """A topic as its last event left it."""

    topic_id: str
    title: str
    kept: bool
    active: bool
    cause: str
    """Of its last event."""
    detail: str
    messages: int
    at_hand: int
    packed: int
    released: int
    """Messages that are in the archive alone."""
    packed_bytes: int
    compactions: int
    access_count: int
    importance: float
    memory_type: str
    tags: list[str]
    summary: str | None
    created_at: datetime
    last_active_at: datetime
    changed_at: datetime

    @property
    def state(self) -> str:
        """`active`, `kept`, `evicted` or `merged`."""
        if self.kept:
            return "active" if self.active else "kept"
        return self.cause


class ArchivedMessage(Struct, frozen=True, kw_only=True):
    """One message of a topic."""

    turn: int
    role: Role
    content: str
    timestamp: datetime


def topics_of(lake: duckdb.DuckDBPyConnection, session_id: str) -> list[ArchivedTopic]:
    """Every topic that the session ever had, the latest active first."""
    return [ArchivedTopic(**row) for row in _rows(lake, _TOPICS, [session_id])]


def messages_of(lake: duckdb.DuckDBPyConnection, session_id: str, topic_id: str) -> list[ArchivedMessage]:
    """Every message of a topic and of those that merged into it, in order of time."""
    ids = _with_merged(lake, session_id, topic_id)
    return [
        ArchivedMessage(
            turn=row["turn"],
            role=Role(row["role"]),
            content=bytes(row["content"]).decode(),
            timestamp=row["timestamp"],
        )
        for row in _rows(lake, _MESSAGES, [session_id, session_id, ids])
    ]


def is_open(lake: duckdb.DuckDBPyConnection, session_id: str) -> bool | None:
    """Whether the session goes on, as its latest profile in the archive says; None: there is none."""
    row = lake.execute(_OPEN, [session_id]).fetchone()
    return None if row is None else bool(row[0])


def _with_merged(lake: duckdb.DuckDBPyConnection, session_id: str, topic_id: str) -> list[str]:
    into: dict[str, list[str]] = {}
    for gone, detail in lake.execute(_MERGED_INTO, [session_id]).fetchall():
        into.setdefault(detail.removeprefix(_INTO), []).append(gone)
    found = [topic_id]
    for each in found:
        found += [gone for gone in into.get(each, ()) if gone not in found]
    return found


def _rows(lake: duckdb.DuckDBPyConnection, sql: str, parameters: list[Any]) -> list[dict[str, Any]]:
    found = lake.execute(sql, parameters)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
