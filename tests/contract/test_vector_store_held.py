"""Users whose points Qdrant Edge holds in memory are answered as the engine answers, whatever is written meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from models.errors import ConfigurationError
from streams.index import held_points
from streams.index.edge import EdgeStore
from streams.index.held_points import FEWEST_HELD, IDLE_S, HeldPoints, HeldUser
from streams.ports import Keys, Point, Where

DIM = 16
TURNS = "turns"
SIZE = 3 * FEWEST_HELD
OWN: Where = {"user_id": "u", "app_id": ("a",)}
SOME = Keys([f"s{n % 7}_{n}" for n in range(0, SIZE, 9)])


def point(number: int, *, user: str = "u", app: str = "a", drawn: int = 0) -> Point:
    """Turn of one of seven sessions; its vector is drawn by its number and `drawn`, of any length."""
    vector = np.random.default_rng([number, drawn]).normal(size=DIM).astype(np.float32)
    session = f"s{number % 7}"
    return Point(
        f"{session}_{number}",
        vector,
        {"user_id": user, "app_id": app, "session_id": session, "turn": number, "drawn": drawn},
    )


async def answers(store: EdgeStore) -> list[object]:
    """What a search of the user gives: keys alone, payloads, and of some keys."""
    found = list[object]()
    for where, fields in ((OWN, ()), (OWN, None), ({**OWN, "key": SOME}, None), (OWN, ("drawn",))):
        hits = await store.search(TURNS, point(5).vector, where=where, top_k=20, fields=fields)
        found.append([(hit.key, round(hit.score, 5), hit.payload) for hit in hits])
    return found


async def held(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The same once the user is held: asked until memory answers."""
    answered = list[int]()
    whole = HeldUser.nearest

    def nearest(self: HeldUser, *args: Any) -> Any:
        answered.append(len(self))
        return whole(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(HeldUser, "nearest", nearest)
        for _ in range(400):
            answered.clear()
            found = await answers(store)
            if len(answered) == len(found):
                return found
            await asyncio.sleep(0)
    raise AssertionError("it was never held")


async def from_the_engine(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The same with nobody held."""
    with monkeypatch.context() as patched:
        patched.setattr(HeldPoints, "asked", lambda *_: None)
        return await answers(store)


async def replace(store: EdgeStore) -> None:
    """A point anew, one more, and somebody else's."""
    await store.upsert(TURNS, [point(5, drawn=1), point(SIZE), point(SIZE + 1, user="w"), point(SIZE + 2, app="b")])


async def become_anothers(store: EdgeStore) -> None:
    """A turn of the user is written anew as somebody else's."""
    await store.upsert(TURNS, [point(5, user="w")])


async def erase_session(store: EdgeStore) -> None:
    """A session goes, as an erasure of it makes it."""
    await store.delete(TURNS, where={"session_id": "s5", "app_id": "a"})


async def erase_user(store: EdgeStore) -> None:
    """The user goes, and says something new."""
    await store.delete(TURNS, where={"user_id": "u"})
    await store.upsert(TURNS, [point(n, drawn=2) for n in range(SIZE)])


async def keep_newest(store: EdgeStore) -> None:
    """What is old goes."""
    await store.delete(TURNS, where={"session_id": "s5"}, below=("turn", 100))


async def rename(store: EdgeStore) -> None:
    """A point gets a new key."""
    await store.rename(TURNS, {"s5_5": "s5_0"})


async def forget(store: EdgeStore) -> None:
    """The collection is written anew."""
    await store.delete(TURNS, where={"session_id": "s5", "turn": (5, 5)})
    await store.forget(TURNS)


CHANGES = (replace, become_anothers, erase_session, erase_user, keep_newest, rename, forget)


@pytest.mark.parametrize("when", ["held", "being read"])
@pytest.mark.parametrize("change", CHANGES)
async def test_memory_answers_as_the_engine_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[EdgeStore], Awaitable[None]], when: str
) -> None:
    """Before a change and at once after it, also where the user's points were just being read."""
    monkeypatch.setattr("streams.index.edge_shard.HELD_PAGE", 50)
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert(TURNS, [point(n) for n in range(SIZE)])
    before = await from_the_engine(store, monkeypatch)
    if when == "held":
        assert await held(store, monkeypatch) == before
    else:
        await answers(store)
    await change(store)
    at_once = await answers(store)
    after = await from_the_engine(store, monkeypatch)

    assert after != before
    assert at_once == after
    assert await held(store, monkeypatch) == after
    await store.close()


async def test_a_field_named_key_is_a_condition_like_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts have one: memory leaves such a question to the engine.

    A condition of a deletion that nothing meets is the caller's mistake, as ever, and no trouble of the store.
    """
    store = EdgeStore(tmp_path, embedder="test")
    points = [point(n) for n in range(SIZE)]
    await store.upsert(TURNS, [Point(each.key, each.vector, {**each.payload, "key": each.key}) for each in points])
    await held(store, monkeypatch)
    found = await store.search(TURNS, point(5).vector, where={**OWN, "key": "s6_6"}, top_k=20)
    with pytest.raises(ConfigurationError, match="any of no values"):
        await store.delete(TURNS, where={"session_id": ()})

    assert [hit.key for hit in found] == ["s6_6"]
    await store.close()


async def test_a_user_who_cannot_be_read_is_told_of_and_stands_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is read where nobody waits for it: its failure is in the log, and others are held."""
    store = EdgeStore(tmp_path, embedder="test")
    await store.upsert(TURNS, [point(n) for n in range(SIZE)] + [point(n, user="w") for n in range(SIZE, 2 * SIZE)])
    whole = HeldUser.put

    def put(self: HeldUser, payload: Any, vector: Any) -> None:
        if payload["user_id"] == "w":
            raise MemoryError
        whole(self, payload, vector)

    monkeypatch.setattr(HeldUser, "put", put)
    with capture_logs() as logs:
        for _ in range(2):
            hits = await store.search(TURNS, point(5).vector, where={"user_id": "w"}, top_k=20)
        await held(store, monkeypatch)

    assert len(hits) == 20
    assert [(each["event"], each["collection"]) for each in logs] == [("points_not_held", TURNS)]
    await store.close()


@pytest.fixture
def clock() -> list[float]:
    """Time that tests set."""
    return [0.0]


@pytest.fixture
def users(clock: list[float]) -> HeldPoints:
    """Room for two users of the usual size."""
    return HeldPoints(DIM, most=2 * SIZE, clock=lambda: clock[0])


def ask(users: HeldPoints, user: str, size: int = SIZE) -> bool:
    """Ask for a user twice; whether they are held then, all their points read."""
    where = {"user_id": user}
    for _ in range(2):
        users.asked(where, lambda _: size)
    if reading := users.reading():
        users.read(reading[0], [(dict(each.payload, _key=each.key), each.vector) for each in _of(user, size)], "")
    return users.asked(where, lambda _: size) is not None


def _of(user: str, size: int) -> list[Point]:
    return [point(n, user=user) for n in range(size)]


def test_who_is_asked_for_holds_the_room(users: HeldPoints, clock: list[float]) -> None:
    """A third finds none until one of the two was not asked for a while; a large one never, a small one needs none."""
    assert ask(users, "one")
    assert ask(users, "two")
    assert not ask(users, "three")
    assert not ask(users, "few", FEWEST_HELD - 1)
    clock[0] += IDLE_S + 1
    users.asked({"user_id": "two"}, lambda _: SIZE)
    assert not ask(users, "large", 2 * SIZE + 1)

    assert ask(users, "four")
    assert users.asked({"user_id": "one"}, lambda _: SIZE) is None
    assert users.asked({"user_id": "two"}, lambda _: SIZE) is not None


def test_one_question_alone_holds_nobody(users: HeldPoints) -> None:
    """So a walk over all users reads none of them in."""
    for number in range(held_points.FEWEST_HELD):
        users.asked({"user_id": f"u{number}"}, lambda _: SIZE)

    assert users.reading() is None


def test_writes_beyond_the_room_let_go(users: HeldPoints) -> None:
    """Whoever was not asked for longest goes."""
    assert ask(users, "one")
    assert ask(users, "two")
    users.written([point(SIZE + 1, user="two")])

    assert users.asked({"user_id": "one"}, lambda _: SIZE) is None
    assert users.asked({"user_id": "two"}, lambda _: SIZE) is not None
