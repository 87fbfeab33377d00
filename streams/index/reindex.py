"""Copying all collections into another generation, embedded anew from the text that payloads hold.

Pages go in order of point ids, each written durably before it is noted: whoever is killed goes on with the same page,
and writing a point again changes nothing. Points that come meanwhile may be missed, and points that change may be
copied as they were; the index role of the new generation repeats from the log what was indexed since before the first
page was read (`jobs/operate/reindex.py`), over the copy. So there is one writer at a time, and the log's order is the
last word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from models.events.user import SessionTurns
from models.retrieval.lexical import document_vector
from streams.index import app_memory, app_points, project_points, session_memory, topic_memory, user_memory, user_points
from streams.index.generations import GenerationRecord, Progress, generation_name
from streams.inference.intake import topic_text
from streams.ports import Embedder, PayloadValue, Point, Stored, Vectors, VectorStore

PAGE_POINTS = 256
Payload = Mapping[str, PayloadValue]
Report = Callable[[str, int], None]
"""Collection, and points of it that are copied."""


class Source(Protocol):
    """A store as the copy reads it, whatever embedder its collections belong to."""

    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds; None if there is no such collection."""
        ...

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[Stored], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        ...


class _Recipe(NamedTuple):
    """What a collection's points are embedded by, and which words they are found by; None for neither."""

    text: Callable[[Payload], str] | None = None
    words: Callable[[Payload], str] | None = None


def _time(payload: Payload, field: str) -> datetime:
    return datetime.fromisoformat(str(payload[field]))


def _topic(payload: Payload) -> str:
    summary = payload["summary"]
    return topic_text(str(payload["title"]), None if summary is None else str(summary))


def _episode_words(payload: Payload) -> str:
    topics = msgspec.json.decode(str(payload["key_topics"]), type=list[str])
    return user_points.episode_words(str(payload["summary"]), topics, _time(payload, "started_at"))


def _memory_words(payload: Payload) -> str:
    tags = msgspec.json.decode(str(payload["tags"]), type=list[str])
    return app_points.memory_words(str(payload["content"]), tags, _time(payload, "created_at"))


RECIPES: Mapping[str, _Recipe] = {
    session_memory.COLLECTION: _Recipe(
        text=lambda payload: str(payload["content"]),
        words=lambda payload: session_memory.turn_words(str(payload["content"]), _time(payload, "timestamp")),
    ),
    topic_memory.COLLECTION: _Recipe(text=_topic),
    user_memory.EPISODES: _Recipe(text=lambda payload: str(payload["summary"]), words=_episode_words),  # see `_rows`
    user_memory.FACTS: _Recipe(),
    user_memory.USERS: _Recipe(),
    app_memory.MEMORIES: _Recipe(text=lambda payload: str(payload["content"]), words=_memory_words),
    app_memory.SPACES: _Recipe(),
    project_points.PROJECT_ITEMS: _Recipe(
        text=lambda payload: project_points.embedded_text(project_points.item_event(payload)),
        words=lambda payload: project_points.item_words(project_points.item_event(payload)),
    ),
    project_points.PROJECTS: _Recipe(),
}
"""Every collection that the index role writes, made as it makes them."""


class Copied(Struct, frozen=True, kw_only=True):
    """What was done with a collection; `points` over all runs, `now` in this one."""

    collection: str
    into: str
    points: int
    now: int


async def copy_collections(
    source: Source,
    target: VectorStore,
    embedder: Embedder,
    *,
    before: str,
    generation: str,
    report: Report = lambda _collection, _copied: None,
    page_points: int = PAGE_POINTS,
) -> list[Copied]:
    """Copy what is not copied yet; a run that was cut short is gone on with.

    Args:
        source: Where the collections are.
        target: The same store, taking the new embedder's vectors.
        embedder: The new one.
        before: Generation to copy.
        generation: Generation to make.
        report: Told after every page.
        page_points: Points read, embedded and written at once.
    """
    record = GenerationRecord(target, generation)
    done = []
    for collection in RECIPES:
        read_from = generation_name(collection, before)
        if await source.embedder_of(read_from) is None:
            continue
        into = generation_name(collection, generation)
        progress = begun = await record.progress(collection)
        while not progress.done:
            stored, after = await source.page(read_from, progress.after, page_points)
            rows = await _rows(collection, stored, embedder, target, generation)
            await target.upsert(into, _points(RECIPES[collection], stored, rows))
            progress = Progress(after=after, copied=progress.copied + len(stored), done=not after)
            await record.note_progress(collection, progress)
            report(collection, progress.copied)
        done.append(
            Copied(collection=collection, into=into, points=progress.copied, now=progress.copied - begun.copied)
        )
    return done


async def _rows(
    collection: str, stored: Sequence[Stored], embedder: Embedder, target: VectorStore, generation: str
) -> Vectors:
    """New vectors of points, `(n_points, dim)`."""
    text = RECIPES[collection].text
    if text is None:
        return np.zeros((len(stored), embedder.dim), dtype=np.float32)
    if collection == user_memory.EPISODES:
        turns = generation_name(session_memory.COLLECTION, generation)
        episodes = [(_runs(point.payload), str(point.payload["summary"])) for point in stored]
        return await user_memory.episode_rows(target, turns, embedder, episodes)
    return await asyncio.to_thread(embedder.embed, [text(point.payload) for point in stored])


def _runs(payload: Payload) -> list[SessionTurns]:
    return msgspec.json.decode(str(payload["turns"]), type=list[SessionTurns])


def _points(recipe: _Recipe, stored: Sequence[Stored], rows: Vectors) -> list[Point]:
    """The points with their payloads and new vectors."""
    words = recipe.words
    return [
        Point(point.key, row, point.payload, None if words is None else document_vector(words(point.payload)))
        for point, row in zip(stored, rows, strict=True)
    ]
