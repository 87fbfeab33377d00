"""Memory of projects, on Qdrant Edge and on the server's client: what is indexed, and the views that follow it."""

import asyncio
import gc
import weakref
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from models.errors import StoreUnavailable
from models.policy import Policy
from models.retrieval.relevance import RetrievalQuery
from streams.api.assembly import ScopedStore, reads
from streams.index import project_memory
from streams.index.collections import PROJECT_ITEMS, PROJECTS
from streams.index.project_memory import ProjectMemories
from streams.ports import Condition, PayloadValue, VectorStore, Where
from tests.support.apps_indexed import asked_by
from tests.support.projects_indexed import EVERYTHING, NOW, changed, episode, index, remembered, stands, view_of, went
from tests.support.users_indexed import MatterEmbedder

POLICY = Policy().projects


class Noting(ScopedStore):
    """A store that notes which revisions of items were asked for, and can be made to fail."""

    def __init__(self, store: VectorStore) -> None:
        super().__init__(store)
        self.asked: list[tuple[str, Condition]] = []
        self.fails = False

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[dict[str, PayloadValue]]:
        """Note it, let others run, and ask the store."""
        self.asked.append((collection, where.get("revision")))
        await asyncio.sleep(0)
        if self.fails:
            raise StoreUnavailable("away")
        return await super().latest(collection, where=where, by=by, limit=limit)


@pytest.fixture
def noting(store: VectorStore) -> Noting:
    """The store with notes."""
    return Noting(store)


@pytest.fixture
def projects(noting: Noting) -> ProjectMemories:
    """Over the store, as the index role and its API have it."""
    return ProjectMemories(noting, MatterEmbedder(), POLICY, reads=reads)


async def test_a_view_has_every_item_as_it_was_told(projects: ProjectMemories) -> None:
    """Of all five kinds, archived ones too; nothing of it is lost in the store."""
    await index(projects, *EVERYTHING, stands(3))
    view = await view_of(projects)
    kinds: list[Mapping[str, object]] = [view.memories, view.episodes, view.chunks, view.conversations, view.pending]

    assert {getattr(each, each.kind).id: getattr(each, each.kind) for each in EVERYTHING} == {
        name: item for kind in kinds for name, item in kind.items()
    }
    assert msgspec.structs.replace(stands(3), session_id="", user_id="") == view.stats


async def test_projects_stay_apart(projects: ProjectMemories) -> None:
    """Of apps, and of names that look alike."""
    names = [("a", "web"), ("b", "web"), ("a", "web/2"), ("a/web", "2")]
    for number, (app, project) in enumerate(names):
        item = remembered(number)
        await index(projects, changed(item, 0, 1, app=app, project=project), stands(app=app, project=project))

    assert [[remembered(number).id] for number in range(4)] == [
        list((await view_of(projects, *name)).memories) for name in names
    ]


async def test_only_what_changed_is_read(projects: ProjectMemories, noting: Noting) -> None:
    """Of what came, changed, went, and took the place of another."""
    await index(projects, *EVERYTHING, stands(3))
    first = await view_of(projects)
    noting.asked.clear()
    late = [
        changed(remembered(1, "We use two boats."), 0, 4, cause="edited"),
        went(remembered(2), 1, 4),
        changed(episode(9), 0, 5),
        changed(remembered(3), 2, 6),
    ]
    await index(projects, *late, stands(6))
    view = await view_of(projects)

    assert view is first
    assert [(PROJECT_ITEMS.name, 4), (PROJECTS.name, 4)] == [
        (name, asked[0]) for name, asked in noting.asked if isinstance(asked, tuple)
    ]
    assert {remembered(1).id: "We use two boats.", remembered(3).id: "We use boats."} == {
        name: each.content for name, each in view.memories.items()
    }
    assert ([episode(9).id], 6) == (list(view.episodes), view.stats.revision if view.stats else 0)


async def test_a_view_is_read_anew_in_another_process(store: VectorStore, projects: ProjectMemories) -> None:
    """It equals the one that followed step by step."""
    await index(projects, *EVERYTHING, stands(3))
    await view_of(projects)
    await index(projects, went(remembered(1), 0, 4), changed(remembered(5), 0, 5), stands(5))
    followed, anew = await view_of(projects), await view_of(ProjectMemories(store, MatterEmbedder(), POLICY))

    assert (followed.memories, followed.episodes, followed.stats) == (anew.memories, anew.episodes, anew.stats)
    assert followed.size == anew.size


async def test_an_item_that_no_standing_names_yet_is_not_missed(projects: ProjectMemories) -> None:
    """A poll was cut behind some items of a revision: the others come with the next one."""
    await index(projects, changed(remembered(1), 0, 1), stands(1), changed(remembered(2), 1, 2))
    await view_of(projects)
    await index(projects, changed(remembered(3), 2, 2), stands(2))

    assert {1, 2, 3} == {int(name.split("-")[1]) for name in (await view_of(projects)).memories}


async def test_more_items_of_one_revision_than_a_page_holds(
    projects: ProjectMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an import brings them: every one is read."""
    monkeypatch.setattr(project_memory, "_PAGE_ITEMS", 3)
    revisions = [1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4]
    await index(projects, *(changed(remembered(n), n, revision) for n, revision in enumerate(revisions)), stands(4))

    assert {remembered(n).id for n in range(len(revisions))} == set((await view_of(projects)).memories)


async def test_what_changes_while_a_view_is_read_is_in_it(
    projects: ProjectMemories, store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that left the pages to come by changing is looked for once more."""
    monkeypatch.setattr(project_memory, "_PAGE_ITEMS", 2)
    writing = ProjectMemories(store, MatterEmbedder(), POLICY)
    await index(projects, *(changed(remembered(n), n, n + 1) for n in range(5)), stands(5))

    async def changes(collection: str, **asked: Any) -> list[dict[str, PayloadValue]]:
        """Give a page; the oldest memory changes meanwhile."""
        page = await store.latest(collection, **asked)
        await index(writing, changed(remembered(0, "Bread."), 0, 6))
        return page

    reading = Noting(store)
    monkeypatch.setattr(reading, "latest", changes)
    view = await view_of(ProjectMemories(reading, MatterEmbedder(), POLICY))

    assert ("Bread.", 5) == (view.memories[remembered(0).id].content, len(view.memories))


async def test_a_store_that_fails_leaves_the_view_behind_not_wrong(projects: ProjectMemories, noting: Noting) -> None:
    """The next reader gets everything."""
    await index(projects, *EVERYTHING, stands(3))
    await view_of(projects)
    await index(projects, changed(remembered(7), 7, 4), stands(4))
    noting.fails = True
    with pytest.raises(StoreUnavailable):
        await projects.view("a", "web")
    noting.fails = False

    assert remembered(7).id in (await view_of(projects)).memories


async def test_another_life_knows_nothing_of_the_one_before(projects: ProjectMemories, store: VectorStore) -> None:
    """Erased it is not there, however lately it was read; begun again at a lower revision, or at a higher one."""
    await index(projects, *EVERYTHING, stands(3))
    first = await view_of(projects)
    for born, revision in (("second", 1), ("third", 9)):
        for collection in (PROJECT_ITEMS.name, PROJECTS.name):
            await store.delete(collection, where={"app_id": "a"})
        assert await projects.view("a", "web") is None
        await index(projects, changed(remembered(revision), 0, revision), stands(revision, born=born))
        view = await view_of(projects)

        assert view is not first
        assert ([remembered(revision).id], 1) == (list(view.memories), view.size)


async def test_a_caller_reads_its_own_apps(projects: ProjectMemories) -> None:
    """By no way of reading another's, also what is held already; and who asked in vain takes it from nobody."""
    await index(projects, *EVERYTHING, stands(3), stands(1, app="b"))
    mine = await view_of(projects)
    with asked_by("b"):
        others = [await projects.view("a", "web"), await projects.stats("a", "web")]
        found = await projects.find(mine, RetrievalQuery(text="boats"), NOW)
        listed = [each.app_id for each in await projects.projects(None, 10)]

    assert (others, found, listed) == ([None, None], [], ["b"])
    assert await view_of(projects) is mine


async def test_what_nobody_asks_for_is_let_go(store: VectorStore) -> None:
    """Its project may be erased: nothing of it stays in memory because nobody asks."""
    now = [0.0]
    projects = ProjectMemories(store, MatterEmbedder(), POLICY, clock=lambda: now[0])
    for name in ("x", "y"):
        await index(projects, changed(remembered(1), 0, 1, project=name), stands(project=name))
    held = weakref.ref(await view_of(projects, "a", "x"))
    now[0] = project_memory.HELD_S
    await view_of(projects, "a", "y")
    kept = held() is not None
    now[0] += 1
    await view_of(projects, "a", "y")
    gc.collect()

    assert (kept, held()) == (True, None)
