"""Qdrant server, the production vector store: batches, retries, one collection for all tenants."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from models.errors import ConfigurationError, StoreUnavailable
from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.index.generations import generation_name
from streams.index.qdrant import Fields, Payload, QdrantStore
from streams.ports import Point, Query, SearchHit, Where

RETRY_DELAYS = tuple(timedelta(milliseconds=ms) for ms in (100, 300, 1_000, 3_000))
"""Waits between tries: a restart or a leader election is over by then, a lasting outage is the role's to report."""
REQUEST_TIMEOUT = timedelta(seconds=10)

MAX_POINTS_PER_REQUEST = 256
MAX_BYTES_PER_REQUEST = 8 * 1024 * 1024
"""A quarter of what Qdrant accepts by default (`max_request_size_mb: 32`)."""
COLLECTED_AFTER_BYTES = 16 * 1024 * 1024
"""Upserts between two runs of the garbage collector. An answer of the client is in a cycle with its request, which
holds the points as JSON: a role that waits for `gc`'s own threshold keeps 150 MB of them."""
_CONFLICT = 409
_RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_TERMS = rules.Terms(
    models.FieldCondition,
    models.Filter,
    models.Range,
    models.DatetimeRange,
    lambda value: models.MatchValue(value=value),
    lambda values: models.MatchAny(any=values),
    lambda field: models.IsNullCondition(is_null=models.PayloadField(key=field)),
    lambda ids: models.HasIdCondition(has_id=ids),
    lambda indices, values: models.SparseVector(indices=indices, values=values),
)


def alias_of(collection: str) -> str:
    """Name under which readers from outside find a collection of the generation that serves."""
    return f"{collection}-current"


class ServerStore(QdrantStore):
    """A `streams.ports.VectorStore` on a Qdrant server.

    1.16 or later, for the collection's metadata; 1.19 or later, to count how rare a term is within the scope alone.
    """

    def __init__(
        self, client: AsyncQdrantClient, *, embedder: str, retry_delays: Sequence[timedelta] = RETRY_DELAYS
    ) -> None:
        super().__init__(embedder)
        self._client = client
        self._retry_delays = retry_delays
        self._infos: dict[str, rules.CollectionInfo] = {}
        self._ensured: set[str] = set()
        self._sent_bytes = 0

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

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return.

        A batch larger than a request goes out in several; if one fails, repeating the batch is harmless.
        """
        if not points:
            return
        info = await self.ensure(collection, len(points[0].vector))
        for request, size_bytes in _requests_of(rules.checked(collection, points, info)):
            batch = [
                models.PointStruct(
                    id=rules.point_id(point.key), vector=_TERMS.vectors(point), payload=rules.stored_payload(point)
                )
                for point in request
            ]
            await self._call(self._client.upsert, collection, batch, wait=True)
            self._sent_bytes += size_bytes
            if self._sent_bytes >= COLLECTED_AFTER_BYTES:
                self._sent_bytes = 0
                gc.collect()

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

    async def switch_aliases(self, collections: Iterable[str], generation: str) -> list[str]:
        """Point the aliases of collections that a generation has to it, all at once; returns those aliases."""
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

    async def _ranked(self, collection: str, query: Query, where: Where, top_k: int, fields: Fields) -> list[SearchHit]:
        within = models.Filter(must=_TERMS.conditions(where))
        ranking: dict[str, Any] = {}
        if isinstance(query, SparseVector):
            idf = models.SearchParams(idf=models.IdfCorpusParams(corpus=within))
            ranking = {"using": rules.LEXICAL, "search_params": idf}
        found = await self._call(
            self._client.query_points,
            collection,
            query=_TERMS.vector(query),
            query_filter=within,
            limit=top_k,
            with_payload=rules.selected(fields),
            **ranking,
        )
        return [rules.hit(point.payload or {}, point.score) for point in found.points]

    async def _scrolled(self, collection: str, where: Where, limit: int, *, by: str = "") -> list[Payload]:
        order = models.OrderBy(key=by, direction=models.Direction.DESC) if by else None
        within = models.Filter(must=_TERMS.conditions(where))
        records, _ = await self._call(
            self._client.scroll, collection, scroll_filter=within, order_by=order, limit=limit
        )
        return [record.payload or {} for record in records]

    async def _counted(self, collection: str, where: Where) -> int:
        within = models.Filter(must=_TERMS.conditions(where))
        return (await self._call(self._client.count, collection, count_filter=within, exact=True)).count

    async def _delete(self, collection: str, where: Where, below: tuple[str, int] | None) -> None:
        selector = models.FilterSelector(filter=models.Filter(must=_TERMS.conditions(where, below)))
        await self._call(self._client.delete, collection, selector, wait=True)

    async def _rename(self, collection: str, keys: Mapping[str, str]) -> None:
        ids = [rules.point_id(key) for key in keys]
        read = await self._call(self._client.retrieve, collection, ids, with_payload=True, with_vectors=True)
        payloads = [rules.renamed(each.payload or {}, keys) for each in read]
        batch = [
            models.PointStruct(
                id=rules.point_id(str(payload[rules.KEY_FIELD])), vector=each.vector or {}, payload=payload
            )
            for each, payload in zip(read, payloads, strict=True)
        ]
        if batch:
            await self._call(self._client.upsert, collection, batch, wait=True)
            await self._call(self._client.delete, collection, models.PointIdsList(points=[*ids]), wait=True)

    async def _paged(self, collection: str, after: str, limit: int) -> tuple[list[Payload], str]:
        records, following = await self._call(self._client.scroll, collection, limit=limit, offset=after or None)
        return [record.payload or {} for record in records], "" if following is None else str(following)

    async def ensure(self, collection: str, dim: int) -> rules.CollectionInfo:
        """Create the collection, or check that it takes vectors of this size from this embedder."""
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
                f"vector collection {collection} on the server was not created by Turntide, or the server is older "
                f"than 1.16 and stores no metadata: use another collection or upgrade"
            )
        lexical = rules.LEXICAL in (described.params.sparse_vectors or {})
        info = rules.CollectionInfo(str(metadata["embedder"]), vectors.size, lexical)
        self._infos[collection] = info
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


def _requests_of(points: Sequence[Point]) -> Iterator[tuple[list[Point], int]]:
    """Cut a batch into requests that the server accepts, with their estimated bytes; a point is never cut."""
    request: list[Point] = []
    size = 0
    for point in points:
        point_bytes = _estimated_bytes(point)
        if request and (len(request) == MAX_POINTS_PER_REQUEST or size + point_bytes > MAX_BYTES_PER_REQUEST):
            yield request, size
            request, size = [], 0
        request.append(point)
        size += point_bytes
    if request:
        yield request, size


def _estimated_bytes(point: Point) -> int:
    """Upper estimate of a point in JSON: 14 characters per number, 6 per escaped character."""
    texts = (value for value in point.payload.values() if isinstance(value, str))
    numbers = len(point.vector) + (2 * len(point.lexical) if point.lexical else 0)
    return 14 * numbers + 6 * sum(map(len, texts)) + 1_024
