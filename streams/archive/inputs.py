"""The archive read back: as the log it was, for a replay of what the broker no longer has; changes of alerts; topics.

What the archive does not keep of a record cannot change its fold: the way its JSON was written, and records that were
never usable. U+0000 outside a turn's content comes back as U+2400 (see `streams.archive.landed`).
"""

# ruff: noqa: S608 - tables are constants of this package

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import duckdb
import msgspec
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.events import AlertChanged, Control, InputEvent, Role, SessionName, Turn
from models.wire.envelope import tag_of
from streams.archive.rows import ERASED, opened_value
from streams.archive.schema import QUERIES, RAW, TABLE_OF, TABLES
from streams.archive.views.definitions import ONCE
from streams.kafka.records import record_of_input

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS = 5_000
_CONTROLS: dict[str, type[Control]] = {
    tag_of(kind): kind for kind in TABLES["controls"].carries if issubclass(kind, Control)
}
_TURNS = ONCE["turns"].rows({})
_Row = dict[str, Any]


def archived_inputs(
    lake: duckdb.DuckDBPyConnection, topic: str, *, only: int | None = None, before: int | None = None
) -> Iterator[ConsumerRecord]:
    """Every archived record of `turns.v1`, by partition and offset, as of one moment; all turns with their numbers.

    Args:
        lake: A reader of the archive.
        topic: Full name that the records carry: ids are made of it.
        only: Of this partition alone.
        before: Only records below this offset.
    """
    places = _places(only, before)
    lake.execute("BEGIN")
    try:
        # Few beside the turns: they are read at once, for a connection streams one result at a time.
        controls = list(_placed(lake, f"{RAW}.controls", places))
        for row in heapq.merge(controls, _placed(lake, _TURNS, places), key=lambda row: row["place"]):
            yield _record(row, topic)
    finally:
        lake.execute("ROLLBACK")


def archived_count(lake: duckdb.DuckDBPyConnection, *, only: int | None = None, before: int | None = None) -> int:
    """How many records `archived_inputs` yields."""
    places = _places(only, before)
    counted = lake.execute(
        f"SELECT (SELECT count(*) FROM {_TURNS} WHERE {places}) + (SELECT count(*) FROM {RAW}.controls WHERE {places})"
    )
    (count,) = counted.fetchone() or (0,)
    return int(count)


def _places(only: int | None, before: int | None) -> str:
    """Which rows, as a condition."""
    wanted = [] if only is None else [f"kafka_partition = {only:d}"]
    return " AND ".join([*wanted, *([] if before is None else [f"kafka_offset < {before:d}"])]) or "true"


def _placed(lake: duckdb.DuckDBPyConnection, rows: str, places: str) -> Iterator[_Row]:
    sql = (
        f"SELECT * REPLACE (epoch_us(timestamp) AS timestamp, epoch_us(appended_at) AS appended_at) "
        f"FROM {rows} WHERE {places} ORDER BY kafka_partition, kafka_offset"
    )
    return ({**row, "place": (row["kafka_partition"], row["kafka_offset"])} for row in rows_of(lake, sql))


def rows_of(lake: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> Iterator[_Row]:
    """What is found, as it was written; turns whose key was erased are left out."""
    found = lake.execute(sql, parameters)
    names = [column[0] for column in found.description or ()]
    while rows := found.fetchmany(_ROWS):
        opened = (dict(zip(names, opened_value(values), strict=True)) for values in rows)
        yield from (row for row in opened if row.get("content") not in (ERASED, ERASED.encode()))


def _record(row: _Row, topic: str) -> ConsumerRecord:
    place = {"partition": row["kafka_partition"], "offset": row["kafka_offset"], "at_ms": row["appended_at"] // 1000}
    return record_of_input(_event(row), topic, **place)


def _event(row: _Row) -> InputEvent:
    kind = _CONTROLS.get(row.get("type", ""), Turn)
    fields = {name: row[name] for name in kind.__struct_fields__ if row.get(name) is not None}
    fields["timestamp"] = _EPOCH + timedelta(microseconds=row["timestamp"])
    if kind is Turn:
        if row["content_exact"] is not None:
            fields["content"] = row["content_exact"].decode()
        if row["metadata"] is not None:
            fields["metadata"] = msgspec.json.decode(row["metadata"])
    else:
        fields["type"] = row["type"]
    return cast("InputEvent", msgspec.convert(fields, kind))


def archived_changes(lake: duckdb.DuckDBPyConnection, alert_id: str) -> list[AlertChanged]:
    """Every change of every alert of the session that this alert belongs to, in log order; none if it is not known.

    What stands in the log twice after a crash stands here twice. Fields that an older release did not have keep
    their defaults.
    """
    table = f"{RAW}.{TABLE_OF[AlertChanged].name}"
    sql = (
        f"SELECT * REPLACE (epoch_us(timestamp) AS timestamp, epoch_us(fired_at) AS fired_at) FROM {table} "
        f"WHERE (app_id, session_id) IN (SELECT app_id, session_id FROM {table} WHERE alert_id = ?) "
        "ORDER BY kafka_partition, kafka_offset"
    )
    return [_change(row) for row in rows_of(lake, sql, [alert_id])]


def _change(row: _Row) -> AlertChanged:
    fields = {name: row[name] for name in AlertChanged.__struct_fields__}
    fields |= {name: _EPOCH + timedelta(microseconds=row[name]) for name in ("timestamp", "fired_at")}
    return msgspec.convert({**_without_null(fields), "type": "alert_changed"}, AlertChanged)


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(item) for name, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value


_INTO = "into "
"""How the event of a topic that merged into another begins its detail."""


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


def apps_of(lake: duckdb.DuckDBPyConnection, session_id: str) -> list[str]:
    """Apps that have a session of this id."""
    return [app for (app,) in lake.execute(QUERIES["apps"], [session_id]).fetchall()]


def topics_of(lake: duckdb.DuckDBPyConnection, session: SessionName) -> list[ArchivedTopic]:
    """Every topic that the session ever had, the latest active first."""
    return [ArchivedTopic(**row) for row in rows_of(lake, QUERIES["topics"], session)]


def messages_of(lake: duckdb.DuckDBPyConnection, session: SessionName, topic_id: str) -> list[ArchivedMessage]:
    """Every message of a topic and of those that merged into it, in order of time."""
    ids = _with_merged(lake, session, topic_id)
    return [
        ArchivedMessage(**{**row, "role": Role(row["role"]), "content": bytes(row["content"]).decode()})
        for row in rows_of(lake, QUERIES["messages"], [*session, *session, ids])
    ]


def is_open(lake: duckdb.DuckDBPyConnection, session: SessionName) -> bool | None:
    """Whether the session goes on, as its latest profile in the archive says; None: there is none."""
    row = lake.execute(QUERIES["open"], session).fetchone()
    return None if row is None else bool(row[0])


def stands_on(lake: duckdb.DuckDBPyConnection, session: SessionName) -> int | None:
    """Partition of `turns.v1` where the session's last turn stands; None: the archive has none."""
    row = lake.execute(QUERIES["partition"], session).fetchone()
    return None if row is None else int(row[0])


def _with_merged(lake: duckdb.DuckDBPyConnection, session: SessionName, topic_id: str) -> list[str]:
    into: dict[str, list[str]] = {}
    for gone, detail in lake.execute(QUERIES["merged_into"], session).fetchall():
        into.setdefault(detail.removeprefix(_INTO), []).append(gone)
    found = [topic_id]
    for each in found:
        found += [gone for gone in into.get(each, ()) if gone not in found]
    return found
