"""Examples in the contract, made of the types: one small conversation, whichever struct it is told in.

A field gives its own by `Meta(examples=[…])`, a struct by its rules (`streams.http.field_rules`); else the name of a
field says what stands there, else its type.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

from msgspec import inspect

from streams.http.field_rules import RULES
from streams.http.pages import source

_SAID, _LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:19:00Z"
_EARLY = ("started_at", "created_at", "valid_from", "recorded_at", "said_at", "requested_at", "date_from", "born")
_ITEM = "mjuohs00-9c1d22ab"
_VALUES = tomllib.loads(source("streams/http/examples.toml"))["values"]
_NAMED = {name: value for value, names in _VALUES for name in names.split()}
"""Values by the names of fields; of a list those of its items."""
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def example_of(kind: Any, name: str = "") -> Any:
    """An example of a type as it stands in JSON.

    Args:
        kind: Any that msgspec knows.
        name: Of the field that holds it.

    >>> example_of(int, "turn"), example_of(list[str], "keyTopics")
    (20, ['databases'])
    """
    return _example(_info(kind), name)


@cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _example(info: inspect.Type, name: str) -> Any:
    match info:
        case inspect.Metadata():
            given = (info.extra_json_schema or {}).get("examples", [])
            return given[0] if given else _example(info.type, name)
        case inspect.StructType() | inspect.DataclassType():
            told = getattr(info.cls, RULES, {}).get("examples")
            tag = {info.tag_field: info.tag} if isinstance(info, inspect.StructType) and info.tag_field else {}
            made = {each.encode_name: _example(each.type, each.encode_name) for each in info.fields}
            return told[0] if told else tag | made
        case inspect.UnionType():
            return _example(next(each for each in info.types if not isinstance(each, inspect.NoneType)), name)
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
            return [_example(info.item_type, name)]
        case inspect.DictType():
            return {_example(info.key_type, "key"): _example(info.value_type, "")}
    return _single(info, _WORD.sub("_", name).lower())


def _single(info: inspect.Type, word: str) -> Any:
    named = _NAMED.get(word)
    match info:
        case inspect.EnumType() | inspect.LiteralType():
            values = [each.value for each in info.cls] if isinstance(info, inspect.EnumType) else info.values
            return named if named in values else values[0]
        case inspect.DateTimeType():
            return _SAID if word in _EARLY else _LATER
        case inspect.IntType() | inspect.FloatType():
            wanted = (
                named
                if isinstance(named, int | float) and not isinstance(named, bool)
                else 1
                if isinstance(info, inspect.IntType)
                else 0.5
            )
            least = wanted if info.ge is None else max(wanted, info.ge)
            return least if info.le is None else min(least, info.le)
        case inspect.StrType():
            likely = (named, _ITEM if word.endswith("id") else "…", _ITEM, "depends_on")
            return next(each for each in likely if isinstance(each, str) and re.search(info.pattern or "", each))
    return named is True if isinstance(info, inspect.BoolType) else None
