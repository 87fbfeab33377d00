"""Erasing somebody from the vector store: which points go, which stay, and what is counted."""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from models.events.erase import ErasedSession, ErasedStore, VectorsErasureDue
from models.events.user import SessionTurns
from models.policy import Policy
from streams.index.app_memory import AppMemoryIndex
from streams.index.edge import EdgeStore
from streams.index.erasing import VectorErasing
from streams.index.generations import GenerationStore
from streams.index.project_memory import ProjectMemories
from streams.index.server import ServerStore
from streams.ports import PayloadValue, Point, VectorStore
from tests.support.apps_indexed import memory, stats
from tests.support.projects_indexed import (
    changed,
    chunk,
    conversation,
    episode,
    pending,
    remembered,
    source,
    stands,
    went,
)
from tests.support.users_indexed import MatterEmbedder

CANARY = "zanzibarcanary"
MINE, OTHERS = f"{CANARY}/1", "s2"
"""A session of the user u of the app a, and one of v of b."""
WEB = "project:a/web"
NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
async def store() -> AsyncIterator[VectorStore]:
    """A store with points of two users of two apps in every collection."""
    made = ServerStore(AsyncQdrantClient(":memory:"), embedder="matter")
    await fill(made)
    yield made
    await made.close()


def point(key: str, **payload: PayloadValue) -> Point:
    """A point of some collection."""
    return Point(key, np.ones(6, dtype=np.float32), payload)


def turns_of(*sessions: str) -> str:
    """A payload's field that names turns of sessions."""
    return msgspec.json.encode([SessionTurns(session, [1]) for session in sessions]).decode()


async def fill(store: VectorStore) -> None:
    """User u speaks in app a and, in one session, in b; v speaks in b, in a session of its own and beside u."""
    owners = [("a", "u", MINE), ("b", "v", OTHERS), ("b", "u", "s3")]
    for collection in ("turns", "topics"):
        await store.upsert(
            collection,
            [
                point(f"{s}_{t}", session_id=s, user_id=u, app_id=a, turn=t, content=f"of {s}")
                for a, u, s in owners
                for t in (1, 2)
            ],
        )
    await store.upsert(
        "facts",
        [
            point(f"{a}/{u}/{s}", session_id=s, user_id=u, app_id=a, event_offset=1, value=f"of {s}")
            for a, u, s in [*owners, ("b", "v", MINE)]
        ],
    )
    episodes = {1: (MINE,), 21: (OTHERS,), 41: (OTHERS, MINE)}
    await store.upsert(
        "episodes",
        [point(f"b/v/{n}", user_id="v", app_id="b", turn=n, turns=turns_of(*held)) for n, held in episodes.items()]
        + [point("a/u/1", user_id="u", app_id="a", turn=1, turns=turns_of(MINE))],
    )
    await store.upsert(
        "users", [point(f"{a}/{u}", user_id=u, app_id=a, event_offset=1, short_term=turns_of(s)) for a, u, s in owners]
    )
    apps = AppMemoryIndex(store, MatterEmbedder())
    memories = [
        memory(0, f"of {MINE}", app="a", session_id=MINE, shared_with=["b"]),
        memory(1, app="a", session_id="s9", user_id="w"),
        memory(0, app="b", session_id=OTHERS, user_id="v", related_conversations=["s7", MINE], shared_with=["a"]),
        memory(1, app="b", session_id=OTHERS, user_id="v", shared_with=["a"]),
        memory(0, f"of {MINE}", app="a", space="user", session_id=MINE),
        memory(1, app="b", space="user", session_id="s3"),
    ]
    await apps.add_changes([(event, n) for n, event in enumerate(memories)])
    projects = ProjectMemories(store, MatterEmbedder(), Policy().projects)
    both = [source(OTHERS, user="v"), source(MINE)]
    of_mine: dict[str, Any] = {"session_id": MINE}
    await projects.add_items(
        [
            (changed(remembered(0, f"of {MINE}", sources=[source(MINE)]), 0, **of_mine), 1),
            (changed(remembered(1, sources=both), 1, session_id=OTHERS, user_id="v"), 2),
            (changed(remembered(2, sources=[source(OTHERS, user="v")]), 2, session_id=OTHERS, user_id="v"), 3),
            (changed(remembered(0, sources=[source("s3")]), 0, app="b", session_id="s3"), 4),
            (went(remembered(3), 3, **of_mine), 5),
            (changed(episode(0, session=MINE), 0, **of_mine), 6),
            (changed(chunk(0, session=MINE), 0, **of_mine), 7),
            (changed(conversation(MINE), 0, **of_mine), 8),
            (changed(conversation(OTHERS), 1, session_id=OTHERS, user_id="v"), 9),
            (changed(pending(0, session=MINE), 0, **of_mine), 10),
        ]
    )
    await projects.add_stats([(stands(**of_mine), 11), (stands(app="b"), 12)])
    await apps.add_stats([(stats("a"), 1), (stats("b"), 2), (stats("a", space="user"), 3)])


def due(scope: Any, session_ids: Iterable[str], **who: Any) -> VectorsErasureDue:
    """Somebody is to be forgotten."""
    return VectorsErasureDue(request_id="r", timestamp=NOW, scope=scope, session_ids=list(session_ids), **who)


async def keys_of(store: VectorStore) -> dict[str, set[str]]:
    """Keys of all points, by collection."""
    return {name: {each.key for each in (await store.page(name, "", 1_000))[0]} for name in await store.collections()}


REMOVED: dict[str, dict[str, set[str]]] = msgspec.toml.decode(
    Path(__file__).with_name("vector_erasing.toml").read_bytes(), type=dict[str, dict[str, set[str]]]
)
"""Of the session of app a (a request up to 0.2.0 means every app's): what goes of each collection."""
NOTHING = {name: set[str]() for name in REMOVED["app"]}
CASES = {
    "session": (due("session", [MINE]), REMOVED["session"]),
    "user of an app": (due("user", [MINE], app_id="a", user_id="u"), REMOVED["user of an app"]),
    "user": (due("user", [MINE, "s3"], user_id="u"), REMOVED["user"]),
    "app": (due("app", [MINE], app_id="a"), REMOVED["app"]),
    "nobody": (due("user", [], app_id="nobody's", user_id="u"), NOTHING),
}


@pytest.mark.parametrize(("wanted", "removed"), CASES.values(), ids=CASES.keys())
async def test_what_goes_and_what_stays(
    store: VectorStore, wanted: VectorsErasureDue, removed: dict[str, set[str]]
) -> None:
    """In every collection, with the counts of the proof; a second erasure finds nothing more."""
    before = await keys_of(store)
    (told,) = await VectorErasing(store).erase([wanted])
    after = await keys_of(store)
    (again,) = await VectorErasing(store).erase([wanted])

    assert removed == {name: before[name] - after[name] for name in before}
    assert told == [
        ErasedStore(store=f"vectors {name}", looked_at=len(before[name]), removed=len(removed[name]), remaining=0)
        for name in sorted(before)
    ]
    assert [(0, 0)] * len(before) == [(each.removed, each.remaining) for each in again]


@pytest.mark.parametrize("scope", ["session", "user"])
async def test_another_apps_session_of_the_same_id_stays(store: VectorStore, scope: Any) -> None:
    """In every collection: what names the session goes in the app that it is of, and nothing of another app."""
    who: dict[str, Any] = {"app_id": "a", "user_id": "u"} if scope == "user" else {"app_id": "a"}
    await store.upsert(
        "turns", [point(f"other_{n}", session_id=MINE, user_id="u", app_id="b", turn=n, content="") for n in (1, 2)]
    )
    named = due(scope, [MINE], sessions=[ErasedSession("a", MINE)], **who)
    unnamed = due(scope, [MINE], **who)
    before = await keys_of(store)
    await VectorErasing(store).erase([named])
    after = await keys_of(store)
    await VectorErasing(store).erase([unnamed])
    removed = {name: before[name] - after[name] for name in before}

    assert await keys_of(store) == after
    assert removed == REMOVED[f"{scope} of an app"]


async def test_sessions_of_several_apps_at_once(store: VectorStore) -> None:
    """A user of all apps is forgotten in each of them, with the sessions that are named of each."""
    gone = [ErasedSession("a", OTHERS), ErasedSession("b", OTHERS), ErasedSession("a", MINE)]
    (told,) = await VectorErasing(store).erase([due("user", [], user_id="w", sessions=gone)])
    left = (await keys_of(store))["turns"]

    assert left == {"s3_1", "s3_2"}
    assert {each.store: each.removed for each in told}["vectors facts"] == 2


async def test_several_at_once_are_counted_apart(store: VectorStore) -> None:
    """Each has a proof of its own; what two of them name is counted with the first."""
    told = await VectorErasing(store).erase([due("session", ["s3"]), due("user", [MINE, "s3"], user_id="u")])
    counted = [{each.store.removeprefix("vectors "): each.removed for each in stores} for stores in told]

    assert [(2, 1), (2, 2)] == [(each["turns"], each["facts"]) for each in counted]


async def test_more_sessions_than_a_condition_holds(store: VectorStore) -> None:
    """A user of a thousand conversations."""
    sessions = [f"s-{n}" for n in range(1_001)]
    turns = [point(f"{s}_1", session_id=s, user_id="x", app_id="a", turn=1, content="") for s in sessions]
    await store.upsert("turns", turns)
    (told,) = await VectorErasing(store).erase([due("session", sessions)])

    assert {"vectors turns": 1_001} == {each.store: each.removed for each in told if each.removed}


async def test_every_generation_is_gone_through(tmp_path: Path) -> None:
    """Also the one of another embedder that nobody serves any more."""
    old = EdgeStore(tmp_path, embedder="matter")
    await old.upsert("turns", [point(f"{n}", session_id=MINE, turn=n) for n in (1, 2)])
    await old.close()
    whole = EdgeStore(tmp_path, embedder="new")
    serving = GenerationStore(whole, "new")
    await serving.upsert("turns", [point("x", session_id=MINE, turn=1), point("y", session_id="z", turn=1)])
    (told,) = await VectorErasing(serving).erase([due("session", [MINE])])

    assert [("vectors turns", 2), ("vectors turns-new", 1)] == [
        (each.store, each.removed) for each in told if "turns" in each.store
    ]
    assert [0, 1] == [await whole.count("turns"), await whole.count("turns-new")]
    await whole.close()
