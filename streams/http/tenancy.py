"""The tenants' border below every route: a store that gives a request nothing but its caller's apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.retrieval.lexical import SparseVector
from streams.http.security import asking
from streams.ports import Condition, Hit, PayloadValue, Point, Stored, VectorStore

_APP = "app_id"


class ScopedStore:
    """A `streams.ports.VectorStore` that adds the caller's apps to the conditions of every read.

    Memories that serve requests are made over this, so that no route, no tool and no later one can forget it. Outside
    of a request, where the role itself reads and writes, it adds nothing.

    Args:
        store: The one that is read.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def ensure(self, collection: str, dim: int) -> None:
        """As the store does."""
        await self._store.ensure(collection, dim)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As the store does."""
        await self._store.upsert(collection, points)

    async def search(
        self,
        collection: str,
        vector: NDArray[np.float32],
        *,
        where: Mapping[str, Condition],
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[Hit]:
        """Nearest among the matching points that the caller may read."""
        scoped = _scoped(where)
        if scoped is None:
            return []
        return await self._store.search(collection, vector, where=scoped, top_k=top_k, fields=fields)

    async def search_lexical(
        self,
        collection: str,
        query: SparseVector,
        *,
        where: Mapping[str, Condition],
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[Hit]:
        """Best by BM25 among the matching points that the caller may read."""
        scoped = _scoped(where)
        if scoped is None:
            return []
        return await self._store.search_lexical(collection, query, where=scoped, top_k=top_k, fields=fields)

    async def read(
        self, collection: str, keys: Sequence[str], *, where: Mapping[str, Condition]
    ) -> dict[str, dict[str, PayloadValue]]:
        """Payloads of the matching points that the caller may read, by key."""
        scoped = _scoped(where)
        return {} if scoped is None else await self._store.read(collection, keys, where=scoped)

    async def latest(
        self, collection: str, *, where: Mapping[str, Condition], by: str, limit: int
    ) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points that the caller may read."""
        scoped = _scoped(where)
        return [] if scoped is None else await self._store.latest(collection, where=scoped, by=by, limit=limit)

    async def count(self, collection: str, *, where: Mapping[str, Condition] | None = None) -> int:
        """Exact number of matching points that the caller may read."""
        scoped = _scoped(where or {})
        return 0 if scoped is None else await self._store.count(collection, where=scoped or None)

    async def delete(
        self, collection: str, *, where: Mapping[str, Condition], below: tuple[str, int] | None = None
    ) -> None:
        """As the store does."""
        await self._store.delete(collection, where=where, below=below)

    async def collections(self) -> list[str]:
        """As the store does."""
        return await self._store.collections()

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[Stored], str]:
        """Those of the store's page that the caller may read."""
        stored, following = await self._store.page(collection, after, limit)
        return [each for each in stored if _scoped({_APP: str(each.payload.get(_APP, ""))}) is not None], following

    async def forget(self, collection: str) -> None:
        """As the store does."""
        await self._store.forget(collection)

    async def close(self) -> None:
        """As the store does."""
        await self._store.close()


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
