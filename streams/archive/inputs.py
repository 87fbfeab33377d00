"""The archive read back as the log it was: for a replay of what the broker no longer has.

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

from models.events import Control, InputEvent, Turn
from models.wire.codec import encode
from models.wire.envelope import tag_of
from streams.archive.schema import RAW, TABLES

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
