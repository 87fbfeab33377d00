"""What readers find of users: the same on Qdrant Edge and on the server's client."""

from datetime import timedelta

import pytest

from models.events import FactCategory, Retraction, SessionTurns
from streams.index.between import Between
from streams.ports import VectorStore
from tests.support.user_driver import NOON, fact
from tests.support.users_indexed import IndexedUser

PREFERENCE = FactCategory.PREFERENCE


async def with_facts(store: VectorStore) -> IndexedUser:
    """Facts of several categories, importances and ages."""
    user = IndexedUser(store)
    user.learn(fact("name", "Alex", 0.9, importance=1.0), fact("city", "Paris", importance=0.5), turn=4)
    user.learn(fact("language", "Python", 0.9, importance=0.8, category=PREFERENCE), session_id="t")
    user.learn(fact("tea", "likes", importance=0.4, category=PREFERENCE), fact("age", "41", importance=0.8))
    user.learn(fact("editor", "vim", importance=0.499, category=PREFERENCE))
    user.now += timedelta(days=1)
    user.learn(fact("city", "Oslo", importance=0.5), session_id="t", turn=7)
    user.forget(Retraction(key="age"))
    await user.index()
    return user


async def test_nothing_is_known_of_a_user_who_never_spoke(store: VectorStore) -> None:
    """Before the first write, and beside other users."""
    user = IndexedUser(store)
    for _ in range(2):
        assert await user.memory.facts("a", "nobody", include_past=True) == []
        assert await user.memory.episodes("a", "nobody", limit=5) == []
        assert await user.memory.find_episodes("a", "nobody", "boats", max_distance=2.0, top_k=3) == []
        assert await user.memory.stats("a", "nobody") is None
        user.chat(25)
        user.answer(1, 20, "They spoke of boats.")
        user.learn(fact("name", "Alex"))
        await user.index()


@pytest.mark.behaviour("user-10")
async def test_past_values_come_behind_the_active_ones(store: VectorStore) -> None:
    """Those before the active value, and those taken back, with the times between which they were true."""
    user = await with_facts(store)
    found = await user.memory.facts("a", "u", include_past=True, min_importance=0.5)
    later = NOON + timedelta(days=1)

    assert [(f.key, f.value, f.active, f.valid_from, f.valid_until) for f in found] == [
        ("name", "Alex", True, NOON, None),
        ("language", "Python", True, NOON, None),
        ("city", "Oslo", True, later, None),
        ("age", "41", False, NOON, later),
        ("city", "Paris", False, NOON, later),
    ]


async def test_a_value_that_comes_back_is_several(store: VectorStore) -> None:
    """Each occurrence with its times; also of values that were said at the same time."""
    user = IndexedUser(store)
    for city in ("Paris", "Rome", "Oslo"):
        user.learn(fact("city", city))
    user.now += timedelta(days=1)
    for city in ("Paris", "Oslo"):
        user.learn(fact("city", city))
        user.now += timedelta(days=1)
        await user.index()
    found = await user.memory.facts("a", "u", include_past=True)

    assert sorted((f.value, f.active, (f.valid_from - NOON).days) for f in found) == [
        ("Oslo", False, 0),
        ("Oslo", True, 2),
        ("Paris", False, 0),
        ("Paris", False, 1),
        ("Rome", False, 0),
    ]


async def test_the_latest_or_nearest_episodes_come_first(store: VectorStore) -> None:
    """Below the distance and of the time only; how far is the embedder's matter, no words are near to nothing."""
    user = IndexedUser(store, high_turns=2, keep_turns=0)
    user.chat(8)
    told = ("They compared databases.", "They baked bread, and took notes in databases.", "They bought boats.", " ")
    for first, summary in zip((1, 3, 5, 7), told, strict=True):
        user.answer(first, first + 1, summary, key_topics=["one", "two"])
    await user.index()
    latest = await user.memory.episodes("a", "u", limit=3)
    near = await user.memory.find_episodes("a", "u", "What of databases?", max_distance=0.4, top_k=3)
    nearest = await user.memory.find_episodes("a", "u", "databases", max_distance=0.2, top_k=3)
    one = await user.memory.find_episodes("a", "u", "databases", max_distance=2.0, top_k=1)
    *_, second, _ = await user.memory.episodes("a", "u", limit=4)
    then = Between(second.started_at, second.ended_at)
    of_then = await user.memory.find_episodes("a", "u", "databases", max_distance=2.0, top_k=1, between=then)

    assert [e.turn_range for e in latest] == ["turns 7-8", "turns 5-6", "turns 3-4"]
    assert [e.turn_range for e, _ in near] == ["turns 1-2", "turns 3-4"]
    assert [distance for _, distance in near] == pytest.approx([0.0, 0.29289], abs=1e-4)
    assert [e.turn_range for e, _ in nearest] == [e.turn_range for e, _ in one] == ["turns 1-2"]
    assert [e.turn_range for e, _ in of_then] == ["turns 3-4"]


async def test_the_standing_is_the_last_one(store: VectorStore) -> None:
    """Counts, turns at hand, and what was seen of which partition."""
    user = IndexedUser(store)
    user.chat(20)
    user.chat(3, session="t", partition=2)
    user.answer(1, 20)
    user.say("My name is Alex", session="t", partition=2)
    await user.index()
    stats = await user.memory.stats("a", "u")

    assert stats is not None
    assert (stats.turn_count, stats.compressed_turns, stats.facts, stats.episodes) == (24, 20, 1, 1)
    assert stats.short_term == [SessionTurns("s", [*range(14, 20)]), SessionTurns("t", [*range(4)])]
    assert stats.seen == {"0": 19, "2": 3}


async def test_users_of_other_apps_and_of_like_names_stay_apart(store: VectorStore) -> None:
    """A look-up finds the named user's memory, whatever lies beside it; one without an app all of the id."""
    places = [("a", "u"), ("b", "u"), ("a", "u/1"), ("a/u", "1"), ("a", "U"), ("a", "u "), ("%2F", "u"), ("a", "ü")]
    for number, (app, name) in enumerate(places):
        user = IndexedUser(store, app=app, user=name, high_turns=2, keep_turns=0)
        user.chat(2)
        user.answer(1, 2, f"Number {number} spoke of boats.")
        user.learn(fact("name", f"Number {number}"))
        await user.index()
    memory = user.memory
    found = [
        (
            [f.value for f in await memory.facts(app, name)],
            [e.summary for e in await memory.episodes(app, name, limit=9)],
            [e.summary for e, _ in await memory.find_episodes(app, name, "boats", max_distance=0.4, top_k=9)],
            [] if (stats := await memory.stats(app, name)) is None else [(stats.app_id, stats.user_id)],
        )
        for app, name in places
    ]
    anywhere = await memory.facts(None, "u")

    assert found == [
        ([f"Number {n}"], [f"Number {n} spoke of boats."], [f"Number {n} spoke of boats."], [place])
        for n, place in enumerate(places)
    ]
    assert {(f.app_id, f.value) for f in anywhere} == {("a", "Number 0"), ("b", "Number 1"), ("%2F", "Number 6")}


async def test_of_several_apps_the_user_who_spoke_last_stands(store: VectorStore) -> None:
    """By time: offsets of different partitions say nothing of who was first."""
    earlier = IndexedUser(store, app="b", first=1_000)
    earlier.chat(1)
    later = IndexedUser(store)
    later.chat(2)
    for user in (later, earlier):
        await user.index()
    stats = await later.memory.stats(None, "u")

    assert stats is not None
    assert (stats.app_id, stats.turn_count) == ("a", 2)


async def test_indexing_again_changes_nothing(store: VectorStore) -> None:
    """Whole, or from anywhere up to the end of the log, as after a crash."""
    user = IndexedUser(store, high_turns=4, keep_turns=2, waiting_episodes=1)
    for city in ("Paris", "Oslo", "Rome"):
        user.say(f"I live in {city}. My name is {city}.")
        user.chat(4)
    user.say("Forget my name")
    await user.index()

    async def everything() -> list[object]:
        return [
            await user.memory.facts("a", "u", include_past=True),
            await user.memory.episodes("a", "u", limit=99),
            await user.memory.stats("a", "u"),
        ]

    once = await everything()
    for begin in (0, len(user.log) // 2, len(user.log) - 1):
        await user.index(user.log[begin:])

    assert await everything() == once
