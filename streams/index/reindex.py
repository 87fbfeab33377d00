"""Copying all collections into another generation, embedded anew from the text that payloads hold.

Pages go in order of point ids, each written durably before it is noted: whoever is killed goes on with the same page,
and writing a point again changes nothing. Points that come meanwhile may be missed, and points that change may be
copied as they were; the index role of the new generation repeats from the log what was indexed since before the first
page was read (`jobs/operate/reindex.py`), over the copy. So there is one writer at a time, and the log's order is the
last word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from models.retrieval.lexical import document_vector
from streams.index.collections import COLLECTIONS, EPISODES, TURNS
from streams.index.event_points import Collection
from streams.index.generations import CopyProgress, GenerationRecord, generation_name
from streams.index.user_memory import episode_rows
from streams.ports import Embedder, Point, StoredPoint, VectorStore

PAGE_POINTS = 256
Report = Callable[[str, int], None]
"""Collection, and points of it that are copied."""


class CopiedStore(VectorStore, Protocol):
    """A store that says of every collection whose vectors it holds."""

    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds; None if there is no such collection."""
        ...


class Copied(Struct, frozen=True, kw_only=True):
    """What was done with a collection; `points` over all runs, `now` in this one."""

    collection: str
    into: str
    points: int
    now: int


async def copy_collections(
    store: CopiedStore,
    embedder: Embedder,
    *,
    before: str,
    generation: str,
    report: Report = lambda _collection, _copied: None,
    page_points: int = PAGE_POINTS,
) -> list[Copied]:
    """Copy the generation `before` into another one, unless copied; a run that was cut short is gone on with."""
    record = GenerationRecord(store, generation)
    done = []
    for name, collection in COLLECTIONS.items():
        read_from = generation_name(name, before)
        if await store.embedder_of(read_from) is None:
            continue
        into = generation_name(name, generation)
        progress = begun = await record.progress(name)
        while not progress.done:
            stored, after = await store.page(read_from, progress.after, page_points)
            await store.upsert(into, await _points(collection, stored, embedder, store, generation))
            progress = CopyProgress(after=after, copied=progress.copied + len(stored), done=not after)
            await record.note_progress(name, progress)
            report(name, progress.copied)
        done.append(Copied(collection=name, into=into, points=progress.copied, now=progress.copied - begun.copied))
    return done


async def _points(
    collection: Collection[Any], stored: Sequence[StoredPoint], embedder: Embedder, target: VectorStore, generation: str
) -> list[Point]:
    """The points with their payloads, and vectors and words made as the index role makes them."""
    if collection.text is None:
        blank = np.zeros(embedder.dim, dtype=np.float32)
        return [Point(point.key, blank, point.payload) for point in stored]
    events = [collection.event_of(point.payload) for point in stored]
    if collection is EPISODES:
        turns = generation_name(TURNS.name, generation)
        rows = await episode_rows(target, turns, embedder, [(each.turns, each.summary) for each in events])
    else:
        rows = await asyncio.to_thread(embedder.embed, list(map(collection.text, events)))
    words = collection.words
    return [
        Point(point.key, row, point.payload, None if words is None else document_vector(words(event)))
        for point, event, row in zip(stored, events, rows, strict=True)
    ]
