"""Generations of the collections: the same points under other names, embedded by another model (`turntide reindex`).

A generation is a suffix: `turns-minilm` beside `turns`. A process serves one, which its settings name; it is never
switched while it runs, for it embeds queries with its own model. Roles of two generations run side by side, each index
role in a consumer group of its own, so that both follow the log until readers have moved over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.errors import ConfigurationError
from models.retrieval.lexical import SparseVector
from streams.ports import Condition, PayloadValue, Point, SearchHit, StoredPoint, VectorStore

Where = Mapping[str, Condition]


class WrappedStore:
    """A `streams.ports.VectorStore` that asks another one; `name` and `scoped` say what of a question is changed."""

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


FIRST = ""
"""Generation of collections without a suffix: the one there is before any `turntide reindex`."""
_ONE_NUMBER = np.zeros(1, dtype=np.float32)


def generation_name(name: str, generation: str) -> str:
    """Name of a collection, or of the index role's group, in a generation.

    >>> generation_name("turns", "minilm"), generation_name("turns", FIRST)
    ('turns-minilm', 'turns')
    """
    return f"{name}-{generation}" if generation else name


class CopyProgress(Struct, frozen=True, kw_only=True):
    """How far a collection of a generation is.

    Attributes:
        after: Id of the point to go on with; empty: the first one.
        copied: Points so far.
        done: All are copied.
    """

    after: str = ""
    copied: int = 0
    done: bool = False


class GenerationRecord:
    """What a store notes about a generation being made, in a collection of the generation's own."""

    def __init__(self, store: VectorStore, generation: str) -> None:
        self._store = store
        self._collection = f"reindex-{generation}"

    async def progress(self, collection: str) -> CopyProgress:
        """How far the collection is; the start for one that nothing is noted of."""
        noted = await self._read(collection)
        return msgspec.json.decode(noted, type=CopyProgress) if noted else CopyProgress()

    async def note_progress(self, collection: str, progress: CopyProgress) -> None:
        """Durable on return."""
        await self._write(collection, msgspec.json.encode(progress).decode())

    async def offsets(self) -> dict[str, dict[int, int]] | None:
        """Topic → partition → offset up to which the generation before had indexed when the copy began."""
        noted = await self._read("offsets")
        return msgspec.json.decode(noted, type=dict[str, dict[int, int]]) if noted else None

    async def note_offsets(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Durable on return."""
        await self._write("offsets", msgspec.json.encode(offsets).decode())

    async def finished(self) -> bool:
        """Whether all of it is copied and its group's offsets are set."""
        return await self._read("finished") is not None

    async def note_finished(self) -> None:
        """Durable on return."""
        await self._write("finished", "true")

    async def _read(self, key: str) -> str | None:
        found = await self._store.read(self._collection, [key], where={})
        return str(found[key]["noted"]) if key in found else None

    async def _write(self, key: str, noted: str) -> None:
        await self._store.upsert(self._collection, [Point(key, _ONE_NUMBER, {"noted": noted})])


async def require_finished(store: VectorStore, generation: str) -> None:
    """Refuse to serve or fill a generation that is still being copied.

    Raises:
        ConfigurationError: `turntide reindex` has not finished it, or never began.
    """
    if generation != FIRST and not await GenerationRecord(store, generation).finished():
        raise ConfigurationError(
            f"vectors.generation {generation} is not finished: run `turntide reindex` for it (it goes on where it "
            f"stopped), then start this role"
        )


class GenerationStore(WrappedStore):
    """A `streams.ports.VectorStore` in which every collection is that of one generation, a suffix of its name."""

    def __init__(self, store: VectorStore, generation: str) -> None:
        super().__init__(store)
        self._generation = generation

    def name(self, collection: str) -> str:
        """Name of the generation's collection."""
        return generation_name(collection, self._generation)

    async def collections(self) -> list[str]:
        """Names of all of this generation that were written, in order."""
        ending = self.name("")
        return [name.removesuffix(ending) for name in await self._store.collections() if name.endswith(ending)]

    def all_generations(self) -> VectorStore:
        """The store with the collections of all of them, under their whole names."""
        return self._store
