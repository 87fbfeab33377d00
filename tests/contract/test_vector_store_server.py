"""What the server store does when the server does not answer, refuses, or holds something else."""

import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from msgspec.structs import replace
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from models.errors import ConfigurationError, StoreUnavailable
from models.retrieval.lexical import query_vector, terms, weights_of
from streams.index import server
from streams.index.points import CollectionInfo
from streams.index.server import ServerStore
from streams.ports import Point
from tests.support.qdrant_wire import WireCheckedStore

AT_ONCE = (timedelta(0),) * 2
POINT = Point("a_1", np.ones(4, dtype=np.float32), {"session_id": "a", "turn": 1})


def status(code: int) -> UnexpectedResponse:
    """An answer with this status."""
    return UnexpectedResponse(code, "reason", b"", httpx.Headers())


UNREACHABLE = ResponseHandlingException(httpx.ConnectError("refused"))


class FailingClient(AsyncQdrantClient):
    """Qdrant's in-memory imitation whose `upsert` fails as told, then works."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__(":memory:")
        self.failures = list(failures)
        self.requests: list[int] = []

    async def upsert(self, collection_name: str, points: Any, *args: Any, **kwargs: Any) -> models.UpdateResult:
        """Fail once per failure left."""
        self.requests.append(len(points))
        if self.failures:
            raise self.failures.pop(0)
        return await super().upsert(collection_name, points, *args, **kwargs)


@pytest.fixture
async def memory_client() -> AsyncIterator[AsyncQdrantClient]:
    """Qdrant's in-memory imitation."""
    client = AsyncQdrantClient(":memory:")
    yield client
    await client.close()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Garbage in cycles stays until somebody asks for it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
async def test_what_was_sent_does_not_wait_for_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client's answer is in a cycle with its request, which holds the points as JSON."""
    sent: list[weakref.ref[httpx.Request]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(weakref.ref(request))
        return httpx.Response(
            200, json={"result": {"operation_id": 0, "status": "completed"}, "status": "ok", "time": 0}
        )

    async def ensured(*_args: Any) -> CollectionInfo:
        return CollectionInfo("test", 4)

    wire = {"transport": httpx.MockTransport(answer), "check_compatibility": False}
    store = ServerStore(AsyncQdrantClient(url="http://127.0.0.1:1", **wire), embedder="test")  # type: ignore[arg-type]
    monkeypatch.setattr(store, "ensure", ensured)
    monkeypatch.setattr(server, "COLLECTED_AFTER_BYTES", 2_048)  # two points
    for _ in range(20):
        await store.upsert("turns", [POINT])
    await store.close()

    assert len(sent) == 20
    assert sum(request() is not None for request in sent) <= 2


@pytest.mark.parametrize("failure", [UNREACHABLE, status(500), status(503), status(429)])
async def test_a_call_without_an_answer_is_tried_again(failure: Exception) -> None:
    """A restart of the server costs the role a wait, no more."""
    client = FailingClient(failure, failure)
    store = ServerStore(client, embedder="test", retry_delays=AT_ONCE)
    await store.upsert("turns", [POINT])

    assert (await store.count("turns"), len(client.requests)) == (1, 3)


@pytest.mark.parametrize(
    ("failures", "error", "told"),
    [
        ([UNREACHABLE] * 3, StoreUnavailable, r"3 tries \(ResponseHandlingException\).*vectors\.url"),
        *(([status(code)], ConfigurationError, f"status {code}.*api_key") for code in (400, 401, 403, 404)),
    ],
    ids=["outage", "400", "401", "403", "404"],
)
async def test_what_lasts_or_is_refused_is_reported(
    failures: list[Exception], error: type[Exception], told: str
) -> None:
    """After the last try; at once where waiting would hide a wrong key or address."""
    client = FailingClient(*failures)
    store = ServerStore(client, embedder="test", retry_delays=AT_ONCE)

    with pytest.raises(error, match=told):
        await store.upsert("turns", [POINT])
    assert len(client.requests) == len(failures)
    await store.upsert("turns", [POINT])
    assert await store.count("turns") == 1


async def test_a_collection_that_another_worker_creates_meanwhile_is_used(
    memory_client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers start together: the second one's create is a conflict, and no failure."""
    create = memory_client.create_collection

    async def created_already(*args: Any, **kwargs: Any) -> None:
        await create(*args, **kwargs)
        raise status(409)

    monkeypatch.setattr(memory_client, "create_collection", created_already)
    store = ServerStore(memory_client, embedder="test", retry_delays=AT_ONCE)
    await store.upsert("turns", [POINT])

    assert await store.count("turns") == 1


async def test_indexes_are_made_also_where_the_collection_exists(
    memory_client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that died between the two leaves a collection that would be scanned for every search."""
    indexed: list[str] = []

    async def recorded(_collection: str, field: str, *_args: Any, **_kwargs: Any) -> None:
        indexed.append(field)

    monkeypatch.setattr(memory_client, "create_payload_index", recorded)
    for _restart in range(2):
        store = ServerStore(memory_client, embedder="test")
        await store.upsert("turns", [POINT])
        await store.upsert("turns", [POINT])

    assert indexed == ["session_id", "user_id", "app_id", "owner_key", "turn", "event_offset", "revision"] * 2


async def test_vectors_of_another_embedder_are_refused(memory_client: AsyncQdrantClient) -> None:
    """Also with the same dimension, and for reading as for writing."""
    await ServerStore(memory_client, embedder="wordllama").upsert("turns", [POINT])
    other = ServerStore(memory_client, embedder="minilm")

    with pytest.raises(ConfigurationError, match=r"wordllama with 4 dimensions.*minilm"):
        await other.upsert("turns", [POINT])
    with pytest.raises(ConfigurationError, match=r"set vectors\.embedder back"):
        await other.search("turns", POINT.vector, where={}, top_k=1)


async def test_a_collection_of_somebody_else_is_not_touched(memory_client: AsyncQdrantClient) -> None:
    """A collection of the same name without our metadata is refused."""
    params = models.VectorParams(size=4, distance=models.Distance.COSINE)
    await memory_client.create_collection("turns", vectors_config=params)

    with pytest.raises(ConfigurationError, match="was not created by Turntide"):
        await ServerStore(memory_client, embedder="test").upsert("turns", [POINT])


async def test_every_request_of_ours_is_valid_for_rest_and_grpc() -> None:
    """Prepared by the client's own code up to the connection; the suite of the port goes the same way."""
    store = WireCheckedStore(embedder="test")
    words = weights_of(terms("boats on the lake"))
    await store.upsert("turns", [replace(POINT, lexical=words)])
    await store.search("turns", POINT.vector, where={"session_id": ("a", "b"), "user_id": None}, top_k=1)
    await store.search("turns", query_vector("boats"), where={"session_id": "a"}, top_k=1)
    await store.latest("turns", where={}, by="turn", limit=1)
    await store.count("turns")
    await store.delete("turns", where={"session_id": "a"}, below=("turn", 1))
    await store.rename("turns", {"a_1": "a_2"})
    await store.collections()
    await store.switch_aliases(["turns"], "")
    await store.close()

    assert store.sent == {
        "collection_exists", "get_collection", "get_collections", "create_collection", "create_payload_index",
        "update_collection_aliases", "upsert", "query_points", "scroll", "count", "retrieve", "delete",
    }  # fmt: skip
