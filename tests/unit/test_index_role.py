"""The index role's polls: what is written in which step, and what it says of who was forgotten."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec import Struct, structs
from qdrant_client import AsyncQdrantClient

from models.entities import TOPIC_OF
from models.errors import StoreUnavailable
from models.events import Control, Position, SessionErased, TopicChanged, Turn, TurnCorrected
from models.events.erase import ErasedStore, VectorsErased, VectorsErasureDue
from models.events.topics import FACTS, NUMBERED, PROJECTS, TURNS, USER_EPISODES
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.index import collections as index
from streams.index.app_memory import AppMemoryIndex
from streams.index.server import ServerStore
from streams.kafka.ledger import Ledger
from streams.kafka.producer import Record
from streams.observe.telemetry import metrics
from streams.ports import Point
from streams.roles.index import IndexRole
from streams.settings import load_settings
from tests.support.apps_indexed import memory, stats
from tests.support.blank_events import blank
from tests.support.projects_indexed import changed as project_changed
from tests.support.projects_indexed import conversation, remembered, stands
from tests.support.session_driver import said
from tests.support.users_indexed import MatterEmbedder

OF_SESSIONS = {TURNS.name: 0, NUMBERED.name: 0}
_LATER_MS = 2_000_000_000_000


class Noting(ServerStore):
    """A store without network that notes which collections are written, in order."""

    def __init__(self) -> None:
        super().__init__(AsyncQdrantClient(":memory:"), embedder="matter")
        self.written: list[str] = []
        self.away = 0

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Rename; as long as the store is away it does not answer."""
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        await super().rename(collection, keys)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write, and note it once that is durable."""
        await super().upsert(collection, points)
        self.written += [collection] if points else []


class Quiet(IndexRole):
    """The role without a broker: it owns what it reads, and notes what it would tell."""

    def __init__(self, store: ServerStore, folder: Path, policy: Policy | None = None, **beside: Any) -> None:
        settings = load_settings(data_dir=folder)
        super().__init__(settings, policy or Policy(), MatterEmbedder(), RuleScorer(), store, **beside)
        self.told: list[tuple[str, list[ErasedStore]]] = []

    async def fence(self) -> None:
        """Nobody else is there."""

    async def _answer(self, answers: Sequence[tuple[str, list[ErasedStore]]]) -> None:
        self.told += answers

    async def take(self, *events: Struct, first: int = 0) -> None:
        """Take a poll of events, in this order in their topics, at offsets from `first`."""
        batches: dict[TP, list[ConsumerRecord]] = {}
        for offset, event in enumerate(events, first):
            topic, key = TOPIC_OF.get(type(event), TURNS), key_in_log(event)
            name = topic.full_name(self.settings.topic_prefix)
            record = ConsumerRecord(name, 0, offset, _LATER_MS, 1, key, value := encode(event), None, 1, len(value), ())
            batches.setdefault(TP(name, 0), []).append(record)
        await self.on_records(batches)


def key_in_log(event: Struct) -> bytes | None:
    """Key under which an event lies in its log."""
    if isinstance(event, VectorsErasureDue | VectorsErased):
        return f"{event.request_id}/{type(event).__name__}".encode()
    return event.session_id.encode() if isinstance(event, Turn | Control) else key_of(event)  # type: ignore[arg-type]


def due(request: str, *sessions: str) -> VectorsErasureDue:
    """Sessions are to be forgotten."""
    now = datetime(2026, 1, 5, tzinfo=UTC)
    return VectorsErasureDue(request_id=request, timestamp=now, scope="session", session_ids=list(sessions))


def ended(session: str) -> SessionErased:
    """A session is erased."""
    return SessionErased(session_id=session, timestamp=datetime(2026, 1, 5, tzinfo=UTC), request_id="r")


def changed(offset: int, topic: str) -> TopicChanged:
    """A topic of session s, as it is after the turn at this offset."""
    told: dict[str, Any] = {"user_id": "u", "app_id": "a", "title": "boats", "active_turns": [1], "compaction": None}
    source = Position("turns", 0, offset)
    return blank(TopicChanged, id=topic, session_id="s", topic_id=topic, source=source, kept=True, **told)


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        ({}, None),
        ({TURNS.name: 0, FACTS.name: 0}, None),
        ({**OF_SESSIONS, FACTS.name: 0, USER_EPISODES.name: 0, PROJECTS.name: 7}, True),
        ({**OF_SESSIONS, FACTS.name: 3, USER_EPISODES.name: 0}, False),
    ],
    ids=["none of its own", "others have some", "all read", "behind"],
)
async def test_the_end_of_the_logs_is_told_where_it_is_seen(
    role: Quiet, lags: dict[str, int], expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the topics that users' memory is in; before the index has caught up it is behind."""
    names = {topic.name: topic.full_name(role.settings.topic_prefix) for topic in IndexRole.sources}
    monkeypatch.setattr(role, "_partitions", dict.fromkeys(names.values(), 1))
    monkeypatch.setattr(role, "_lags", lambda: {TP(names[name], 0): lag for name, lag in lags.items()})
    early = role._at_end()
    monkeypatch.setattr(role, "_caught_up", True)

    assert (early, role._at_end()) == (False, expected)


@pytest.fixture
async def role(tmp_path: Path) -> AsyncIterator[Quiet]:
    """The role over an empty store."""
    made = Quiet(Noting(), tmp_path)
    yield made
    await made.close()


def stored(role: Quiet) -> Noting:
    """The role's store."""
    assert isinstance(role._store, Noting)
    return role._store


async def test_what_is_remembered_is_there_before_its_standing_says_so(role: Quiet) -> None:
    """Whoever waits for a command's result reads what it did; also when the log has them the other way round.

    A reader that holds a view of a project asks for what changed since the standing that it knows.
    """
    await role.take(stats(), memory(0), memory(1))
    await role.take(stands(1), project_changed(remembered(1), 0, 2), project_changed(conversation(), 0, 2), stands(2))

    assert stored(role).written == ["memories", "spaces", "project_items", "projects", "projects"]


async def test_who_is_to_be_forgotten_goes_last(role: Quiet) -> None:
    """What a poll brings of them goes with what was there, and the counts are told for each request."""
    await role.take(memory(0, session_id="x"), memory(1, session_id="y"))
    await role.take(due("r1", "x", "z"), due("r2", "y"), memory(2, session_id="z"), memory(3, session_id="kept"))
    found = await AppMemoryIndex(stored(role), MatterEmbedder()).memories("a")

    assert ["kept"] == [each.session_id for each in found]
    assert [
        ("r1", [ErasedStore(store="vectors memories", looked_at=4, removed=2, remaining=0)]),
        ("r2", [ErasedStore(store="vectors memories", looked_at=2, removed=1, remaining=0)]),
    ] == role.told


async def test_what_was_told_stands(role: Quiet) -> None:
    """A repeat finds nothing any more: its counts must not replace those of the first time."""
    await role.take(memory(0, session_id="x"), due("r", "x"))
    told = VectorsErased(request_id="r", timestamp=datetime(2026, 1, 5, tzinfo=UTC), stores=role.told[0][1])
    await role.take(memory(0, session_id="x"), due("r", "x"), told)

    assert ([1], ["r"]) == ([each.removed for each in role.told[0][1]], [request for request, _ in role.told])
    assert await stored(role).count("memories") == 0


@pytest.mark.parametrize("polls", [1, 2, 6])
async def test_an_index_made_anew_leaves_out_who_was_erased(role: Quiet, polls: int) -> None:
    """However the log is cut: neither turns nor topics of before; those of a later life of the session stay."""
    log = [said(0), said(0, session_id="other"), changed(0, "t"), ended("s"), said(1), changed(4, "u"), changed(0, "v")]
    for start in range(0, len(log), -(-len(log) // polls)):
        await role.take(*log[start : start + -(-len(log) // polls)], first=start)
    turns, topics = [await stored(role).page(name, "", 9) for name in ("turns", "topics")]

    assert {("other", 0), ("s", 1)} == {(each.payload["session_id"], each.payload["turn"]) for each in turns[0]}
    assert {"u"} == {str(each.payload["topic_id"]) for each in topics[0]}


@pytest.mark.parametrize(("named", "left"), [("a", {"b"}), ("", set())])
async def test_an_erasure_is_of_one_app_s_session(role: Quiet, named: str, left: set[str]) -> None:
    """Another app's of the same id stays; an erasure of 0.2, which names no app, is of all apps'."""
    both = [said(0), said(0, app_id="b"), changed(0, "t"), structs.replace(changed(1, "u"), app_id="b")]
    await role.take(*both, structs.replace(ended("s"), app_id=named))
    await role.take(*both)
    found = [await stored(role).page(name, "", 9) for name in ("turns", "topics")]

    assert [left, left] == [{str(each.payload["app_id"]) for each in page} for page, _ in found]


async def test_what_an_earlier_release_wrote_gets_its_keys_before_anything_is_read(
    role: Quiet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that comes again after the upgrade replaces its point; a store that is away is asked again."""
    monkeypatch.setattr("streams.roles.index.RETRY_S", 0)
    await role.take(said(0))
    page, _ = await stored(role).page("turns", "", 9)
    await stored(role).rename("turns", {page[0].key: "s_0"})
    stored(role).away = 2
    await role.on_assigned([0])
    await role.take(said(0))
    again, _ = await stored(role).page("turns", "", 9)

    assert [each.key for each in again] == [page[0].key]
    assert stored(role).away == 0


async def test_an_index_under_traffic_gets_ready(role: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once what was in the log at the start is in: there is always something newer, and nobody need wait for it."""
    place, done = TP("turns", 0), iter((0, 9, 10))
    ends = iter((10, 19, 20))

    async def end_of_log(*_: TP) -> dict[TP, int]:
        return {place: next(ends)}

    consumer = SimpleNamespace(
        ledger=SimpleNamespace(places=lambda: [place]), reached=lambda _, end: next(done) >= end, highwaters=end_of_log
    )
    monkeypatch.setattr(Quiet, "consumer", consumer)
    await role.on_assigned([0])
    seen = []
    for _ in range(3):
        await role.on_idle()
        seen.append(role._caught_up)

    assert seen == [False, False, True]


async def test_an_idle_role_looks_only_after_what_is_held_back(role: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks its group without need is ended by a broker, or a machine, that slept."""
    place, ledger, asked = TP("turns", 0), Ledger[TP](), list[int | None]()

    async def settled() -> bool:
        asked.append(ledger.processed(place))
        return len(asked) > 1

    async def rests() -> None:
        pass

    recovered = SimpleNamespace(is_set=lambda: True)
    consumer = SimpleNamespace(
        ledger=ledger, recovered=recovered, flow_active=False, assignment=lambda: {place}, heal=rests
    )
    monkeypatch.setattr(Quiet, "consumer", consumer)
    for name, fake in {"consumer_ready": lambda: True, "settled": settled, "on_idle": rests}.items():
        monkeypatch.setattr(role, name, fake)
    ledger.know(place, 3)
    await role._heartbeat()
    ledger.advance(place, expected=3, processed=5)
    for _ in range(3):
        await role._heartbeat()

    assert asked == [5, 5]
    assert ledger.settled(place) == 5


class Flushed(Noting):
    """A store in a folder, which counts how often it is flushed."""

    flushes = 0

    def is_gone(self) -> bool:
        """Never."""
        return False

    def hold_back(self) -> None:
        """As it does anyway."""

    async def flush(self) -> None:
        """Count."""
        self.flushes += 1


async def test_a_store_is_flushed_when_it_is_quiet_and_once_a_minute_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flush holds up who reads, so it waits for a moment in which nothing comes; offsets wait for the flush."""
    now_s = 0.0
    monkeypatch.setattr("streams.roles.index.monotonic", lambda: now_s)
    store = Flushed()
    role = IndexRole(load_settings(), Policy(), MatterEmbedder(), RuleScorer(), store)
    settled = list[float]()
    for now_s in (4.0, 6.0, 8.0, 12.0, 30.0, 66.0, 67.5):
        if now_s not in {6.0, 67.5}:
            role._took_s = now_s
        if await role.settled():
            settled.append(now_s)

    assert settled == [6.0, 66.0]
    assert store.flushes == len(settled)


class LetterLog:
    """Where the role's dead letters go."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int | None, bytes | None]] = []

    async def write(self, topic: str, _key: bytes, records: Sequence[Record]) -> None:
        """Note them."""
        self.written += [(topic, record.partition, record.key) for record in records]

    async def close(self) -> None:
        """Nothing to close."""


def right(turn: int, content: str, app: str = "a") -> TurnCorrected:
    """A turn of session s is put right."""
    at = datetime(2026, 4, 1, tzinfo=UTC)
    return TurnCorrected(session_id="s", app_id=app, user_id="u", timestamp=at, turn=turn, content=content)


async def texts(role: Quiet) -> dict[tuple[str, int], str]:
    """What turns say, by app and number."""
    page, _ = await stored(role).page("turns", "", 9)
    said = [index.TURNS.event_of(each.payload) for each in page]
    return {(turn.app_id, turn.turn): turn.content for turn in said}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)], ids=["in order", "the turn last", "between"])
async def test_a_turn_shows_its_last_correction_whichever_is_indexed_first(
    role: Quiet, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    """Of the same app alone; a repeat of the old text is no conflict, and found are the new words, not the old."""
    monkeypatch.setattr(role, "_producer", letters := LetterLog())
    await role.take(said(0, "boats", app_id="b"), first=1)
    log = {0: (said(0, "boats"), 3), 1: (right(0, "no"), 4), 2: (right(0, "trees"), 5)}
    for n in (order[2], order[0], order[1]) if order == (2, 0, 1) else order:
        await role.take(log[n][0], first=log[n][1])
    await role.take(log[2][0], first=5)
    await role.take(said(0, "boats"), first=9)

    assert await texts(role) == {("a", 0): "trees", ("b", 0): "boats"}
    assert letters.written == []


async def test_a_correction_of_no_turn_is_a_dead_letter(role: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never came, and one that was erased; a turn that comes later under the number says what it says."""
    monkeypatch.setattr(role, "_producer", letters := LetterLog())
    monkeypatch.setattr(role, "_caught_up", True)
    conflicts = metrics.registry.get_sample_value("turntide_turn_conflicts_total")
    await role.take(right(0, "trees"))
    await role.take(said(0, "boats"), first=1)
    assert await texts(role) == {("a", 0): "boats"}
    await role.take(said(1, "birds"), ended("s"), first=2)
    await role.take(due("r", "s"))
    await role.take(right(1, "words of the erased"), first=4)

    assert letters.written == [("turntide.dead-letters.v1", 0, b"session:a/s")] * 2
    assert await texts(role) == {}
    assert (await stored(role).page("corrections", "", 9))[0] == []
    assert metrics.registry.get_sample_value("turntide_turn_conflicts_total") == conflicts
