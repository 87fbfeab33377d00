"""The archive read back: as the log it was, for a replay of what the broker no longer has, and changes of alerts.

What the archive does not keep of a record cannot change its fold: the way its JSON was written, and records that were
never usable. U+0000 outside a turn's content comes back as U+2400 (see `streams.archive.landed`).
"""

# ruff: noqa: S608 - tables are constants of this package

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import duckdb
import msgspec
from aiokafka.structs import ConsumerRecord

from models.events import AlertChanged, Control, InputEvent, Turn
from models.wire.codec import encode
from models.wire.envelope import tag_of
from streams.archive.schema import RAW, TABLE_OF, TABLES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS = 5_000
_CONTROLS: dict[str, type[Control]] = {
    tag_of(kind): kind for kind in TABLES["controls"].carries if issubclass(kind, Control)
}
_Row = dict[str, Any]


def archived_inputs(
    lake: duckdb.DuckDBPyConnection, topic: str, *, only: int | None = None, before: int | None = None
) -> Iterator[ConsumerRecord]:
    """Every archived record of `turns.v1`, by partition and offset, as of one moment.

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
        controls = list(_rows(lake, "controls", places))
        for row in heapq.merge(controls, _rows(lake, "turns", places), key=lambda row: row["place"]):
            yield _record(row, topic)
    finally:
        lake.execute("ROLLBACK")


def archived_count(lake: duckdb.DuckDBPyConnection, *, only: int | None = None, before: int | None = None) -> int:
    """How many records `archived_inputs` yields."""
    places = _places(only, before)
    counted = lake.execute(
        f"SELECT (SELECT count(*) FROM {RAW}.turns WHERE {places}) "
        f"+ (SELECT count(*) FROM {RAW}.controls WHERE {places})"
    )
    (count,) = counted.fetchone() or (0,)
    return int(count)


def _places(only: int | None, before: int | None) -> str:
    """Which rows, as a condition."""
    wanted = [] if only is None else [f"kafka_partition = {only:d}"]
    return " AND ".join([*wanted, *([] if before is None else [f"kafka_offset < {before:d}"])]) or "true"


def _rows(lake: duckdb.DuckDBPyConnection, table: str, places: str) -> Iterator[_Row]:
    found = lake.execute(
        f"SELECT * REPLACE (epoch_us(timestamp) AS timestamp, epoch_us(appended_at) AS appended_at) "
        f"FROM {RAW}.{table} WHERE {places} ORDER BY kafka_partition, kafka_offset"
    )
    names = [column[0] for column in found.description or ()]
    while rows := found.fetchmany(_ROWS):
        for values in rows:
            row = dict(zip(names, values, strict=True))
            yield {**row, "place": (row["kafka_partition"], row["kafka_offset"])}


def _record(row: _Row, topic: str) -> ConsumerRecord:
    event = _event(row)
    key, value = event.session_id.encode(), encode(event)
    return ConsumerRecord(
        topic=topic,
        partition=row["kafka_partition"],
        offset=row["kafka_offset"],
        timestamp=row["appended_at"] // 1000,
        timestamp_type=1,
        key=key,
        value=value,
        checksum=None,
        serialized_key_size=len(key),
        serialized_value_size=len(value),
        headers=(),
    )


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
    found = lake.execute(
        f"SELECT * REPLACE (epoch_us(timestamp) AS timestamp, epoch_us(fired_at) AS fired_at) FROM {table} "
        f"WHERE session_id IN (SELECT session_id FROM {table} WHERE alert_id = ?) "
        "ORDER BY kafka_partition, kafka_offset",
        [alert_id],
    )
    names = [column[0] for column in found.description or ()]
    return [_change(dict(zip(names, values, strict=True))) for values in found.fetchall()]


def _change(row: dict[str, Any]) -> AlertChanged:
    fields = {name: row[name] for name in AlertChanged.__struct_fields__}
    for name in ("timestamp", "fired_at"):
        fields[name] = _EPOCH + timedelta(microseconds=row[name])
    return msgspec.convert({**_without_null(fields), "type": "alert_changed"}, AlertChanged)


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(item) for name, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value
