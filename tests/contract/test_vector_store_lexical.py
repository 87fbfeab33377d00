"""Words in every vector store: BM25 counted within the scope, any-of filters, reading by key, and old collections."""

import json
from collections.abc import AsyncIterator
from math import log
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from models.errors import ConfigurationError
from models.retrieval.lexical import AVERAGE_TERMS, K1, B, query_vector, terms, weights_of
from streams.index.edge import EdgeStore
from streams.index.server import ServerStore
from streams.ports import Condition, Point, SearchHit, VectorStore

TURNS = "turns"
DIM = 4


@pytest.fixture(params=["edge", "server"])
async def old_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStore]:
    """A store of each kind whose collection was made before there was lexical search."""
    if request.param == "edge":
        folder = tmp_path / "vectors"
        before = EdgeStore(folder, embedder="test")
        await before.ensure(TURNS, DIM)
        await before.close()
        (folder / TURNS / "collection.json").write_text(json.dumps({"embedder": "test", "dim": DIM}))
        made: VectorStore = EdgeStore(folder, embedder="test")
    else:
        client = AsyncQdrantClient(":memory:")
        params = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
        await client.create_collection(TURNS, vectors_config=params, metadata={"embedder": "test"})
        made = ServerStore(client, embedder="test")
    yield made
    await made.close()


def said(text: str, number: int = 0, *, user: str = "u", app: str = "a") -> Point:
    """A point with words; all vectors are alike."""
    payload: dict[str, str | float | bool | None] = {"user_id": user, "app_id": app, "turn": number, "content": text}
    return Point(f"{user}_{number}", np.ones(DIM, dtype=np.float32), payload, weights_of(terms(text)))


async def found(store: VectorStore, query: str, **where: Condition) -> list[SearchHit]:
    """What the words find."""
    return await store.search(TURNS, query_vector(query), where=where, top_k=50)


def bm25(tf: int, length: int, having: int, documents: int) -> float:
    """One term's score, written down once more."""
    weight = tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / AVERAGE_TERMS))
    return weight * log((documents - having + 0.5) / (having + 0.5) + 1)


async def test_scores_are_bm25(store: VectorStore) -> None:
    """Rare terms count more, repeated ones less and less, and in long texts less."""
    await store.upsert(TURNS, [said("boat boat harbour", 0), said("boat", 1), said("harbour tower bridge", 2)])
    hits = await found(store, "boat tower", user_id="u")

    expected = {"u_0": bm25(2, 3, 2, 3), "u_1": bm25(1, 1, 2, 3), "u_2": bm25(1, 3, 1, 3)}
    assert {hit.key: pytest.approx(expected[hit.key], rel=1e-5) for hit in hits} == {h.key: h.score for h in hits}
    assert [hit.key for hit in hits] == sorted(expected, key=lambda key: -expected[key])


async def test_only_points_with_a_term_are_found(store: VectorStore) -> None:
    """A text without a word of the query is no hit, and a query of stop words finds nothing."""
    await store.upsert(TURNS, [said("painting sunrises", 0), said("", 1), said("the and of", 2)])

    assert [hit.key for hit in await found(store, "She painted a sunrise?", user_id="u")] == ["u_0"]
    assert await found(store, "what was that of the", user_id="u") == []


async def test_other_users_words_change_nothing(store: VectorStore) -> None:
    """Neither hits nor scores: how rare a word is, is counted within the scope."""
    mine = [said("boat race", 0), said("tower", 1)]
    await store.upsert(TURNS, mine)
    alone = [(hit.key, hit.score) for hit in await found(store, "boat tower", user_id="u")]
    await store.upsert(TURNS, [said("boat boat boat", n, user="other") for n in range(20)])
    among_others = [(hit.key, hit.score) for hit in await found(store, "boat tower", user_id="u")]

    assert [key for key, _ in alone] == ["u_1", "u_0"]
    assert alone == among_others


async def test_only_the_fields_asked_for_come(store: VectorStore) -> None:
    """None gives all, names give those, nothing gives the key alone; with words as with vectors."""
    point = said("boat", 0)
    await store.upsert(TURNS, [point])
    where: dict[str, Condition] = {"user_id": "u"}
    searches: list[list[SearchHit]] = []
    for fields in (None, ["turn"], []):
        searches.append(await store.search(TURNS, point.vector, where=where, top_k=1, fields=fields))
        searches.append(await store.search(TURNS, query_vector("boat"), where=where, top_k=1, fields=fields))

    assert [hits[0].payload for hits in searches] == [point.payload] * 2 + [{"turn": 0}] * 2 + [{}] * 2
    assert {"u_0"} == {hits[0].key for hits in searches}


async def test_any_of_several_values(store: VectorStore) -> None:
    """Search, count and latest let through each of the values and no other; any of none is refused."""
    await store.upsert(TURNS, [said("boat", n, app=app) for n, app in enumerate(["a", "b", "c", "a b"])])
    either: Condition = ("a", "c")

    assert {hit.key for hit in await found(store, "boat", app_id=either)} == {"u_0", "u_2"}
    assert await store.count(TURNS, where={"app_id": either, "turn": (1, 9)}) == 1
    assert [p["app_id"] for p in await store.latest(TURNS, where={"app_id": ("b",)}, by="turn", limit=9)] == ["b"]
    with pytest.raises(ConfigurationError, match="any of no values"):
        await found(store, "boat", app_id=())


async def test_reading_by_key_keeps_to_the_filter(store: VectorStore) -> None:
    """Points that are not there, or not in the scope, are missing."""
    mine, other = said("boat", 0), said("boat", 0, user="other")
    await store.upsert(TURNS, [mine, other, said("tower", 1)])
    read = await store.read(TURNS, ["u_0", "other_0", "u_9"], where={"user_id": "u"})

    assert {"u_0": mine.payload} == read
    assert await store.read(TURNS, [], where={"user_id": "u"}) == {}


async def test_an_old_collection_says_what_to_do(old_store: VectorStore) -> None:
    """Words are neither taken nor searched where there is no place for them; all else works as before."""
    plain = Point("plain", np.ones(DIM, dtype=np.float32), {"user_id": "u"})
    await old_store.upsert(TURNS, [plain])

    with pytest.raises(ConfigurationError, match=r"turntide ops reindex.*turntide ops reset index"):
        await found(old_store, "boat", user_id="u")
    with pytest.raises(ConfigurationError, match="older than lexical search"):
        await old_store.upsert(TURNS, [said("boat", 0)])
    assert await old_store.count(TURNS) == 1
