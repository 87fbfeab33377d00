"""Qdrant server, the production vector store: batches, retries, one collection for all tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from models.errors import ConfigurationError, StoreUnavailable
from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.index.generations import generation_name
from streams.index.server_requests import filter_of, requests_of, sparse_of, struct_of
from streams.ports import Condition, PayloadValue, Point, SearchHit, StoredPoint

RETRY_DELAYS = tuple(timedelta(milliseconds=ms) for ms in (100, 300, 1_000, 3_000))
"""Waits between tries: a restart or a leader election is over by then, a lasting outage is the role's to report."""
REQUEST_TIMEOUT = timedelta(seconds=10)

_CONFLICT = 409
_RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def alias_of(collection: str) -> str:
    """Name under which readers from outside find a collection of the generation that serves."""
    return f"{collection}-current"


class ServerStore:
    """A `streams.ports.VectorStore` on a Qdrant server.

    1.16 or later, for the collection's metadata; 1.19 or later, to count how rare a term is within the scope alone.

    Args:
        client: A client of the server; closed with the store.
        embedder: Name of the embedder whose vectors come in.
        retry_delays: Waits before each further try of a call that failed for want of an answer.
    """

    def __init__(
        self, client: AsyncQdrantClient, *, embedder: str, retry_delays: Sequence[timedelta] = RETRY_DELAYS
    ) -> None:
        self._client = client
        self._embedder = embedder
        self._retry_delays = retry_delays
        self._infos: dict[str, rules.CollectionInfo] = {}
        self._ensured: set[str] = set()

    @classmethod
    def connect(cls, url: str, *, api_key: SecretStr | None, embedder: str) -> ServerStore:
        """A store on the server at `url`; nothing is sent before the first call."""
        client = AsyncQdrantClient(
            url=url,
            api_key=api_key.get_secret_value() if api_key else None,
            timeout=int(REQUEST_TIMEOUT.total_seconds()),
            check_compatibility=False,  # it would block the event loop with a request of its own
        )
        return cls(client, embedder=embedder)

    async def ensure(self, collection: str, dim: int) -> None:
        """Create the collection, or check that it takes vectors of this size from this embedder."""
        await self._ensure(collection, dim)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return.

        A batch larger than a request goes out in several; if one fails, repeating the batch is harmless.
        """
        if not points:
            return
        info = await self._ensure(collection, len(points[0].vector))
        for request in requests_of(rules.checked(collection, points, info)):
            await self._call(self._client.upsert, collection, [struct_of(point) for point in request], wait=True)

    async def search(
        self,
        collection: str,
        vector: NDArray[np.float32],
        *,
        where: Mapping[str, Condition],
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Nearest by cosine among the points that match every entry of `where`."""
        if (info := await self._own(collection)) is None:
            return []
        rules.require_vector(collection, vector, info.dim)
        return await self._hits(collection, vector.tolist(), filter_of(where), top_k, fields)

    async def search_lexical(
        self,
        collection: str,
        query: SparseVector,
        *,
        where: Mapping[str, Condition],
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Best by BM25 among the points that match every entry of `where` and have a term of the query."""
        if (info := await self._own(collection)) is None:
            return []
        info.require_lexical(collection)
        if not len(query):
            return []
        within = filter_of(where)
        ranking = {
            "using": rules.LEXICAL,
            "search_params": models.SearchParams(idf=models.IdfCorpusParams(corpus=within)),
        }
        return await self._hits(collection, sparse_of(query), within, top_k, fields, **ranking)

    async def read(
        self, collection: str, keys: Sequence[str], *, where: Mapping[str, Condition]
    ) -> dict[str, dict[str, PayloadValue]]:
        """Payloads by key; keys of points that are not there, or do not match `where`, are missing."""
        if not keys or await self._own(collection) is None:
            return {}
        records, _ = await self._call(
            self._client.scroll, collection, scroll_filter=filter_of(where, keys=keys), limit=len(keys)
        )
        hits = [rules.hit(record.payload or {}, 0.0) for record in records]
        return {hit.key: hit.payload for hit in hits}

    async def latest(
        self, collection: str, *, where: Mapping[str, Condition], by: str, limit: int
    ) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""
        if await self._own(collection) is None:
            return []
        records, _ = await self._call(
            self._client.scroll,
            collection,
            scroll_filter=filter_of(where),
            order_by=models.OrderBy(key=by, direction=models.Direction.DESC),
            limit=limit,
        )
        return [rules.given_payload(record.payload or {}) for record in records]

    async def count(self, collection: str, *, where: Mapping[str, Condition] | None = None) -> int:
        """Exact number of matching points."""
        if await self._info(collection) is None:
            return 0
        counted = await self._call(self._client.count, collection, count_filter=filter_of(where or {}), exact=True)
        return counted.count

    async def delete(
        self,
        collection: str,
        *,
        where: Mapping[str, Condition],
        below: tuple[str, int] | None = None,
    ) -> None:
        """Delete what matches `where` and, if given, whose integer field `below[0]` is less than `below[1]`."""
        rules.require_condition(collection, where)
        if await self._info(collection) is not None:
            selector = models.FilterSelector(filter=filter_of(where, below=below))
            await self._call(self._client.delete, collection, selector, wait=True)

    async def collections(self) -> list[str]:
        """Names of all that were written, in order; collections that others made are left out."""
        named = [each.name for each in (await self._call(self._client.get_collections)).collections]
        return sorted([name for name in named if await self.embedder_of(name)])

    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds, empty if it does not say; None if there is no such collection."""
        if not await self._call(self._client.collection_exists, collection):
            return None
        described = (await self._call(self._client.get_collection, collection)).config
        return str((described.metadata or {}).get("embedder", ""))

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        if await self._info(collection) is None:
            return [], ""
        records, following = await self._call(self._client.scroll, collection, limit=limit, offset=after or None)
        return [rules.stored(record.payload or {}) for record in records], "" if following is None else str(following)

    async def switch_aliases(self, collections: Iterable[str], generation: str) -> list[str]:
        """Point the aliases of collections to a generation, all at once; those that it does not have are left out.

        Returns:
            The aliases that point to it now.
        """
        changes: list[models.CreateAliasOperation | models.DeleteAliasOperation] = []
        aliases = []
        for collection in collections:
            name, alias = generation_name(collection, generation), alias_of(collection)
            if await self._call(self._client.collection_exists, name):
                aliases.append(alias)
                # What an alias pointed to before is let go in the same request.
                changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
                changes.append(
                    models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias))
                )
        if changes:
            await self._call(self._client.update_collection_aliases, changes)
        return aliases

    async def forget(self, collection: str) -> None:
        """Nothing: the server rewrites a segment by itself once a fifth of it is deleted, and its log as that grows."""

    async def close(self) -> None:
        """Release the connections."""
        await self._client.close()

    async def _hits(
        self, collection: str, query: Any, within: models.Filter, top_k: int, fields: Sequence[str] | None, **more: Any
    ) -> list[SearchHit]:
        found = await self._call(
            self._client.query_points,
            collection,
            query=query,
            query_filter=within,
            limit=top_k,
            with_payload=rules.selected(fields),
            **more,
        )
        return [rules.hit(point.payload or {}, point.score) for point in found.points]

    async def _ensure(self, collection: str, dim: int) -> rules.CollectionInfo:
        info = await self._info(collection)
        if collection not in self._ensured:
            if info is None:
                await self._create(collection, dim)
                info = await self._info(collection)
            # Also where it exists: whoever created it may have died before the indexes.
            await self._create_indexes(collection)
            self._ensured.add(collection)
        info = info or rules.CollectionInfo(self._embedder, 0)
        info.require(collection, embedder=self._embedder, dim=dim)
        return info

    async def _info(self, collection: str) -> rules.CollectionInfo | None:
        """What a collection takes, asked once; None if it does not exist."""
        if collection in self._infos:
            return self._infos[collection]
        rules.require_collection_name(collection)
        if not await self._call(self._client.collection_exists, collection):
            return None
        described = (await self._call(self._client.get_collection, collection)).config
        metadata, vectors = described.metadata or {}, described.params.vectors
        if "embedder" not in metadata or not isinstance(vectors, models.VectorParams):
            raise ConfigurationError(
                f"vector collection {collection} on the server was not made by Turntide, or the server is older "
                f"than 1.16 and kept no metadata: name another collection or upgrade"
            )
        lexical = rules.LEXICAL in (described.params.sparse_vectors or {})
        info = rules.CollectionInfo(str(metadata["embedder"]), vectors.size, lexical)
        self._infos[collection] = info
        return info

    async def _own(self, collection: str) -> rules.CollectionInfo | None:
        """As `_info`, if the vectors are of this store's embedder."""
        if info := await self._info(collection):
            info.require(collection, embedder=self._embedder, dim=None)
        return info

    async def _create(self, collection: str, dim: int) -> None:
        """Make the collection; another worker may be doing the same."""
        try:
            await self._call(
                self._client.create_collection,
                collection,
                vectors_config=models.VectorParams(size=dim, distance=models.Distance.COSINE),
                sparse_vectors_config={rules.LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                # Searches are per tenant: a graph within each, none over all.
                hnsw_config=models.HnswConfigDiff(payload_m=16, m=0),
                metadata={"embedder": self._embedder},
            )
        except UnexpectedResponse as error:
            if error.status_code != _CONFLICT:
                raise

    async def _create_indexes(self, collection: str) -> None:
        """Index the payload fields that filters use; again is harmless."""
        keyword = models.KeywordIndexType.KEYWORD
        schemas: dict[str, models.PayloadSchemaType | models.KeywordIndexParams] = {
            field: models.KeywordIndexParams(type=keyword, is_tenant=field == "session_id")
            for field in rules.KEYWORD_FIELDS
        }
        schemas |= dict.fromkeys(rules.INTEGER_FIELDS, models.PayloadSchemaType.INTEGER)
        for field, schema in schemas.items():
            await self._call(self._client.create_payload_index, collection, field, schema, wait=True)

    async def _call(
        self,
        request: Callable[_Arguments, Awaitable[_Result]],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Result:
        """Send one request, again while the server gives no answer.

        Raises:
            StoreUnavailable: No answer after the last try.
            ConfigurationError: The server refuses the request; trying again would not help.
            UnexpectedResponse: What is to be made exists already.
        """
        for delay in (*self._retry_delays, None):
            try:
                return await request(*args, **kwargs)
            except (ResponseHandlingException, ResourceExhaustedResponse) as error:
                cause: Exception = error
            except UnexpectedResponse as error:
                if error.status_code == _CONFLICT:
                    raise
                if error.status_code not in _RETRYABLE_STATUS:
                    raise ConfigurationError(
                        f"Qdrant refused a request with status {error.status_code} ({error.reason_phrase}): check "
                        f"vectors.url and vectors.api_key"
                    ) from error
                cause = error
            if delay is not None:
                await asyncio.sleep(delay.total_seconds())
        raise StoreUnavailable(
            f"Qdrant did not answer in {len(self._retry_delays) + 1} tries ({type(cause).__name__}): check "
            f"vectors.url and the server"
        ) from cause
