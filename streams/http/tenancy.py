"""The tenants' border below every route: a store that gives a request nothing but its caller's apps."""

from __future__ import annotations

from collections.abc import Mapping

from streams.http.security import asking
from streams.index.wrapped import WrappedStore
from streams.ports import Condition, Stored

_APP = "app_id"


class ScopedStore(WrappedStore):
    """A `streams.ports.VectorStore` that adds the caller's apps to the conditions of every read.

    Memories that serve requests are made over this, so that no route, no tool and no later one can forget it. Outside
    of a request, where the role itself reads and writes, it adds nothing.

    Args:
        store: The one that is read.
    """

    def scoped(self, where: Mapping[str, Condition]) -> Mapping[str, Condition] | None:
        """The conditions with the caller's apps; None if they ask for another app."""
        return _scoped(where)

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[Stored], str]:
        """Those of the store's page that the caller may read."""
        stored, following = await super().page(collection, after, limit)
        return [each for each in stored if reads(str(each.payload.get(_APP, "")))], following


def reads(app_id: str) -> bool:
    """Whether the caller, if there is one, may read an app."""
    return _scoped({_APP: app_id}) is not None


def _scoped(where: Mapping[str, Condition]) -> Mapping[str, Condition] | None:
    """The conditions with the caller's apps; None if they ask for another app."""
    caller = asking()
    if caller is None or caller.apps is None:
        return where
    if _APP not in where:
        apps = tuple(sorted(caller.apps))
        return {**where, _APP: apps[0] if len(apps) == 1 else apps}
    wanted = where[_APP]
    named = wanted if isinstance(wanted, tuple) else (wanted,)
    return where if caller.apps.issuperset(named) else None
