"""Rules of a request's fields that need or exclude each other, for its schema in the contract.

    class Erase(Struct):
        rules: ClassVar[Rules] = {**some_of(given("user_id"), given("app_id")), **never(given("user_id", "session_id"))}

The route checks the same, and says in its refusal what to do. Null counts as left out. `examples` among the rules are
the struct's, where its fields' own do not fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
