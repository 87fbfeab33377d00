"""Memory of projects: search over items by similarity and words, and a cached view of each project.

| case | rule |
|---|---|
| a repeated event | replaces the point it wrote; the log's last event of a slot counts |
| a cached view of a project that changed | only changes after the view's revision are read |
| a project that was erased and recreated | it has another `born`; the cached view is dropped |
| a project that the caller may not read | no view, cached or not |
| a view without a request for an hour | dropped at the next request for any view, since its project may be erased |

Measured on Qdrant Edge, two shared cores, wordllama, a project of 10,000 memories: the first read takes 0.8 s in a
thread and blocks the loop for at most 60 ms; returning a current view takes 0.15 ms, one that is a change behind 1.8
ms; the hybrid search over all items takes 4 ms.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from time import monotonic
from typing import cast
from weakref import WeakValueDictionary

import numpy as np
from msgspec import structs

from models.events import ProjectChanged, ProjectItemChanged, project_key
from models.policy.project import ProjectPolicy
from models.project.view import ProjectView
from models.retrieval.lexical import terms
from models.retrieval.relevance import FoundKind, RetrievalQuery, RetrievedItem
from streams.index import collections as index
from streams.index.hybrid_search import HybridSearch
from streams.ports import Condition, Embedder, PayloadValue, Vectors, VectorStore

_PAGE_ITEMS = 500
"""Page size. With 100 the first read takes 1.5 times as long and blocks the loop as long; with 1,000 for 80 ms."""
_APPLIED_AT_ONCE = 100
_FEWEST_CANDIDATES = 100
_LAST_REVISION = 2**53
_MOST_ROWS = 8_192
"""Number of cached vectors: 8 MB with 256 dimensions."""
HELD_S = 3_600.0
"""Time without a request after which a view is dropped, at the next request: its project may be erased."""


@dataclass(slots=True)
class _CachedView:
    """A view with the project's stats at the time of reading."""

    view: ProjectView
    stats: ProjectChanged
    asked_at: float = 0.0

    def is_of(self, stats: ProjectChanged) -> bool:
        """Whether it is of the same project, not of one erased before."""
        return self.stats.born == stats.born

    def knows(self, stats: ProjectChanged) -> bool:
        """Whether it includes all changes up to these stats."""
        return self.is_of(stats) and self.stats.revision >= stats.revision


class ProjectMemories:
    """Items and stats of all projects, and cached views of recently requested ones.

    Views are updated in place and belong to the event loop: after an `await`, a view may be newer. `reads` checks
    whether the caller may read an app (`streams.api.assembly.reads`); the store checks too, but this saves the query
    and keeps the views of others cached. If the store does not answer (`StoreUnavailable`), views stay cached.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        policy: ProjectPolicy,
        *,
        reads: Callable[[str], bool] = lambda _: True,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._reads = reads
        self._clock = clock
        self._embedder = embedder
        self._policy = policy
        self._search = HybridSearch(store, embedder)
        self._vectors = _RecentVectors(embedder)
        self._held: OrderedDict[str, _CachedView] = OrderedDict()
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- writing

    async def add_items(self, events: Sequence[tuple[ProjectItemChanged, int]]) -> None:
        """Index the last event of each slot; durable on return and idempotent."""
        items = [(_unnamed(event), offset) for event, offset in events]
        if found := [each for each in items if each[0].kind in index.EMBEDDED]:
            rows = await self._vectors.of([index.item_text(event) for event, _ in found])
            await index.PROJECT_ITEMS.write(self._store, found, rows)
        rest = [each for each in items if each[0].kind not in index.EMBEDDED]
        await index.PROJECT_PARTS.write(self._store, rest, [self._vectors.blank] * len(rest))

    async def add_stats(self, events: Sequence[tuple[ProjectChanged, int]]) -> None:
        """Write the stats of projects. Call it after `add_items`: readers wait for the stats, then read the items."""
        await index.PROJECTS.write(self._store, events, [self._vectors.blank] * len(events))

    # --- reading

    async def stats(self, app_id: str, project_id: str) -> ProjectChanged | None:
        """The last indexed stats; None for an unknown project."""
        key = project_key(app_id, project_id)
        return (await index.PROJECTS.read(self._store, [key], {"app_id": app_id})).get(key)

    async def projects(self, app_id: str | None, limit: int) -> list[ProjectChanged]:
        """Stats of an app's projects, or of all readable ones, latest write first."""
        where: dict[str, Condition] = {"owner_key": index.PROJECT_STATS}
        if app_id is not None:
            where["app_id"] = app_id
        return await index.PROJECTS.latest(self._store, where, limit)

    async def view(self, app_id: str, project_id: str) -> ProjectView | None:
        """The view of a project, up to its stats in the store; None for an unknown project."""
        if not self._reads(app_id):
            return None
        key = project_key(app_id, project_id)
        stats = await self.stats(app_id, project_id)
        if stats is not None and (held := self._held.get(key)) is not None and held.knows(stats):
            self._keep(key, held)
            return held.view
        async with self._reading.setdefault(key, asyncio.Lock()):
            return await self._read(key, app_id, project_id)

    async def find(self, view: ProjectView, query: RetrievalQuery, at: datetime) -> list[RetrievedItem]:
        """Search by words and similarity, then filter and rank as `ProjectView.retrieve` does.

        Scores are fused: higher is better, comparable only within one result, 0 without any match. Items that also
        match the context are ranked higher. While filters leave fewer hits than requested, more candidates are read;
        related items do not count as hits. If neither query nor context has a term, the source's scores rank the items
        by importance and recency.
        """
        text, around = (query.text, query.context) if terms(query.text) else (query.context, "")
        if not terms(text):
            return view.retrieve(query, at)
        # One condition only: with 10,000 items a second one costs 3 ms, one without an index 80. Removed items have no
        # words, and the view leaves them out.
        where: dict[str, Condition] = {"owner_key": project_key(view.app_id, view.project_id)}
        retrieval = self._policy.retrieval
        top_k = query.top_k or retrieval.top_k
        hits_only = structs.replace(query, related_depth=0)
        looked_at = max(top_k, _FEWEST_CANDIDATES)
        while True:
            best = dict(await self._search.keys(index.PROJECT_ITEMS.name, text, where, looked_at))
            if around:
                for key, score in await self._search.keys(index.PROJECT_ITEMS.name, around, where, looked_at):
                    if key in best:
                        best[key] += retrieval.context_weight * score
            places = ((_slot_of_key(key), score) for key, score in best.items())
            scores = {(kind, name): score for (kind, slot), score in places if (name := view.item_in(kind, slot))}
            hits = view.retrieve(hits_only, at, scores)
            if len(best) < looked_at or len(hits) >= top_k:
                return view.retrieve(query, at, scores) if query.related_depth else hits
            looked_at *= 4

    async def _read(self, key: str, app_id: str, project_id: str) -> ProjectView | None:
        """Update the view; only one reader of a project at a time."""
        stats = await self.stats(app_id, project_id)  # it may have changed while others read
        if stats is None:
            self._held.pop(key, None)
            return None
        held = self._held.get(key)
        if held is None or not held.is_of(stats):
            view = ProjectView(app_id, project_id, self._policy)
            events = await self._events(key, {"active": 1})
            await asyncio.to_thread(_apply, view, events)
            held = _CachedView(view, stats)
            # What changed while its pages were read may be on none of them.
            missed = await self._events(key, {}, after=stats.revision)
        else:
            missed = [] if held.knows(stats) else await self._events(key, {}, after=held.stats.revision)
        for start in range(0, len(missed), _APPLIED_AT_ONCE):
            _apply(held.view, missed[start : start + _APPLIED_AT_ONCE])
            await asyncio.sleep(0)
        if held.view.stats is None or not held.knows(stats):
            held.stats = stats
        held.view.apply(held.stats)
        self._keep(key, held)
        return held.view

    def _keep(self, key: str, held: _CachedView) -> None:
        """Cache a view, and drop the least recently requested ones that are too old or exceed the number of items."""
        held.asked_at = self._clock()
        self._held[key] = held
        self._held.move_to_end(key)
        while next(iter(self._held.values())).asked_at < held.asked_at - HELD_S:
            self._held.popitem(last=False)
        items = sum(each.view.size for each in self._held.values())
        while items > self._policy.retrieval.cached_items and len(self._held) > 1:
            _, gone = self._held.popitem(last=False)
            items -= gone.view.size

    async def _events(self, key: str, where: Mapping[str, Condition], *, after: int = -1) -> list[ProjectItemChanged]:
        """Events of a project's points that changed after a revision, in log order."""
        of_project: dict[str, Condition] = {"owner_key": key, **where}
        payloads = [
            payload
            for collection in (index.PROJECT_ITEMS, index.PROJECT_PARTS)
            for payload in await self._changed(collection.name, of_project, after)
        ]
        return await asyncio.to_thread(_in_order, payloads)

    async def _changed(self, collection: str, where: dict[str, Condition], after: int) -> list[dict[str, PayloadValue]]:
        """Payloads of points that changed after a revision, read page by page; some may be repeated."""
        found: list[dict[str, PayloadValue]] = []
        newest, limit = _LAST_REVISION, _PAGE_ITEMS
        while True:
            within: dict[str, Condition] = {**where, "revision": (after + 1, newest)}
            page = await self._store.latest(collection, where=within, by="revision", limit=limit)
            found += page
            if len(page) < limit:
                return found
            # The oldest revision of a page may go on, so the next one begins with it; if it fills a page, so with more.
            oldest = int(page[-1]["revision"] or 0)
            limit = limit * 2 if oldest == newest else _PAGE_ITEMS
            newest = oldest


class _RecentVectors:
    """Vectors of texts, embedded in a thread and cached: an item that changes often keeps its text."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._rows: OrderedDict[bytes, Vectors] = OrderedDict()
        self.blank: Vectors = np.zeros(embedder.dim, dtype=np.float32)

    async def of(self, texts: Sequence[str]) -> list[Vectors]:
        """A row `(dim,)` for each text."""
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        rows = {key: self._rows[key] for key in keys if key in self._rows}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if missing:
            made = await asyncio.to_thread(self._embedder.embed, list(missing.values()))
            rows |= {key: row.copy() for key, row in zip(missing, made, strict=True)}  # of its own: a row keeps all
        for key, row in rows.items():
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > _MOST_ROWS:
            self._rows.popitem(last=False)
        return [rows[key] for key in keys]


def _in_order(payloads: Iterable[dict[str, PayloadValue]]) -> list[ProjectItemChanged]:
    events = ((int(payload["event_offset"] or 0), index.PROJECT_ITEMS.event_of(payload)) for payload in payloads)
    return [event for _, event in sorted(events, key=lambda each: (each[1].revision, each[0]))]


def _apply(view: ProjectView, events: Iterable[ProjectItemChanged]) -> None:
    for event in events:
        view.apply(event)


def _unnamed(event: ProjectItemChanged) -> ProjectItemChanged:
    """The event without names if its item was removed; the id of a conversation is a session id."""
    if index.item_of(event) is not None:
        return event
    item_id = "" if event.kind == "conversation" else event.item_id
    return structs.replace(event, session_id="", user_id="", item_id=item_id)


def _slot_of_key(key: str) -> tuple[FoundKind, int]:
    """Kind and slot of a point, from its key.

    >>> _slot_of_key("project:a/web/memory/7")
    ('memory', 7)
    """
    _, kind, slot = key.rsplit("/", 2)
    return cast("FoundKind", kind), int(slot)
