"""Generations of the collections: the same points embedded by another model (`turntide ops reindex`).

A generation is a suffix: `turns-minilm` beside `turns`. A process serves the one of its settings and never switches
while it runs, since it embeds queries with its own model. Roles of two generations can run at the same time, each index
role in its own consumer group, so that both follow the log until readers have switched.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from models.errors import ConfigurationError
from streams.index.collections import COLLECTIONS, EPISODES, OF_SESSIONS, TURNS
from streams.index.event_points import Collection
from streams.index.qdrant import QdrantStore
from streams.index.user_memory import episode_rows
from streams.ports import Embedder, PayloadValue, Point, Query, SearchHit, StoredPoint, VectorStore, Where
from streams.settings import Settings


class WrappedStore:
    """A `streams.ports.VectorStore` over another one; `name` and `scoped` define what it changes in requests."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def name(self, collection: str) -> str:
        """Name of a collection in the store."""
        return collection

    def scoped(self, where: Where) -> Where | None:
        """Conditions of a read; None: nothing may be read."""
        return where

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return."""
        await self._store.upsert(self.name(collection), points)

    async def search(
        self,
        collection: str,
        query: Query,
        *,
        where: Where,
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Nearest by cosine, or best by BM25, among the points that match every entry of `where`."""
        scoped, name = self.scoped(where), self.name(collection)
        return [] if scoped is None else await self._store.search(name, query, where=scoped, top_k=top_k, fields=fields)

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

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Give points new keys by their old ones, with vectors and payload as they are; those not there are passed."""
        await self._store.rename(self.name(collection), keys)

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


_Noted = TypeVar("_Noted")
FIRST = ""
"""Generation of collections without a suffix, before the first `turntide ops reindex`."""
_ONE_NUMBER = np.zeros(1, dtype=np.float32)


def generation_name(name: str, generation: str) -> str:
    """Name of a collection, or of the index role's group, in a generation.

    >>> generation_name("turns", "minilm"), generation_name("turns", FIRST)
    ('turns-minilm', 'turns')
    """
    return f"{name}-{generation}" if generation else name


def group_of(settings: Settings, role: str) -> str:
    """Name of a role's group; the index role has one for each generation of its collections."""
    name = generation_name(role, settings.vectors.generation) if role == "index" else role
    return f"{settings.topic_prefix}.{name}"


class CopyProgress(Struct, frozen=True, kw_only=True):
    """Progress of the copy of a collection.

    Attributes:
        after: Id of the next point; empty: the first one.
        copied: Number of copied points.
        done: Whether all are copied.
    """

    after: str = ""
    copied: int = 0
    done: bool = False


class StoreNotes:
    """Notes of a store about work on its collections, by name, in a separate collection; durable once written."""

    def __init__(self, store: VectorStore, collection: str) -> None:
        self._store = store
        self._collection = collection

    async def read(self, name: str, kind: type[_Noted]) -> _Noted | None:
        """The note; None for none."""
        found = await self._store.read(self._collection, [name], where={})
        return msgspec.json.decode(str(found[name]["noted"]), type=kind) if name in found else None

    async def progress(self, collection: str) -> CopyProgress:
        """Progress of a collection; its start without a note."""
        return await self.read(collection, CopyProgress) or CopyProgress()

    async def write(self, name: str, noted: Any) -> None:
        """Replace the note."""
        text = msgspec.json.encode(noted).decode()
        await self._store.upsert(self._collection, [Point(name, _ONE_NUMBER, {"noted": text})])


OFFSETS, FINISHED = "offsets", "finished"
"""Notes of a generation: topic → partition → offset up to which the one before had indexed when the copy began; and
whether all of it is copied and its group's offsets are set."""


def notes_of(store: VectorStore, generation: str) -> StoreNotes:
    """Note of a store about a new generation."""
    return StoreNotes(store, f"reindex-{generation}")


async def require_finished(store: VectorStore, generation: str) -> None:
    """Refuse to serve or fill a generation that is still being copied.

    Raises:
        ConfigurationError: `turntide ops reindex` has not finished it, or never began.
    """
    if generation != FIRST and not await notes_of(store, generation).read(FINISHED, bool):
        raise ConfigurationError(
            f"vectors.generation {generation} is incomplete: run `turntide ops reindex` for it (it continues where it "
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
        """Names of all written collections of this generation, sorted."""
        ending = self.name("")
        return [name.removesuffix(ending) for name in await self._store.collections() if name.endswith(ending)]

    def all_generations(self) -> VectorStore:
        """The store with the collections of all generations, under their full names."""
        return self._store


PAGE_POINTS = 256
Report = Callable[[str, int], None]
"""Collection, and number of its copied points."""


class Copied(Struct, frozen=True, kw_only=True):
    """Result for a collection: `points` over all runs, `now` in this run."""

    collection: str
    into: str
    points: int
    now: int


async def copy_collections(
    store: QdrantStore,
    embedder: Embedder,
    *,
    before: str,
    generation: str,
    report: Report = lambda _collection, _copied: None,
    page_points: int = PAGE_POINTS,
) -> list[Copied]:
    """Copy all collections of the generation `before` into another one, and embed the text of payloads again.

    Pages follow the order of point ids, and each is durable before it is noted: a killed run continues with the same
    page, and rewriting a point changes nothing. Points that are added or change during the copy may be missed; the
    index role of the new generation then repeats, from the log, everything indexed since before the first page
    (`jobs/operate/reindex.py`). So there is one writer at a time, and the log's order decides.
    """
    notes = notes_of(store, generation)
    done = []
    for name, collection in COLLECTIONS.items():
        read_from = generation_name(name, before)
        if await store.embedder_of(read_from) is None:
            continue
        into = generation_name(name, generation)
        progress = begun = await notes.progress(name)
        while not progress.done:
            stored, after = await store.page(read_from, progress.after, page_points)
            await store.upsert(into, await _points(collection, stored, embedder, store, generation))
            progress = CopyProgress(after=after, copied=progress.copied + len(stored), done=not after)
            await notes.write(name, progress)
            report(name, progress.copied)
        done.append(Copied(collection=name, into=into, points=progress.copied, now=progress.copied - begun.copied))
    return done


async def _points(
    collection: Collection[Any], stored: Sequence[StoredPoint], embedder: Embedder, target: VectorStore, generation: str
) -> list[Point]:
    """The points with their payloads, and vectors, words and sessions' keys made as the index role makes them."""
    if collection.text is None:
        blank = np.zeros(embedder.dim, dtype=np.float32)
        return [Point(point.key, blank, point.payload, embedded=False) for point in stored]
    events = [collection.event_of(point.payload) for point in stored]
    if collection is EPISODES:
        turns = generation_name(TURNS.name, generation)
        rows = await episode_rows(target, turns, embedder, events)
    else:
        rows = await asyncio.to_thread(embedder.embed, list(map(collection.text, events)))
    keys = [collection.key(event) for event in events] if collection in OF_SESSIONS else [each.key for each in stored]
    return [
        Point(key, row, point.payload, collection.found_by(event))
        for key, point, event, row in zip(keys, stored, events, rows, strict=True)
    ]
