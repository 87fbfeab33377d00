"""Columns built at once hold what each value alone would be, for every field of every event that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
import pytest
from msgspec import inspect

from streams.archive.columns import fields_of, type_of
from streams.archive.schema import TABLES

KINDS = sorted({kind for table in TABLES.values() for kind in table.carries}, key=lambda kind: kind.__name__)
START = datetime(2026, 3, 4, tzinfo=UTC)


SCALARS: dict[type[inspect.Type], Callable[[random.Random], Any]] = {
    inspect.NoneType: lambda _: None,
    inspect.BoolType: lambda chance: chance.random() < 0.5,
    inspect.IntType: lambda chance: chance.randrange(2**53),
    inspect.FloatType: lambda chance: chance.random(),
    inspect.BytesType: lambda chance: chance.randbytes(3),
    inspect.DateTimeType: lambda chance: START + timedelta(microseconds=chance.randrange(10**15)),
    inspect.StrType: lambda chance: chance.choice(["", "a", "é𝄞"]),
}


def drawn(kind: inspect.Type, chance: random.Random) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Some value of a type."""
    match kind:
        case inspect.Metadata():
            return drawn(kind.type, chance)
        case inspect.UnionType():
            return drawn(chance.choice(kind.types), chance)
        case inspect.ListType():
            return [drawn(kind.item_type, chance) for _ in range(chance.randrange(4))]
        case inspect.StructType():
            return kind.cls(**{field.name: drawn(field.type, chance) for field in kind.fields})
        case inspect.EnumType():
            return chance.choice(list(kind.cls))
        case inspect.LiteralType():
            return chance.choice(kind.values)
        case inspect.DictType():
            return {f"k{n}": drawn(kind.value_type, chance) for n in range(chance.randrange(3))}
        case inspect.TupleType():
            return tuple(drawn(item, chance) for item in kind.item_types)
    return SCALARS[type(kind)](chance)


def plain(value: Any, kind: inspect.Type) -> Any:
    """What stands in the archive for a value: the slow way, one at a time."""
    dtype = type_of(kind).polars
    if value is None:
        return None
    if dtype == pl.String and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return msgspec.to_builtins(value, builtin_types=(datetime, bytes))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_columns_hold_what_each_value_is(kind: type[msgspec.Struct]) -> None:
    """Nothing is shifted, cut or turned into null, also where lists are empty and structs are missing."""
    chance = random.Random(kind.__name__)
    for field in fields_of(kind):
        values = [drawn(field.type, chance) for _ in range(40)]
        column = type_of(field.type)
        expected = pl.Series("", [plain(value, field.type) for value in values], dtype=column.polars)
        actual = column.build(values)

        assert expected.dtype == actual.dtype, field.name
        assert expected.equals(actual, null_equal=True), field.name
        assert column.build([]).dtype == actual.dtype, field.name
