"""From the types of events to columns: DuckDB's type, polars' type, and how values become a whole column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import duckdb
import msgspec
import numpy as np
import polars as pl
from duckdb.sqltypes import DuckDBPyType
from msgspec import Struct, inspect

from models.events.fields import Meaning
from streams.archive.rows import EPOCH, MICROSECOND, Rows

TIME = pl.Datetime("us", "UTC")
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_DATES_US = ((_FIRST - EPOCH) // MICROSECOND, (_LAST - EPOCH) // MICROSECOND)
"""Years 1 to 9999: what lies beyond could be written and not read."""


class ColumnType(NamedTuple):
    """How a Python type is kept."""

    sql: str
    polars: Any
    build: Callable[[Sequence[Any]], pl.Series]
    """The column of some values."""


class Column(NamedTuple):
    """One column: how it is called and typed, how it is read from records, and what it means."""

    name: str
    type: ColumnType
    read: Callable[[Rows], Sequence[Any] | pl.Series]
    """The column's values of some rows, or the column."""
    meaning: Meaning

    def series(self, rows: Rows) -> pl.Series:
        """The column of these rows."""
        found = self.read(rows)
        return (found if isinstance(found, pl.Series) else self.type.build(found)).alias(self.name)


def plain(sql: str, polars: Any) -> ColumnType:
    """A type whose values polars takes as they are; an enum's members are text already."""
    return ColumnType(sql, polars, partial(pl.Series, "", dtype=polars))


def _times(values: Sequence[Any]) -> pl.Series:
    # polars takes 1 µs for an aware datetime, this takes 0.2.
    since = [None if value is None else (value - EPOCH) // MICROSECOND for value in values]
    column = pl.Series("", since, dtype=pl.Int64)
    if ((column < _DATES_US[0]) | (column > _DATES_US[1])).any():
        raise OverflowError("a time that has no year in UTC")
    return column.cast(TIME)


def _json(values: Sequence[Any]) -> pl.Series:
    encode = msgspec.json.Encoder().encode
    return pl.Series("", [None if value is None else encode(value).decode() for value in values], dtype=pl.String)


def _field_of(values: Sequence[Any], name: str, *, always: bool) -> list[Any]:
    """A field of each, null of those that do not have it."""
    return list(map(attrgetter(name), values)) if always else [getattr(value, name, None) for value in values]


def _structs(values: Sequence[Any], *, parts: dict[str, ColumnType]) -> pl.Series:
    """Field by field: a column of each, then all of them together."""
    missing = [value is None for value in values]
    always = not any(missing)
    fields = [part.build(_field_of(values, name, always=always)).alias(name) for name, part in parts.items()]
    packed = pl.DataFrame(fields).to_struct("")
    if always:
        return packed
    return pl.select(pl.when(pl.Series(missing)).then(None).otherwise(packed)).to_series()


def _lists(values: Sequence[Any], *, item: ColumnType) -> pl.Series:
    """All items as one column, then cut into the lists."""
    dtype = pl.List(item.polars)
    if not values:
        return pl.Series("", [], dtype=dtype)
    lengths = np.fromiter((len(value or ()) for value in values), np.int64, len(values))
    items = item.build(list(chain.from_iterable(value for value in values if value)))
    starts = pl.Series(np.cumsum(lengths) - lengths)
    cut = pl.lit(items.implode()).list.slice(pl.lit(starts), pl.lit(pl.Series(lengths)))
    missing = [value is None for value in values]
    if any(missing):
        cut = pl.when(pl.lit(pl.Series(missing))).then(None).otherwise(cut)
    made = pl.select(cut).to_series()
    return made if made.dtype == dtype else made.cast(dtype)


TEXT = plain("VARCHAR", pl.String)
UTC_TIME = ColumnType("TIMESTAMPTZ", TIME, _times)
DAY = plain("DATE", pl.Date)
_SCALARS: dict[type[inspect.Type], ColumnType] = {
    inspect.StrType: TEXT,
    inspect.LiteralType: TEXT,
    inspect.EnumType: TEXT,
    inspect.IntType: plain("BIGINT", pl.Int64),
    inspect.FloatType: plain("DOUBLE", pl.Float64),
    inspect.BoolType: plain("BOOLEAN", pl.Boolean),
    inspect.BytesType: plain("BLOB", pl.Binary),
    inspect.DateTimeType: UTC_TIME,
    inspect.DateType: DAY,
}
_JSON_TEXT = ColumnType("VARCHAR", pl.String, _json)


def list_of(item: ColumnType) -> ColumnType:
    """Lists of a type."""
    return ColumnType(f"{item.sql}[]", pl.List(item.polars), partial(_lists, item=item))


def type_of(kind: inspect.Type) -> ColumnType:
    """How a field of this type is kept; what has no columnar form is JSON text."""
    if isinstance(kind, inspect.Metadata):
        return type_of(kind.type)
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        return type_of(options[0]) if len(options) == 1 else _JSON_TEXT
    if isinstance(kind, inspect.ListType):
        item = type_of(kind.item_type)
        return _JSON_TEXT if item is _JSON_TEXT else list_of(item)
    if isinstance(kind, inspect.StructType):
        parts = {field.name: type_of(field.type) for field in kind.fields}
        sql = ", ".join(f'"{name}" {part.sql}' for name, part in parts.items())
        dtype = pl.Struct({name: part.polars for name, part in parts.items()})
        return ColumnType(f"STRUCT({sql})", dtype, partial(_structs, parts=parts))
    return _SCALARS.get(type(kind), _JSON_TEXT)


def field_column(name: str, field: inspect.Field, meaning: Meaning) -> Column:
    """The column of an event's field; null for events that do not have it."""
    kept = type_of(field.type)

    def read(rows: Rows) -> Sequence[Any] | pl.Series:
        have = [field.name in kind.__struct_fields__ for kind in rows.kinds]
        if not any(have):
            return pl.Series("", [], dtype=kept.polars).extend_constant(None, len(rows))
        return _field_of(rows.events, field.name, always=all(have))

    return Column(name, kept, read, meaning)


@cache
def fields_of(event: type[Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a kind of event."""
    kind = inspect.type_info(event)
    assert isinstance(kind, inspect.StructType)  # noqa: S101 - narrows msgspec's union of types
    return kind.fields


def type_of_column(con: duckdb.DuckDBPyConnection, kind: str) -> str:
    """The type as DuckDB spells it."""
    described: Any = con.execute(f"DESCRIBE SELECT NULL::{kind} AS x").fetchone()
    return str(described[1])


def grows(con: duckdb.DuckDBPyConnection, present: str, wanted: str) -> bool:
    """Whether a type is another one with further fields in its structs: old rows can have null there.

    >>> with duckdb.connect() as con:
    ...     grows(con, "STRUCT(a INTEGER)[]", "STRUCT(a INTEGER, b VARCHAR)[]"), grows(con, "INTEGER", "BIGINT")
    (True, False)
    """
    return _contains(con.type(wanted), con.type(present))


def _contains(wanted: DuckDBPyType, present: DuckDBPyType) -> bool:
    if wanted.id != present.id or wanted.id not in {"struct", "list"}:
        return wanted == present
    fields = dict(_named(wanted))
    return all(name in fields and _contains(fields[name], kind) for name, kind in _named(present))


def _named(nested: DuckDBPyType) -> list[tuple[str, Any]]:
    """The types in a struct or list, by name."""
    return nested.children
