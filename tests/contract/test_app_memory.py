"""Memories of apps, on Qdrant Edge and on the server's client: whose they are, who reads them, how they are found."""

from datetime import timedelta
from typing import Literal

import pytest

from models.events import AppMemoryChanged
from streams.api.assembly import ScopedStore
from streams.index.app_memory import AppMemoryIndex
from streams.index.between import ALWAYS, Between
from streams.index.collections import MEMORIES
from streams.ports import VectorStore
from tests.support.apps_indexed import NOW, asked_by, gone, memory, stats
from tests.support.data_files import data_file
from tests.support.users_indexed import MatterEmbedder


@pytest.fixture
def apps(store: VectorStore) -> AppMemoryIndex:
    """Over the store itself, as the index role has it."""
    return AppMemoryIndex(store, MatterEmbedder())


async def index(apps: AppMemoryIndex, *events: AppMemoryChanged) -> None:
    """Index events as one batch of the log, at offsets from 0."""
    await apps.add_changes([(event, offset) for offset, event in enumerate(events)])


async def numbers(apps: AppMemoryIndex, app: str, user: str = "", *, shared: bool = False) -> list[int]:
    """Numbers of a space's memories, in the order in which they come."""
    return [found.memory_id for found in await apps.memories(app, user, shared=shared)]


@pytest.mark.behaviour("app-02", "app-09")
async def test_a_slot_holds_its_last_memory(apps: AppMemoryIndex) -> None:
    """One that changed, one that went, and one that took the place of another; the latest changed come first."""
    await index(apps, memory(0, updated_at=NOW.replace(hour=23)), memory(1), memory(2))
    await index(apps, memory(0, "Bread, then."), gone(1), memory(2, memory_id=9))
    await index(apps, gone(5), memory(3, updated_at=NOW.replace(hour=22)))

    assert [(4, "The user spoke of boats."), (9, "The user spoke of boats."), (1, "Bread, then.")] == [
        (found.memory_id, found.content) for found in await apps.memories("a")
    ]


@pytest.mark.behaviour("app-22")
async def test_spaces_stay_apart(apps: AppMemoryIndex) -> None:
    """Of apps, of users in an app, and of names that look alike."""
    await index(
        apps,
        memory(0, app="a"),
        memory(1, app="a/u"),
        memory(2, app="a", space="user"),
        memory(3, app="a", space="user", user_id="v"),
    )

    assert [1] == await numbers(apps, "a")
    assert [2] == await numbers(apps, "a/u")
    assert ([3], [4], []) == (
        await numbers(apps, "a", "u"),
        await numbers(apps, "a", "v"),
        await numbers(apps, "b", "u"),
    )


@pytest.mark.behaviour("app-31")
async def test_a_shared_memory_is_read_where_it_is_shared(apps: AppMemoryIndex) -> None:
    """Only by the apps it names, only if they ask for what is shared, and without what is nobody's business there.

    A user's memory is shared with the same user: another app's own space, and its other users, never see it.
    """
    event = memory(0, related_conversations=["s7"], conflicts_with=[2], shared_with=["b", "c", "b", "a"])
    await index(apps, event, memory(1), memory(4, app="b"))
    (seen,) = await apps.shared_with("b")

    assert [[5], [5, 1], [1], []] == [
        await numbers(apps, "b"),
        await numbers(apps, "b", shared=True),
        await numbers(apps, "c", shared=True),
        await numbers(apps, "d", shared=True),
    ]
    assert ("a", event.content, ["b"]) == (seen.app_id, seen.content, seen.shared_with)
    assert ("", "", [], []) == (seen.session_id, seen.user_id, seen.related_conversations, seen.conflicts_with)
    assert [2, 1] == await numbers(apps, "a", shared=True)
    await index(apps, memory(7, space="user", shared_with=["d"]))
    assert [[8], [], []] == [await numbers(apps, "d", user, shared=True) for user in ("u", "v", "")]


@pytest.mark.parametrize("later", [memory(0, shared_with=["c"]), memory(0), gone(0), gone(0, shared_with=["b"])])
async def test_sharing_ends(apps: AppMemoryIndex, store: VectorStore, later: AppMemoryChanged) -> None:
    """With the last event that does not name the app, and with the memory."""
    await index(apps, memory(0, shared_with=["b"]), memory(1, shared_with=["b"]))
    await apps.add_changes([(later, 5)])

    assert [2] == await numbers(apps, "b", shared=True)
    assert 2 + later.active * (1 + len(later.shared_with)) == await store.count(MEMORIES.name)


async def test_a_caller_reads_what_is_shared_with_its_app(store: VectorStore, apps: AppMemoryIndex) -> None:
    """The tenants' border lets exactly that through, by every way of reading, and nothing of the owner's app."""
    await index(apps, memory(0, "boats here", shared_with=["b"]), memory(1, "boats there"))
    await apps.add_stats([(stats("a"), 1), (stats("b"), 2)])
    scoped = AppMemoryIndex(ScopedStore(store), MatterEmbedder())
    with asked_by("b"):
        listed = await numbers(scoped, "b", shared=True)
        found = [each.memory_id for each, _ in await scoped.find("b", "", "boats", shared=True)]
        owners = [await scoped.memories("a", shared=True), await scoped.find("a", "", "boats"), await scoped.stats("a")]
        spaces = [space.app_id for space in await scoped.spaces(10)]
        page, _ = await ScopedStore(store).page(MEMORIES.name, "", 10)

    assert (listed, found, spaces) == ([1], [1], ["b"])
    assert owners == [[], [], None]
    assert [each.payload["app_id"] for each in page] == ["b"]


@pytest.mark.behaviour("app-30", "app-31")
@pytest.mark.parametrize(("mode", "query", "expected"), data_file("app_memory")["found"])
async def test_memories_are_found(
    apps: AppMemoryIndex, mode: Literal["keyword", "semantic", "hybrid"], query: str, expected: list[int]
) -> None:
    """By their words, their tags and their date, by their meaning, or by both; a query of neither finds nothing."""
    await index(
        apps, memory(0, "Harbour of boats"), memory(1, "On bread"), memory(2, "About music"), memory(3, app="b")
    )
    found = await apps.find("a", "", query, mode=mode, top_k=3)

    assert sorted(expected) == sorted(each.memory_id for each, score in found if score > 0.1)
    assert sorted((score for _, score in found), reverse=True) == [score for _, score in found]


@pytest.mark.parametrize(
    ("between", "expected"),
    [(Between(NOW), [1, 2]), (Between(NOW + timedelta(days=1)), [2]), (Between(last=NOW), [1]), (ALWAYS, [1, 2])],
)
async def test_memories_of_a_time_are_found(apps: AppMemoryIndex, between: Between, expected: list[int]) -> None:
    """By when they were made, both ends inside."""
    made = [memory(n, "Harbour of boats", created_at=NOW + timedelta(days=n)) for n in range(2)]
    await index(apps, *made)
    found = await apps.find("a", "", "boats", between=between)

    assert sorted(each.memory_id for each, _ in found) == expected


async def test_the_standing_is_the_last_one(apps: AppMemoryIndex) -> None:
    """With what commands came to, and with the last event that the space knows."""
    await apps.add_stats([(stats("a"), 1), (stats("b", uninstalled=True), 2), (stats(space="user"), 3)])
    await apps.add_stats([(stats("a", memories=3), 9)])
    own, other, of_user = await apps.stats("a"), await apps.stats("b"), await apps.stats("a", "u")
    assert own is not None
    assert other is not None
    assert of_user is not None

    assert (own.memories, own.source.partition, own.source.offset, own.results) == (3, 3, 70, stats().results)
    assert [(own.user_id, own.uninstalled), (other.user_id, other.uninstalled)] == [("", False), ("", True)]
    assert (of_user.user_id, await apps.stats("a", "v")) == ("u", None)
    assert {("a", ""), ("b", ""), ("a", "u")} == {(each.app_id, each.user_id) for each in await apps.spaces(10)}
