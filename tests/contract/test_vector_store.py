"""What every vector store must keep to: the same tests on Qdrant Edge and on the server's client."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from models.errors import ConfigurationError
from models.retrieval.lexical import query_vector, terms, weights_of
from streams.ports import Condition, Either, Point, VectorStore

DIM = 8
TURNS = "turns"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEIRD_IDS = [
    "naïve 東京 🌙",
    "a\"b'c\\d",
    "../../etc",
    "x" * 256,
    "a b\tc",
    "%2F/?#",
    "null",
    "1",
    "a",
    "A",
    "a ",
    "aa",
    "ä",
]


def unit(*numbers: float) -> NDArray[np.float32]:
    """A vector of unit length that begins with these numbers."""
    vector = np.zeros(DIM, dtype=np.float32)
    vector[: len(numbers)] = numbers
    return vector / np.float32(np.linalg.norm(vector) or 1)


def point(session: str, turn: int, *numbers: float, **payload: str | float | bool | None) -> Point:
    """A turn's point; its vector is `unit(numbers)`, by default different for every turn."""
    key = f"{session}_{turn}"
    return Point(
        key, unit(*(numbers or (1, turn / 10))), {"session_id": session, "user_id": "u", "turn": turn, **payload}
    )


async def turns_of(store: VectorStore, **where: Condition) -> list[int]:
    """Turn numbers of the matching points, ascending."""
    found = await store.latest(TURNS, where=where, by="turn", limit=1_000)
    return sorted(int(payload["turn"] or 0) for payload in found)


async def test_nothing_is_found_before_the_first_write(store: VectorStore) -> None:
    """A reader that comes first sees an empty collection, not an error; an empty batch makes none."""
    await store.delete(TURNS, where={"session_id": "a"})
    await store.upsert(TURNS, [])

    assert await store.search(TURNS, query_vector("boats"), where={"session_id": "a"}, top_k=5) == []
    assert await store.search(TURNS, unit(1), where={"session_id": "a"}, top_k=5) == []
    assert await store.latest(TURNS, where={"session_id": "a"}, by="turn", limit=5) == []
    assert await store.count(TURNS) == 0


@pytest.mark.behaviour("risk-24", "card-05")
async def test_nearest_come_first_with_cosine_and_payload(store: VectorStore) -> None:
    """The order, score and payload of hits; lengths of vectors do not count."""
    far, near = point("a", 1, 0.6, 0.8), point("a", 2, 1, content="hello", risk=0.25, flagged=True, upstream=None)
    await store.upsert(TURNS, [far, Point(near.key, near.vector * 3, near.payload), point("a", 3, -1)])
    hits = await store.search(TURNS, unit(1) * 2, where={"session_id": "a"}, top_k=2)

    assert [hit.key for hit in hits] == ["a_2", "a_1"]
    np.testing.assert_allclose([hit.score for hit in hits], [1.0, 0.6], atol=1e-6)
    assert near.payload == hits[0].payload


async def test_the_same_key_again_replaces(store: VectorStore) -> None:
    """Repeating a batch changes nothing; the last write of a key counts, in a batch and across batches."""
    await store.upsert(TURNS, [point("a", 1, 1, content="first"), point("a", 2)])
    await store.upsert(TURNS, [point("a", 1, 0, 1, content="second"), point("a", 1, 0, 0, 1, content="third")])
    await store.upsert(TURNS, [point("a", 2)])
    hits = await store.search(TURNS, unit(0, 0, 1), where={"session_id": "a"}, top_k=1)

    assert await store.count(TURNS) == 2
    assert (hits[0].key, hits[0].payload["content"]) == ("a_1", "third")
    assert hits[0].score == pytest.approx(1.0, abs=1e-6)


async def test_weird_ids_are_kept_apart(store: VectorStore) -> None:
    """Whatever a producer names a session, it is found under that name alone."""
    await store.upsert(TURNS, [point(name, 0, 1) for name in WEIRD_IDS])
    for gone, session in enumerate(WEIRD_IDS, 1):
        hits = await store.search(TURNS, unit(1), where={"session_id": session}, top_k=50)
        await store.delete(TURNS, where={"session_id": session})

        assert [(f"{session}_0", session)] == [(hit.key, hit.payload["session_id"]) for hit in hits]
        assert len(WEIRD_IDS) - gone == await store.count(TURNS)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"turn": 3}, [3]),
        ({"turn": (2, 4)}, [2, 3, 4]),
        ({"turn": (4, 4)}, [4]),
        ({"turn": (7, 6)}, []),
        ({"risk": 0.5}, [5]),
        ({"risk": None}, [0, 2, 4, 6]),
        ({"risk": None, "turn": (1, 4)}, [2, 4]),
        ({"user_id": "u", "session_id": "a", "turn": (5, 99)}, [5, 6]),
        ({"user_id": "other"}, []),
        ({"said_at": (AT, AT + timedelta(days=2))}, [0, 1, 2]),
        ({"said_at": (AT + timedelta(days=1, seconds=1), AT + timedelta(days=9))}, [2, 3, 4, 5, 6]),
        ({"turn": (1, 4), "when": Either(({"risk": None, "turn": (0, 2)}, {"turn": 3}))}, [2, 3]),
    ],
)
async def test_every_entry_of_a_filter_must_hold(
    store: VectorStore, where: dict[str, Condition], expected: list[int]
) -> None:
    """Equal values, null, closed ranges of numbers and times, either, several at once; in search as in count."""
    said = [(AT + timedelta(days=t)).isoformat() for t in range(7)]
    points = [point("a", t, risk=t / 10 if t % 2 else None, said_at=said[t]) for t in range(7)]
    await store.upsert(TURNS, points)
    hits = await store.search(TURNS, unit(1), where=where, top_k=50)

    assert expected == await turns_of(store, **where)
    assert set(expected) == {hit.payload["turn"] for hit in hits}
    assert len(expected) == await store.count(TURNS, where=where)


async def test_delete_below_keeps_the_bound_and_other_sessions(store: VectorStore) -> None:
    """`below` is exclusive; a session's clean-up touches no other, and a forgotten filter empties no collection."""
    await store.upsert(TURNS, [point(session, turn) for session in "ab" for turn in range(10)])
    await store.delete(TURNS, where={"session_id": "a"}, below=("turn", 7))
    with pytest.raises(ConfigurationError, match="give a condition"):
        await store.delete(TURNS, where={}, below=("turn", 5))

    assert await turns_of(store, session_id="a") == [7, 8, 9]
    assert list(range(10)) == await turns_of(store, session_id="b")


async def test_latest_are_the_highest_first(store: VectorStore) -> None:
    """Readers of the last turns get exactly those, with their payloads as given."""
    points = [point("a", turn, content=f"turn {turn}") for turn in (3, 100, 20, 7)]
    await store.upsert(TURNS, [*points, point("b", 500)])
    found = await store.latest(TURNS, where={"session_id": "a"}, by="turn", limit=3)

    assert [points[1].payload, points[2].payload, points[3].payload] == found


@pytest.mark.parametrize("wrong", [np.ones(DIM + 1), np.ones((1, DIM)), np.full(DIM, np.nan), np.full(DIM, np.inf)])
async def test_vectors_that_cannot_be_compared_are_refused(store: VectorStore, wrong: NDArray[np.float64]) -> None:
    """Another dimension or a number that is none: the whole batch is refused and nothing is written."""
    await store.upsert(TURNS, [point("a", 1)])
    vector = wrong.astype(np.float32)

    with pytest.raises(ConfigurationError, match="turns"):
        await store.upsert(TURNS, [point("a", 2), Point("a_3", vector, {})])
    with pytest.raises(ConfigurationError, match="turns"):
        await store.search(TURNS, vector, where={}, top_k=1)
    assert await store.count(TURNS) == 1


async def test_collections_do_not_mix(store: VectorStore) -> None:
    """Each collection has its own points and may have its own dimension."""
    await store.upsert(TURNS, [point("a", 1)])
    await store.upsert("episodes", [Point("e", np.ones(3, dtype=np.float32), {"session_id": "a"})])

    assert (await store.count(TURNS), await store.count("episodes")) == (1, 1)
    with pytest.raises(ConfigurationError, match="8 dimensions"):
        await store.upsert(TURNS, [Point("e", np.ones(3, dtype=np.float32), {"session_id": "a"})])


async def test_a_batch_larger_than_a_request_arrives_whole(store: VectorStore) -> None:
    """More points than one request takes, with long content among them."""
    points = [point("a", turn, content="x" * (200_000 if turn % 50 == 0 else 10)) for turn in range(700)]
    await store.upsert(TURNS, points)

    assert list(range(700)) == await turns_of(store, session_id="a")


async def test_what_is_not_embedded_is_found_by_its_payload_alone(store: VectorStore) -> None:
    """Also when it has another key, its collection is written anew, and a field comes that no point had."""
    await store.upsert(TURNS, [replace(point("a", 1), embedded=False), point("a", 2, 1)])
    before = await store.latest(TURNS, where={"session_id": "a"}, by="revision", limit=5)
    await store.upsert(TURNS, [replace(point("a", 3, revision=7), embedded=False)])
    await store.rename(TURNS, {"a_1": "b_1"})
    await store.forget(TURNS)
    hits = await store.search(TURNS, unit(1), where={"session_id": "a"}, top_k=5)
    latest = await store.latest(TURNS, where={"session_id": "a"}, by="revision", limit=5)

    assert (before, [hit.key for hit in hits], [each["turn"] for each in latest]) == ([], ["a_2"], [3])
    assert {"b_1", "a_3"} == set(await store.read(TURNS, ["a_1", "b_1", "a_3"], where={"session_id": "a"}))


async def test_points_get_new_keys(store: VectorStore) -> None:
    """With their vectors, words and payloads; what is not there is passed, and doing it again changes nothing."""
    words = weights_of(terms("boats on the lake"))
    await store.upsert(TURNS, [point("a", 1, 0.6, 0.8, content="hello"), replace(point("a", 2, 1), lexical=words)])
    names = {"a_1": "app/a_1", "a_2": "app/a_2", "nobody_1": "app/nobody_1"}
    await store.rename("nowhere", names)
    for _ in range(2):
        await store.rename(TURNS, names)
    hits = await store.search(TURNS, unit(1), where={"session_id": "a"}, top_k=5)
    said = await store.search(TURNS, query_vector("boats"), where={"session_id": "a"}, top_k=5)
    page, _ = await store.page(TURNS, "", 9)

    assert [hit.key for hit in hits] == ["app/a_2", "app/a_1"]
    np.testing.assert_allclose([hit.score for hit in hits], [1.0, 0.6], atol=1e-6)
    assert hits[1].payload["content"] == "hello"
    assert [hit.key for hit in said] == ["app/a_2"]
    assert {each.key for each in page} == {"app/a_1", "app/a_2"}
