"""Changes of alerts as the archive has them, as the events that they were."""

# ruff: noqa: S608 - tables are constants of this package, values travel as parameters

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import msgspec

from models.events import AlertChanged
from streams.archive.schema import RAW, TABLE_OF

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    return [_event(dict(zip(names, values, strict=True))) for values in found.fetchall()]


def _event(row: dict[str, Any]) -> AlertChanged:
    fields = {name: row[name] for name in AlertChanged.__struct_fields__}
    for name in ("timestamp", "fired_at"):
        fields[name] = _EPOCH + timedelta(microseconds=row[name])
    return msgspec.convert({**_without_null(fields), "type": "alert_changed"}, AlertChanged)


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(item) for name, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value
