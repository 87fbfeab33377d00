"""Qdrant as a vector store: what its server and its embedded engine have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from models.errors import ConfigurationError
from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.ports import Keys, PayloadValue, Query, SearchHit, StoredPoint, VectorStore, Where

Payload = dict[str, PayloadValue]
Fields = Sequence[str] | None


class QdrantStore(VectorStore, ABC):
    """The reading half of a `streams.ports.VectorStore`: checks, then asks. `embedder` names whose vectors come in."""

    def __init__(self, embedder: str) -> None:
        self._embedder = embedder

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
        if (info := await self._own(collection)) is None:
            return []
        if isinstance(query, SparseVector):
            info.require_lexical(collection)
        else:
            rules.require_vectors(collection, [query], info.dim)
        return await self._ranked(collection, query, where, top_k, fields) if len(query) else []

    async def read(self, collection: str, keys: Sequence[str], *, where: Where) -> dict[str, Payload]:
        """Payloads by key; keys of points that are not there, or do not match `where`, are missing."""
        if not keys or await self._own(collection) is None:
            return {}
        found = await self._scrolled(collection, {**where, rules.KEY_FIELD: Keys(keys)}, len(keys))
        return {str(payload[rules.KEY_FIELD]): rules.given_payload(payload) for payload in found}

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[Payload]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""
        if await self._own(collection) is None:
            return []
        return [rules.given_payload(payload) for payload in await self._scrolled(collection, where, limit, by=by)]

    async def count(self, collection: str, *, where: Where | None = None) -> int:
        """Exact number of matching points."""
        return 0 if await self._info(collection) is None else await self._counted(collection, where or {})

    async def delete(self, collection: str, *, where: Where, below: tuple[str, int] | None = None) -> None:
        """Delete what matches `where` and, if given, whose integer field `below[0]` is less than `below[1]`.

        Raises:
            ConfigurationError: `where` is empty, which would empty the collection.
        """
        if not where:
            raise ConfigurationError(f"vector collection {collection}: refused to delete all points; give a condition")
        if await self._info(collection) is not None:
            await self._delete(collection, where, below)

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Give points new keys by their old ones, with vectors and payload as they are; those not there are passed."""
        if keys and await self._own(collection) is not None:
            await self._rename(collection, keys)

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        if await self._info(collection) is None:
            return [], ""
        payloads, following = await self._paged(collection, after, limit)
        stored = [StoredPoint(str(each[rules.KEY_FIELD]), rules.given_payload(each)) for each in payloads]
        return stored, following

    async def _own(self, collection: str) -> rules.CollectionInfo | None:
        """As `_info`, if the vectors are of this store's embedder."""
        if info := await self._info(collection):
            info.require(collection, embedder=self._embedder, dim=None)
        return info

    @abstractmethod
    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds, empty if it does not say; None if there is no such collection."""

    @abstractmethod
    async def _info(self, collection: str) -> rules.CollectionInfo | None:
        """What a collection takes; None if it does not exist."""

    @abstractmethod
    async def _ranked(self, collection: str, query: Query, where: Where, top_k: int, fields: Fields) -> list[SearchHit]:
        """Best first."""

    @abstractmethod
    async def _scrolled(self, collection: str, where: Where, limit: int, *, by: str = "") -> list[Payload]:
        """Payloads as they are stored; with the highest `by` first, if that is given."""

    @abstractmethod
    async def _counted(self, collection: str, where: Where) -> int: ...

    @abstractmethod
    async def _delete(self, collection: str, where: Where, below: tuple[str, int] | None) -> None: ...

    @abstractmethod
    async def _rename(self, collection: str, keys: Mapping[str, str]) -> None: ...

    @abstractmethod
    async def _paged(self, collection: str, after: str, limit: int) -> tuple[list[Payload], str]: ...
