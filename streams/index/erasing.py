"""Erasure of subjects from the vector store: points in every collection, their bytes, and a second count (design §5).

Removed are points that name the user or app, and points that name one of the sessions, whoever spoke. Session ids are
unique only within an app: the same id in another app is another session (`models.erasure.ErasureSubject.names`).

The sessions of a point are all session fields of its event, also nested ones, each in the event's app. Stats of
projects name none. A memory of an erased app is also removed under the names of other apps.

All collections of all generations are searched.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from models.events.base import SessionName
from models.events.erase import ErasedStore, VectorsErasureDue
from streams.index.collections import COLLECTIONS, MEMORIES
from streams.index.generations import PAGE_POINTS, GenerationStore
from streams.ports import Condition, VectorStore

_SESSIONS_AT_ONCE = 500
_ANY_APP = ""
Where = dict[str, Condition]


def base_of(collection: str) -> str | None:
    """Name of a collection without its generation; None for collections without personal data.

    >>> base_of("turns-minilm"), base_of("reindex-minilm")
    ('turns', None)
    """
    base = collection.partition("-")[0]
    return base if base in COLLECTIONS else None


class VectorErasing:
    """Removes subjects of erasures from all generations of a store."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store.all_generations() if isinstance(store, GenerationStore) else store

    async def erase(self, dues: Sequence[VectorsErasureDue]) -> list[list[ErasedStore]]:
        """Remove the subjects; returns for each the points read, removed and left. Durable on return and repeatable.

        Bytes are removed once for all subjects in every collection, also in one without their points: its files may
        have earlier values of changed or removed points.
        """
        stores: list[list[ErasedStore]] = [[] for _ in dues]
        for collection in await self._store.collections():
            if (base := base_of(collection)) is None:
                continue
            done = [await self._remove(collection, base, due) for due in dues]
            await self._store.forget(collection)
            for answered, due, (looked_at, removed) in zip(stores, dues, done, strict=True):
                left = [await self._store.count(collection, where=w) for w in await self._of(collection, base, due)]
                answered.append(
                    ErasedStore(
                        store=f"vectors {collection}", looked_at=looked_at, removed=removed, remaining=sum(left)
                    )
                )
        return stores

    async def _remove(self, collection: str, base: str, due: VectorsErasureDue) -> tuple[int, int]:
        looked_at = await self._store.count(collection)
        for where in await self._of(collection, base, due):
            await self._store.delete(collection, where=where)
        return looked_at, looked_at - await self._store.count(collection)

    async def _of(self, collection: str, base: str, due: VectorsErasureDue) -> list[Where]:
        """Conditions; a point that matches any of them belongs to the subject."""
        return [*_conditions(base, due), *await self._naming(collection, base, due)]

    async def _naming(self, collection: str, base: str, due: VectorsErasureDue) -> list[Where]:
        """A condition for each point that names one of the sessions."""
        points, erased = COLLECTIONS[base], frozenset(_sessions(due))
        if not points.erased_by or not erased:
            return []
        found, after, more = list[Where](), "", True
        while more:
            stored, after = await self._store.page(collection, after, PAGE_POINTS)
            named = ((point.payload, frozenset(points.sessions(point.payload))) for point in stored)
            payloads = [
                payload
                for payload, sessions in named
                if not erased.isdisjoint({*sessions, *(each._replace(app_id=_ANY_APP) for each in sessions)})
            ]
            found += [{field: payload[field] for field in points.erased_by} for payload in payloads]
            more = bool(after)
        return found


def _conditions(base: str, due: VectorsErasureDue) -> Iterator[Where]:
    """Conditions on the app, user and session of points."""
    if due.scope == "app":
        yield {"app_id": due.app_id}
        if base == MEMORIES.name:
            yield {"owner_app_id": due.app_id}
    if due.scope == "user":
        yield {"user_id": due.user_id, "app_id": due.app_id} if due.app_id else {"user_id": due.user_id}
    if COLLECTIONS[base].by_session:
        for app_id, sessions in groupby(sorted(set(_sessions(due))), key=lambda session: session.app_id):
            of_app: Where = {} if app_id == _ANY_APP else {"app_id": app_id}
            ids = [session.session_id for session in sessions]
            for start in range(0, len(ids), _SESSIONS_AT_ONCE):
                yield {**of_app, "session_id": tuple(ids[start : start + _SESSIONS_AT_ONCE])}


def _sessions(due: VectorsErasureDue) -> list[SessionName]:
    """Sessions to erase; requests of releases up to 0.2.0 have only their ids."""
    if due.sessions:
        return [SessionName(each.app_id, each.session_id) for each in due.sessions]
    return [SessionName(due.app_id or _ANY_APP, session_id) for session_id in due.session_ids]
