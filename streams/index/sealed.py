"""A vector store whose payloads have their content encrypted: filters stay plain, texts are only given back.

Vectors and the weights of words are not encrypted: whoever searches by them must compare them, and both tell something
of the text. They go with the points when a key is erased (`forget_sealed`).
"""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import chain

from msgspec.structs import replace

from models.entities import TOPIC_OF
from streams.encryption.keyring import NOBODY, Sealer, key_of_id
from streams.encryption.records import steps_of
from streams.encryption.tokens import sealed_bytes
from streams.index.event_points import REST
from streams.index.generations import WrappedStore
from streams.ports import LocalStore, PayloadValue, Point, Query, SearchHit, StoredPoint, VectorStore, Where

SEALED = "_sealed"
"""Payload field with the id of the key; without it nothing of the payload is encrypted."""
_Payload = dict[str, PayloadValue]


class SealedStore(WrappedStore):
    """See `streams.ports.VectorStore`. Those whose key was erased are not given; by `page`, without text.

    Each call looks at the keyring first: a role that only reads has nobody else to do it.
    """

    def __init__(self, store: VectorStore, sealer: Sealer) -> None:
        super().__init__(store)
        self._sealer = sealer

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key, texts encrypted."""
        self._sealer.refresh()
        await super().upsert(collection, [self._sealed(collection, point) for point in points])

    async def search(
        self, collection: str, query: Query, *, where: Where, top_k: int, fields: Sequence[str] | None = None
    ) -> list[SearchHit]:
        """Nearest by cosine, or best by BM25."""
        self._sealer.refresh()
        asked = [*fields, SEALED] if fields and not _content().isdisjoint(fields) else fields
        found = await super().search(collection, query, where=where, top_k=top_k, fields=asked)
        plain = [(hit, _opened(hit.payload)) for hit in found]
        return [SearchHit(hit.key, hit.score, payload) for hit, payload in plain if payload is not None]

    async def read(self, collection: str, keys: Sequence[str], *, where: Where) -> dict[str, _Payload]:
        """Payloads by key."""
        self._sealer.refresh()
        found = await super().read(collection, keys, where=where)
        return {key: plain for key, payload in found.items() if (plain := _opened(payload)) is not None}

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[_Payload]:
        """Payloads of the matching points with the highest integer field `by`."""
        self._sealer.refresh()
        found = await super().latest(collection, where=where, by=by, limit=limit)
        return [plain for payload in found if (plain := _opened(payload)) is not None]

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids."""
        self._sealer.refresh()
        points, following = await super().page(collection, after, limit)
        return [
            StoredPoint(point.key, _opened(point.payload) or _wordless(point.payload)) for point in points
        ], following

    def _sealed(self, collection: str, point: Point) -> Point:
        payload = point.payload
        key = self._sealer.key(str(payload.get("owner_app_id") or payload.get("app_id") or NOBODY))
        if key is None or _content().isdisjoint(payload):
            return point
        salt = key.salt(f"{collection}\n{point.key}".encode())
        sealed = {
            name: key.seal_text(value, salt) if name in _content() and isinstance(value, str) else value
            for name, value in payload.items()
        }
        return replace(point, payload={**sealed, SEALED: key.id.hex()})


class SealedLocalStore(SealedStore):
    """One whose store is a folder of this machine."""

    _store: LocalStore  # type: ignore[assignment]

    def is_gone(self) -> bool:
        """See `streams.ports.LocalStore`."""
        return self._store.is_gone()

    def hold_back(self) -> None:
        """Likewise."""
        self._store.hold_back()

    async def flush(self) -> None:
        """Likewise."""
        await self._store.flush()


def sealed_store(store: VectorStore, sealer: Sealer | None) -> VectorStore:
    """The store, or one that encrypts what it is given."""
    if sealer is None:
        return store
    return (SealedLocalStore if isinstance(store, LocalStore) else SealedStore)(store, sealer)


async def forget_sealed(store: VectorStore, key_ids: Collection[str]) -> None:
    """Remove the points whose texts these keys encrypted, vectors and words with them; repeating it is harmless."""
    for collection in await store.collections() if key_ids else ():
        where = {SEALED: tuple(key_ids)}
        if await store.count(collection, where=where):
            await store.delete(collection, where=where)
            await store.forget(collection)


@cache
def _content() -> frozenset[str]:
    """Payload fields that are encrypted."""
    return frozenset(chain([REST], chain.from_iterable(map(steps_of, TOPIC_OF))))


def _opened(payload: _Payload) -> _Payload | None:
    """The payload as it was given; None: its key was erased."""
    if (key_id := payload.get(SEALED)) is None:
        return payload
    if (key := key_of_id(bytes.fromhex(str(key_id)))) is None:
        return None
    return {
        name: key.opened_text(sealed_bytes(value)) if name in _content() and isinstance(value, str) else value
        for name, value in payload.items()
        if name != SEALED
    }


def _wordless(payload: _Payload) -> _Payload:
    return {name: value for name, value in payload.items() if name != SEALED and name not in _content()}
