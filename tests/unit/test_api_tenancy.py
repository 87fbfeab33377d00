"""The border below the routes: a store gives a request nothing but its caller's apps."""

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from models.retrieval.lexical import query_vector, terms, weights_of
from streams.api.assembly import ScopedStore
from streams.index.server import ServerStore
from streams.ports import Point, VectorStore
from tests.support.apps_indexed import asked_by

NEAR = np.array([1, 0], dtype=np.float32)
IN = "things"


@pytest.fixture
async def store() -> VectorStore:
    """One point of each of three apps, all alike."""
    made = ServerStore(AsyncQdrantClient(":memory:"), embedder="none")
    words = weights_of(terms("pelicans"))
    await made.upsert(
        IN, [Point(app, NEAR, {"app_id": app, "user_id": "u", "turn": 1}, words) for app in ("a", "b", "c")]
    )
    return ScopedStore(made)


async def apps_read(store: VectorStore, **where: str) -> list[set[str]]:
    """Whose points each way of reading gives."""
    asked = query_vector("pelicans")
    return [
        {str(hit.payload["app_id"]) for hit in await store.search(IN, NEAR, where=where, top_k=9)},
        {str(hit.payload["app_id"]) for hit in await store.search(IN, asked, where=where, top_k=9)},
        set(await store.read(IN, ["a", "b", "c"], where=where)),
        {str(payload["app_id"]) for payload in await store.latest(IN, where=where, by="turn", limit=9)},
    ]


@pytest.mark.parametrize("apps", [("a",), ("b", "c"), ("nobodys",)])
async def test_a_caller_reads_its_own_apps(store: VectorStore, apps: tuple[str, ...]) -> None:
    """Whatever a memory asks for, by every way of reading."""
    with asked_by(*apps):
        found = await apps_read(store, user_id="u")
        counts = [await store.count(IN), await store.count(IN, where={"user_id": "u"})]
        stored, _ = await store.page(IN, "", 9)

    own = {"a", "b", "c"} & set(apps)
    assert [own] * 4 == found
    assert {each.key for each in stored} == own
    assert [len(own)] * 2 == counts


async def test_what_names_another_app_gives_nothing(store: VectorStore) -> None:
    """Also where a memory passes on what the request said, and beside an own one: not even a part of it."""
    with asked_by("a"):
        assert [set()] * 4 == await apps_read(store, app_id="b")
        assert await store.count(IN, where={"app_id": "b"}) == 0
        assert await store.latest(IN, where={"app_id": ("a", "b")}, by="turn", limit=9) == []


async def test_the_role_itself_reads_and_writes_everything(store: VectorStore) -> None:
    """Outside of a request, and for a caller of all apps."""
    everybody = {"a", "b", "c"}
    with asked_by():
        assert [everybody] * 4 == await apps_read(store)
    assert [everybody] * 4 == await apps_read(store)
    await store.delete(IN, where={"app_id": "c"})
    assert [everybody - {"c"}] * 4 == await apps_read(store)
