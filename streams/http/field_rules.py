"""Rules of a request's fields that need or exclude each other, for its schema in the contract.

    class Erase(Struct):
        rules: ClassVar[Rules] = {**some_of(given("user_id"), given("app_id")), **never(given("user_id", "session_id"))}

The route checks the same, and says in its refusal what to do. Null counts as left out. `examples` among the rules are
the struct's, where its fields' own do not fit together.

Ids that the fold would refuse in an event are refused here with 422, before they are written or looked up.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct, inspect

from models.events.fields import PRINTABLE
from streams.http.problems import invalid_field

RULES: Final = "rules"
"""Name of the class variable."""
Rules = Mapping[str, Any]
"""Part of a JSON Schema."""
_NOT_NULL: Rules = {"not": {"type": "null"}}


def given(*names: str, **values: Any) -> Rules:
    """All of the fields are given, and these have these values.

    >>> given("user_id")
    {'required': ['user_id'], 'properties': {'user_id': {'not': {'type': 'null'}}}}
    >>> given(kind="episodes")
    {'required': ['kind'], 'properties': {'kind': {'const': 'episodes'}}}
    """
    fields = dict.fromkeys(names, _NOT_NULL) | {name: {"const": value} for name, value in values.items()}
    return {"required": list(fields), "properties": fields}


def some_of(*rules: Rules) -> Rules:
    """At least one of the rules holds."""
    return {"anyOf": list(rules)}


def never(rule: Rules) -> Rules:
    """The rule does not hold."""
    return {"not": rule}


_Path = tuple[tuple[str, str], ...]


def require_printable_ids(asked: Struct) -> None:
    """Let through a request whose ids can stand in an event.

    Args:
        asked: Parameters or a body; ids are the texts annotated with `models.events.fields.printable`, at any depth.

    Raises:
        Problem: 422, with the field; an id holds control or other invisible characters.
    """
    for path in _paths(type(asked)):
        if not all(each.isprintable() for each in _at(asked, path)):
            raise invalid_field(".".join(shown for _, shown in path), "contains control characters")


@cache
def _paths(kind: type[Struct]) -> tuple[_Path, ...]:
    """Ways from field to field that lead to ids, each step by its name and as requests have it."""
    return tuple(dict.fromkeys(_ways(inspect.type_info(kind))))


def _ways(info: inspect.Type) -> Iterator[_Path]:
    match info:
        case inspect.Metadata():
            if (info.extra_json_schema or {}).get("pattern") == PRINTABLE:
                yield ()
            else:
                yield from _ways(info.type)
        case inspect.UnionType():
            for each in info.types:
                yield from _ways(each)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _ways(info.item_type)
        case inspect.StructType():
            for field in info.fields:
                yield from (((field.name, field.encode_name), *way) for way in _ways(field.type))


def _at(value: Any, path: _Path) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _at(each, path)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield from _at(getattr(value, path[0][0]), path[1:])
