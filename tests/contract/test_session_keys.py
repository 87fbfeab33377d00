"""Points of releases that keyed a session's by its id alone get the session's app into their keys."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from models.errors import StoreUnavailable
from models.events import TopicChanged
from streams.index.collections import TOPICS, TURNS
from streams.index.event_points import Collection
from streams.index.generations import WrappedStore
from streams.index.session_keys import RECORD, bind_to_apps
from streams.ports import Point, StoredPoint, VectorStore
from tests.support.api_doubles import said
from tests.support.blank_events import blank
from tests.support.users_indexed import MatterEmbedder

NAMES: Mapping[Collection[Any], str] = {TURNS: "{session_id}_{turn}", TOPICS: "{session_id}\n{topic_id}"}
"""Keys as they were."""


def points() -> dict[str, list[Point]]:
    """Turns and topics of three apps, under the keys that they have now."""
    vector = MatterEmbedder().embed(["boats"])[0]
    turns = [
        said(n, f"turn {n} of {app}", app=app, session=f"{app}_{s}")
        for app in ("a", "b", "session:a")
        for s in range(2)
        for n in range(4)
    ]
    topics = [blank(TopicChanged, app_id=a, session_id="s", topic_id=f"{a}{n}") for a in "ab" for n in range(3)]
    return {
        "turns": [TURNS.point(each, 7, vector) for each in turns],
        "topics": [TOPICS.point(each, 7, vector) for each in topics],
    }


def ordered(points: Iterable[StoredPoint]) -> list[StoredPoint]:
    """By key."""
    return sorted(points, key=lambda each: each.key)


async def fill(store: VectorStore, *, new_every: int = 10**6) -> dict[str, list[StoredPoint]]:
    """Write them under their old keys, but some under the new ones; gives what is to come of it."""
    wanted = {}
    for collection, name in NAMES.items():
        made = points()[collection.name]
        old = [
            each if n % new_every == new_every - 1 else replace(each, key=name.format(**each.payload))
            for n, each in enumerate(made)
        ]
        await store.upsert(collection.name, old)
        wanted[collection.name] = ordered(StoredPoint(each.key, each.payload) for each in made)
    return wanted


async def stored(store: VectorStore) -> dict[str, list[StoredPoint]]:
    """Every point."""
    return {each.name: ordered((await store.page(each.name, "", 1_000))[0]) for each in NAMES}


class Counting(WrappedStore):
    """A store that counts pages that are read, and fails at the nth change, as if the process had been killed there."""

    def __init__(self, store: VectorStore, changes: int = 10**6) -> None:
        super().__init__(store)
        self.pages = 0
        self._changes = changes

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Count, and read."""
        self.pages += 1
        return await super().page(collection, after, limit)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write, or fail."""
        self._change()
        await super().upsert(collection, points)

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Rename, or fail."""
        self._change()
        await super().rename(collection, keys)

    def _change(self) -> None:
        if not self._changes:
            raise StoreUnavailable("killed")
        self._changes -= 1


@pytest.mark.parametrize("new_every", [10**6, 3])
async def test_every_point_has_its_app_in_its_key(store: VectorStore, new_every: int) -> None:
    """Payload and number of points stay; a second start looks at none of them again."""
    wanted = await fill(store, new_every=new_every)
    stirred: list[int] = []
    renamed = await bind_to_apps(store, page_points=5, stir=lambda: stirred.append(1))
    found, again = await stored(store), Counting(store)

    assert found == wanted
    assert renamed == (30 if new_every > 100 else 20)
    assert len(stirred) >= 8
    assert (await bind_to_apps(again), again.pages) == (0, 0)


@pytest.mark.parametrize("changes", [0, 1, 2, 3, 5, 9])
async def test_a_run_that_is_cut_short_goes_on(store: VectorStore, changes: int) -> None:
    """At any change: nothing is missing and nothing stands twice in the end."""
    wanted = await fill(store)
    with pytest.raises(StoreUnavailable, match="killed"):
        await bind_to_apps(Counting(store, changes), page_points=5)
    await bind_to_apps(store, page_points=5)

    assert await stored(store) == wanted


async def test_points_under_both_keys_become_one(store: VectorStore) -> None:
    """Renaming writes before it deletes: who died in between left both."""
    wanted = await fill(store)
    for name, made in points().items():
        await store.upsert(name, made[:3])
    await bind_to_apps(store, page_points=5)

    assert await stored(store) == wanted


async def test_a_new_store_has_nothing_to_do(store: VectorStore) -> None:
    """And its later starts look at none of what came meanwhile."""
    first = await bind_to_apps(store)
    await store.upsert("turns", points()["turns"])
    again = Counting(store)

    assert (first, await bind_to_apps(again), again.pages) == (0, 0, 0)
    assert await store.collections() == [RECORD, "turns"]
