"""Qdrant server, the production vector store: batches, retries, one collection for all tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from models.errors import ConfigurationError, StoreUnavailable
from streams.ports import Condition, Hit, PayloadValue, Point
from streams.vectors import points as rules

MAX_POINTS_PER_REQUEST = 256
MAX_BYTES_PER_REQUEST = 8 * 1024 * 1024
"""A quarter of what Qdrant accepts by default (`max_request_size_mb: 32`)."""
RETRY_DELAYS = tuple(timedelta(milliseconds=ms) for ms in (100, 300, 1_000, 3_000))
"""Waits between tries: a restart or a leader election is over by then, a lasting outage is the role's to report."""
REQUEST_TIMEOUT = timedelta(seconds=10)

_CONFLICT = 409
_RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _condition(field: str, value: Condition) -> models.Condition:
    match value:
        case bool():
            raise rules.boolean_condition(field)
        case None:
            return models.IsNullCondition(is_null=models.PayloadField(key=field))
        case (low, high):
            return models.FieldCondition(key=field, range=models.Range(gte=low, lte=high))
        case float():
            return models.FieldCondition(key=field, range=models.Range(gte=value, lte=value))
        case _:
            return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _filter(where: Mapping[str, Condition], below: tuple[str, int] | None = None) -> models.Filter:
    conditions = [_condition(field, value) for field, value in where.items()]
    if below:
        conditions.append(models.FieldCondition(key=below[0], range=models.Range(lt=below[1])))
    return models.Filter(must=conditions)


def _estimated_bytes(point: Point) -> int:
    """Upper estimate of a point in JSON: 14 characters per number, 6 per escaped character."""
    texts = (value for value in point.payload.values() if isinstance(value, str))
    return 14 * len(point.vector) + 6 * sum(map(len, texts)) + 1_024


def _requests(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Cut a batch into requests that the server accepts; a point is never cut."""
    request: list[Point] = []
    size = 0
    for point in points:
        point_bytes = _estimated_bytes(point)
        if request and (len(request) == MAX_POINTS_PER_REQUEST or size + point_bytes > MAX_BYTES_PER_REQUEST):
            yield request
            request, size = [], 0
        request.append(point)
        size += point_bytes
    if request:
        yield request


class ServerStore:
    """A `streams.ports.VectorStore` on a Qdrant server (1.16 or later, for the collection's metadata).

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
        self._dims: dict[str, int] = {}
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
        if collection not in self._ensured:
            if await self._dim(collection) is None:
                await self._create(collection, dim)
            # Also where it exists: whoever created it may have died before the indexes.
            await self._create_indexes(collection)
            self._ensured.add(collection)
        held = rules.CollectionInfo(self._embedder, await self._dim(collection) or 0)
        held.require(collection, embedder=self._embedder, dim=dim)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return.

        A batch larger than a request goes out in several; if one fails, repeating the batch is harmless.
        """
        if not points:
            return
        dim = len(points[0].vector)
        await self.ensure(collection, dim)
        for request in _requests(rules.checked(collection, points, dim)):
            structs = [
                models.PointStruct(
                    id=rules.point_id(point.key), vector=point.vector.tolist(), payload=rules.stored_payload(point)
                )
                for point in request
            ]
            await self._call(self._client.upsert, collection, structs, wait=True)

    async def search(
        self, collection: str, vector: NDArray[np.float32], *, where: Mapping[str, Condition], top_k: int
    ) -> list[Hit]:
        """Nearest by cosine among the points that match every entry of `where`."""
        if (dim := await self._dim(collection)) is None:
            return []
        rules.require_vector(collection, vector, dim)
        found = await self._call(
            self._client.query_points,
            collection,
            query=vector.tolist(),
            query_filter=_filter(where),
            limit=top_k,
        )
        return [rules.hit(point.payload or {}, point.score) for point in found.points]

    async def latest(
        self, collection: str, *, where: Mapping[str, Condition], by: str, limit: int
    ) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""
        if await self._dim(collection) is None:
            return []
        records, _ = await self._call(
            self._client.scroll,
            collection,
            scroll_filter=_filter(where),
            order_by=models.OrderBy(key=by, direction=models.Direction.DESC),
            limit=limit,
        )
        return [rules.given_payload(record.payload or {}) for record in records]

    async def count(self, collection: str, *, where: Mapping[str, Condition] | None = None) -> int:
        """Exact number of matching points."""
        if await self._dim(collection) is None:
            return 0
        counted = await self._call(self._client.count, collection, count_filter=_filter(where or {}), exact=True)
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
        if await self._dim(collection) is not None:
            selector = models.FilterSelector(filter=_filter(where, below))
            await self._call(self._client.delete, collection, selector, wait=True)

    async def close(self) -> None:
        """Release the connections."""
        await self._client.close()

    async def _dim(self, collection: str) -> int | None:
        """Dimension of a collection of this embedder, asked once; None if it does not exist."""
        if collection in self._dims:
            return self._dims[collection]
        rules.require_collection_name(collection)
        if not await self._call(self._client.collection_exists, collection):
            return None
        described = await self._call(self._client.get_collection, collection)
        metadata = described.config.metadata or {}
        vectors = described.config.params.vectors
        if "embedder" not in metadata or not isinstance(vectors, models.VectorParams):
            raise ConfigurationError(
                f"vector collection {collection} on the server was not made by Turntide, or the server is older "
                f"than 1.16 and kept no metadata: name another collection or upgrade"
            )
        info = rules.CollectionInfo(str(metadata["embedder"]), vectors.size)
        info.require(collection, embedder=self._embedder, dim=None)
        self._dims[collection] = info.dim
        return info.dim

    async def _create(self, collection: str, dim: int) -> None:
        """Make the collection; another worker may be doing the same."""
        try:
            await self._call(
                self._client.create_collection,
                collection,
                vectors_config=models.VectorParams(size=dim, distance=models.Distance.COSINE),
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
