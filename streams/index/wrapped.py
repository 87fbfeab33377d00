"""A vector store over another, which changes names of collections or narrows what is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.retrieval.lexical import SparseVector
from streams.ports import Condition, PayloadValue, Point, SearchHit, StoredPoint, VectorStore

Where = Mapping[str, Condition]


class WrappedStore:
    """A `streams.ports.VectorStore` that asks another one; `name` and `scoped` say what of a question is changed.

    Args:
        store: The one that is asked; closed with this one.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def name(self, collection: str) -> str:
        """What the store calls a collection."""
        return collection

    def scoped(self, where: Where) -> Where | None:
        """Conditions of a reading; None: nothing may be read."""
        return where

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return."""
        await self._store.upsert(self.name(collection), points)

    async def search(
        self,
        collection: str,
        vector: NDArray[np.float32],
        *,
        where: Where,
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Nearest by cosine among the points that match every entry of `where`."""
        scoped, name = self.scoped(where), self.name(collection)
        return (
            [] if scoped is None else await self._store.search(name, vector, where=scoped, top_k=top_k, fields=fields)
        )

    async def search_lexical(
        self,
        collection: str,
        query: SparseVector,
        *,
        where: Where,
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Best by BM25 among the points that match every entry of `where` and have a term of the query."""
        scoped, name = self.scoped(where), self.name(collection)
        if scoped is None:
            return []
        return await self._store.search_lexical(name, query, where=scoped, top_k=top_k, fields=fields)

    async def read(self, collection: str, keys: Sequence[str], *, where: Where) -> dict[str, dict[str, PayloadValue]]:
        """Payloads by key; keys of points that are not there, or do not match `where`, are missing."""
        scoped = self.scoped(where)
        return {} if scoped is None else await self._store.read(self.name(collection), keys, where=scoped)

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""
        scoped, name = self.scoped(where), self.name(collection)
        return [] if scoped is None else await self._store.latest(name, where=scoped, by=by, limit=limit)

    async def count(self, collection: str, *, where: Where | None = None) -> int:
        """Exact number of matching points."""
        scoped = self.scoped(where or {})
        return 0 if scoped is None else await self._store.count(self.name(collection), where=scoped or None)

    async def delete(self, collection: str, *, where: Where, below: tuple[str, int] | None = None) -> None:
        """Delete what matches `where` and, if given, whose integer field `below[0]` is less than `below[1]`."""
        await self._store.delete(self.name(collection), where=where, below=below)

    async def collections(self) -> list[str]:
        """Names of all that were written, in order."""
        return await self._store.collections()

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        return await self._store.page(self.name(collection), after, limit)

    async def forget(self, collection: str) -> None:
        """Give up the bytes of what was deleted or replaced."""
        await self._store.forget(self.name(collection))

    async def close(self) -> None:
        """Flush and release."""
        await self._store.close()
