"""Listings that the registry describes: routes for events of the index, asked for by whose they are, latest first.

A kind of entity whose events say how they are listed (`models.events.registry.Listed`) needs no route of its own; the
tools of assistants (`streams.api.mcp.tools`) and the clients of the command line read the same declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct, defstruct, structs

from models.entities import REGISTRY
from models.events.fields import NAMED
from models.events.registry import Emits, Listed
from streams.api.users.messages import MAX_TOP_K, AppId
from streams.http.route import Group, path_names
from streams.http.security import caller
from streams.index.collections import OF_EVENTS
from streams.ports import Condition, VectorStore

_LISTED = Group("listed", "What else is remembered, by whose it is.", prefix="/v1")
_Limit = Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="Maximum number of items.")]


class Listing(Protocol):
    """A class that declares one route, named as its operation.

    Attributes:
        emits: What is listed.
        takes: What is asked.
    """

    emits: Emits
    takes: type[Struct]


def _listing(emits: Emits, listed: Listed) -> type[Listing]:
    event, points = emits.event, OF_EVENTS[emits.event]
    types = {each.name: each.type for each in structs.fields(event)}
    whose = path_names(listed.path)
    named = "".join(map(str.capitalize, listed.operation.split("_")))
    fields: list[tuple[str, Any]] = [(name, Annotated[types[name], NAMED]) for name in whose]
    more: list[tuple[str, Any, Any]] = [("app_id", AppId | None, None), ("limit", _Limit, 20)]
    takes = defstruct(
        f"{named}Arguments", [*fields, *more], namespace={"__doc__": listed.about}, frozen=True, kw_only=True
    )

    async def answer(self: Any, asked: Any) -> Any:
        asked_by = caller()
        where: dict[str, Condition] = {name: getattr(asked, name) for name in whose}
        if (app_id := asked_by.app_of(asked.app_id)) is not None:
            where["app_id"] = app_id
        found = await points.latest(self.store, where, asked.limit)
        return [each for each in found if asked_by.may_read(each.app_id)]

    def begin(self: Any, store: VectorStore) -> None:
        self.store = store

    answer.__name__, answer.__doc__ = listed.operation, listed.about
    answer.__annotations__ = {"asked": takes, "return": list[event]}  # type: ignore[valid-type] # which, is known here
    declared = _LISTED.get(listed.path, listed.operation, audits="text_read")(answer)
    return type(named, (), {"__init__": begin, "emits": emits, "takes": takes, listed.operation: declared})


def _listings() -> Iterator[type[Listing]]:
    for emits in REGISTRY.emits.values():
        if emits.index is not None and emits.index.listed is not None:
            yield _listing(emits, emits.index.listed)


LISTINGS: tuple[type[Any], ...] = tuple(_listings())
"""One class for each event that is listed, made over a store that gives a caller what it may read."""
