"""Answers that are events: every field of the event, but those that an answer leaves out, and what it adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec import NODEFAULT, Struct, defstruct
from msgspec.structs import FieldInfo, fields

_Form = TypeVar("_Form", bound=Struct)


def without(*names: str) -> Callable[[type[_Form]], type[_Form]]:
    """A form of answer that is an event (it derives from its class) but for fields that are not for its readers.

    >>> from models.events.user import FactChanged
    >>> @without("history")
    ... class Answer(FactChanged, frozen=True, kw_only=True, tag=False):
    ...     asked_for: str
    >>> [name for name in (*FactChanged.__struct_fields__, "asked_for") if name not in Answer.__struct_fields__]
    ['history']
    """

    def formed(form: type[_Form]) -> type[_Form]:
        kept = [_field(each) for each in fields(form) if each.name not in names]
        named = {"__doc__": form.__doc__}
        made: Any = defstruct(form.__name__, kept, namespace=named, module=form.__module__, frozen=True, kw_only=True)
        return cast("type[_Form]", made)

    return formed


def _field(of: FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    if of.required:
        return of.name, of.type
    if of.default is NODEFAULT:
        return of.name, of.type, of.default_factory()
    return of.name, of.type, of.default


def answered(form: type[_Form], found: object, **more: Any) -> _Form:
    """What was found in the form of an answer: fields by their names, and those that are said here."""
    given = {name: getattr(found, name) for name in form.__struct_fields__ if name not in more}
    return form(**given, **more)
