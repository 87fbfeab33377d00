"""Events of any kind of which a test says only what it is about."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct, inspect

BLANK_AT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
_Event = TypeVar("_Event", bound=Struct)
_EMPTY: dict[type[inspect.Type], Callable[[], Any]] = {
    inspect.StrType: str,
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.BoolType: bool,
    inspect.ListType: list,
    inspect.DictType: dict,
    inspect.NoneType: lambda: None,
    inspect.DateTimeType: lambda: BLANK_AT,
}


def blank(kind: type[_Event], /, **told: Any) -> _Event:
    """An event that says what is told; every other field has its default, nothing, or one of its choices."""
    needed = _needed(kind).items()
    return kind(**{name: _empty(each) for name, each in needed if name not in told}, **told)


@cache
def _needed(kind: type[Struct]) -> dict[str, inspect.Type]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {each.name: each.type for each in info.fields if each.required}


def _empty(kind: inspect.Type) -> Any:
    match kind:
        case inspect.Metadata():
            return _empty(kind.type)
        case inspect.UnionType():
            return None if kind.includes_none else _empty(kind.types[0])
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.EnumType():
            return next(iter(kind.cls))
        case inspect.StructType():
            return blank(kind.cls)
    return _EMPTY[type(kind)]()
