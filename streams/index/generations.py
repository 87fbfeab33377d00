"""Generations of the collections: the same points under other names, embedded by another model (`turntide reindex`).

A generation is a suffix: `turns-minilm` beside `turns`. A process serves one, which its settings name; it is never
switched while it runs, for it embeds queries with its own model. Roles of two generations run side by side, each index
role in a consumer group of its own, so that both follow the log until readers have moved over.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from msgspec import Struct

from models.errors import ConfigurationError
from streams.index.wrapped import WrappedStore
from streams.ports import Point, VectorStore

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
    """What a store notes about a generation being made, in a collection of the generation's own.

    Args:
        store: Where the generation is made, of its embedder.
        generation: Its name.
    """

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
    """A `streams.ports.VectorStore` in which every collection is that of one generation.

    Args:
        store: Where the collections are; closed with this one.
        generation: Suffix of their names.
    """

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
