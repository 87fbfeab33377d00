"""From the types of events to columns: DuckDB's type, polars' type, and how a value gets there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import polars as pl
from msgspec import Struct, inspect

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
TIME = pl.Datetime("us", "UTC")


class Landed(Struct, frozen=True, gc=False):
    """One record as the archive keeps it."""

    event: Struct
    partition: int
    offset: int
    appended_at: datetime
    size_bytes: int
    extra: str | None = None
    """JSON of the fields that the schema does not name."""
    content_exact: bytes | None = None
    """UTF-8 of a turn's content, only where the column `content` had to differ (U+0000)."""


class ColumnType(NamedTuple):
    """How a Python type is kept."""

    sql: str
    polars: Any
    convert: Callable[[Any], Any] | None = None


class Column(NamedTuple):
    """One column: how it is called and typed, and how its value is read from a record."""

    name: str
    type: ColumnType
    values: Callable[[Sequence[Landed]], list[Any]]

    def series(self, rows: Sequence[Landed]) -> pl.Series:
        """The column of these rows."""
        values, convert = self.values(rows), self.type.convert
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        series = pl.Series(self.name, values, dtype=pl.Int64 if self.type.polars == TIME else self.type.polars)
        return series.cast(TIME) if self.type.polars == TIME else series


def _microseconds(time: datetime) -> int:
    # polars takes 3 µs for an aware datetime, this takes 0.8.
    return (time - _EPOCH) // _MICROSECOND


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=(datetime, bytes))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _enum_value(value: Any) -> Any:
    return value.value


TEXT = ColumnType("VARCHAR", pl.String)
UTC_TIME = ColumnType("TIMESTAMPTZ", TIME, _microseconds)
_SCALARS: dict[type[inspect.Type], ColumnType] = {
    inspect.StrType: TEXT,
    inspect.LiteralType: TEXT,
    inspect.EnumType: ColumnType("VARCHAR", pl.String, _enum_value),
    inspect.IntType: ColumnType("BIGINT", pl.Int64),
    inspect.FloatType: ColumnType("DOUBLE", pl.Float64),
    inspect.BoolType: ColumnType("BOOLEAN", pl.Boolean),
    inspect.BytesType: ColumnType("BLOB", pl.Binary),
    inspect.DateTimeType: UTC_TIME,
}
_JSON_TEXT = ColumnType("VARCHAR", pl.String, _json)


def type_of(kind: inspect.Type) -> ColumnType:
    """How a field of this type is kept; what has no columnar form is JSON text."""
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        return type_of(options[0]) if len(options) == 1 else _JSON_TEXT
    if isinstance(kind, inspect.ListType):
        item = type_of(kind.item_type)
        return _JSON_TEXT if item is _JSON_TEXT else ColumnType(f"{item.sql}[]", pl.List(item.polars), _plain)
    if isinstance(kind, inspect.StructType):
        parts = {field.name: type_of(field.type) for field in kind.fields}
        sql = ", ".join(f'"{name}" {part.sql}' for name, part in parts.items())
        return ColumnType(f"STRUCT({sql})", pl.Struct({name: part.polars for name, part in parts.items()}), _plain)
    return _SCALARS.get(type(kind), _JSON_TEXT)


def field_column(name: str, field: inspect.Field) -> Column:
    """The column of an event's field; null for events that do not have it."""

    def values(rows: Sequence[Landed]) -> list[Any]:
        return [getattr(row.event, field.name, None) for row in rows]

    return Column(name, type_of(field.type), values)


def record_column(name: str, sql: str, polars: Any, read: Callable[[Landed], Any]) -> Column:
    """A column of what is known of the record."""
    return Column(name, ColumnType(sql, polars), lambda rows: [read(row) for row in rows])


def fields_of(event: type[Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a kind of event."""
    kind = inspect.type_info(event)
    assert isinstance(kind, inspect.StructType)  # noqa: S101 - narrows msgspec's union of types
    return kind.fields
