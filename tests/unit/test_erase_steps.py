"""An erasure from the request to the proof: who is waited for, in which order it goes, and what counts as its own."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition

from models import events
from models.erasure import ErasureSubject
from models.errors import StoreUnavailable
from models.events.topics import COMMANDS, ERASURES, MEMORY_STATE, PROFILES, SESSION_STATE, TURNS, Topic
from models.user.facts import PREFIX as FACT_PART
from streams.erase import erasure, purge
from streams.erase.erasure import Erasure
from streams.erase.logs import ReadersBehind
from streams.erase.record import ErasureRecords, key_of
from streams.erase.residual import COMPACTED, Tally
from streams.erase.sweep import look_at_state
from streams.kafka.client import Extent
from streams.kafka.producer import Record
from streams.state import changelog
from tests.support.session_driver import said
from tests.support.subjects import sessions

NOW = datetime(2026, 5, 1, tzinfo=UTC)
REQUEST = events.EraseRequested(request_id="r-1", timestamp=NOW, scope="user", user_id="anna")
DUE = events.VectorsErasureDue(
    request_id="r-1",
    timestamp=NOW,
    scope="user",
    user_id="anna",
    session_ids=["anna-1"],
    sessions=[events.ErasedSession("shop", "anna-1")],
)
ROWS = events.ErasedStore(store="archive turns", looked_at=3, removed=2, remaining=0)
POINT = events.ErasedStore(store="vectors turns", looked_at=5, removed=1, remaining=0)
SESSION, USER, VALUE = "session:shop/anna-1", "user:shop/anna", b"12345678hers"
ANSWERED = ["memory", "judge", "enrich", "sessions", "memory"]


class World:
    """Kafka, the roles and the archive: what is asked of them is noted, and they do what they are told.

    A session of Anna's is there. The memory role folds her as late as its commands are waited for, and the session
    goes on as the archive is erased.

    Attributes:
        steps: What was done, in its order.
        waited: Up to where who was waited for, likewise.
    """

    def __init__(self, *, has_index: bool) -> None:
        self.steps: list[str] = []
        self.waited: list[tuple[str, Mapping[TopicPartition, int]]] = []
        self.producer = self.admin = self
        self._has_index = has_index
        self._state: dict[str, list[tuple[str, bytes | None]]] = {
            SESSION_STATE.name: [(SESSION, VALUE)],
            MEMORY_STATE.name: [],
        }

    # --- logs

    def name(self, topic: Topic) -> str:
        """As it is."""
        return topic.name

    async def extents(self, topic: Topic, **_: Any) -> dict[TopicPartition, Extent]:
        """Of state only."""
        records = self._state.get(topic.name)
        return {} if records is None else {TopicPartition(topic.name, 0): Extent(0, len(records))}

    async def ends(self, *topics: Topic) -> dict[TopicPartition, int]:
        """Where it ends."""
        return {place: extent.end for topic in topics for place, extent in (await self.extents(topic)).items()}

    async def read(self, extents: Mapping[TopicPartition, Extent]) -> AsyncIterator[Any]:
        """The state."""
        for place in extents:
            for offset, (entity, value) in enumerate(self._state[place.topic]):
                key = changelog.key_of(entity, "head")
                yield SimpleNamespace(
                    topic=place.topic, partition=place.partition, offset=offset, timestamp=0, key=key, value=value
                )

    async def place_of(self, topic: Topic, _key: bytes) -> TopicPartition:
        """The only one."""
        return TopicPartition(topic.name, 0)

    async def write(self, records: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Note it."""
        self.steps += [f"{p.topic} {(record.key or b'').decode()}" for p, each in records.items() for record in each]

    async def write_whole(self, topic: str, partition: int, records: Sequence[Record]) -> int:
        """Note it."""
        await self.write({TopicPartition(topic, partition): records})
        return 0

    # --- roles

    async def works_here(self, _role: str) -> bool:
        """Whether there is an index."""
        return self._has_index

    async def beyond(self, role: str, ends: Mapping[TopicPartition, int]) -> None:
        """It has read everything, and folded it."""
        self.steps.append(role)
        self.waited.append((role, ends))
        if role == "sessions" and self.steps[-2:] == ["turns.v1 anna-1", role]:
            self._state[SESSION_STATE.name].append((SESSION, None))
        if role == "memory" and not self._state[MEMORY_STATE.name]:
            self._state[MEMORY_STATE.name].append((USER, VALUE))

    async def archived(self, _ends: Any) -> None:
        """It has everything."""
        self.steps.append("archived")

    # --- archive

    async def sessions_of(self, _request: events.EraseRequested) -> list[Any]:
        """It knows of none."""
        return []

    async def namesakes_of(self, _sessions: Any) -> set[events.SessionName]:
        """Likewise."""
        return set()

    async def erase(self, _subject: Any) -> list[events.ErasedStore]:
        """Done; she says something more."""
        self.steps.append("archive")
        self._state[SESSION_STATE.name].append((SESSION, VALUE))
        return [ROWS]


async def proved(monkeypatch: pytest.MonkeyPatch, world: Any, *, answered_at: int = 0) -> events.ErasureProved:
    """The proof of an erasure that was begun before, and is asked for by nobody else; the index answered at an offset.

    What it is asked for now stands at offset 0.
    """

    async def standing_topics(_: Any, names: Sequence[str]) -> dict[str, Any]:
        return {name: SimpleNamespace(config={}) for name in names}

    async def sweep(_: Any, topic: Topic, _concerns: Any) -> int:
        world.steps.append(f"sweep {topic.name}")
        return 0

    monkeypatch.setattr(erasure, "existing_topics", standing_topics)
    monkeypatch.setattr(erasure, "sweep", sweep)
    records = ErasureRecords()
    records.take_event(DUE, offset=0)
    records.take_event(events.VectorsErased(request_id="r-1", timestamp=NOW, stores=[POINT]), offset=answered_at)
    parts: dict[str, Any] = {"logs": world, "readers": world, "archive": world}
    return await Erasure(REQUEST, **parts, records=records, tally=Tally()).run()


async def test_everybody_has_forgotten_before_the_archive_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a role writes meanwhile would come into what is erased already; the user is known to the state alone."""
    world = World(has_index=True)
    await proved(monkeypatch, world)

    assert world.steps == [
        *("sessions", "archived"),
        *("turns.v1 anna-1", "sessions"),
        *("memory", f"commands.v1 {USER}", "commands.v1 app:shop/anna", *ANSWERED),
        *(f"sweep {topic.name}" for topic in COMPACTED),
        *("index", f"{ERASURES.name} r-1/vectors_erasure_due", "index"),
        *("archived", "archive"),
    ]
    assert world.waited[-1] == ("index", {TopicPartition(ERASURES.name, 0): 1})  # what it was asked, too


async def test_an_answer_to_an_earlier_try_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said since is in the index too: the erasure stays pending, and asks again."""
    with pytest.raises(ReadersBehind, match="repeats the request"):
        await proved(monkeypatch, World(has_index=True), answered_at=-1)


async def test_what_is_said_after_the_erasure_is_not_the_erasures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that goes on is a new one; what Kafka still has of the old one keeps the proof from being complete."""
    proof = await proved(monkeypatch, World(has_index=True))
    lines = {store.store: (store.removed, store.remaining) for store in proof.stores}

    assert (lines["state sessions"], lines[f"log {SESSION_STATE.name}"]) == ((1, 0), (0, 1))
    assert (lines["archive turns"], lines["vectors turns"]) == ((2, 0), (1, 0))
    assert (proof.sessions, proof.complete) == (1, False)


async def test_nothing_is_cut_off_that_roles_or_archive_have_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's records go with the subject's: the archive is the only one to have them then."""
    steps: list[str] = []
    place = TopicPartition(TURNS.name, 0)

    @asynccontextmanager
    async def tightened(*_: Any) -> AsyncIterator[None]:
        yield

    async def fill(*_: Any) -> dict[TopicPartition, int]:
        steps.append("fill")
        return {place: 7}

    async def all_beyond(ends: Mapping[TopicPartition, int], **_: Any) -> None:
        steps.append(f"roles {ends[place]}")

    async def archived(ends: Mapping[TopicPartition, int]) -> None:
        steps.append(f"archive {ends[place]}")

    async def cut(_: Any, ends: Mapping[TopicPartition, int]) -> None:
        steps.append(f"cut {ends[place]}")

    for name, double in {"tightened": tightened, "fill": fill, "_cut": cut, "_SEGMENT_MS": 0}.items():
        monkeypatch.setattr(purge, name, double)
    logs: Any = SimpleNamespace(name=lambda topic: topic.name, admin=None)
    readers: Any = SimpleNamespace(all_beyond=all_beyond, archived=archived)
    await purge.purge(logs, readers, "r-1", {TURNS: [place]}, AsyncMock(return_value=True))

    assert steps == ["fill", "roles 7", "archive 7", "cut 7"]


async def test_a_changelog_keeps_its_null_records_while_it_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recovery that is behind would keep sessions of others that went meanwhile; it ends as it was before."""
    topics = (TURNS, PROFILES, SESSION_STATE)
    tight: dict[str, Mapping[str, str]] = {}
    before = {topic.name: SimpleNamespace(own_config={"retention.ms": "1"}) for topic in topics}
    replaced = AsyncMock()

    async def set_config(_: Any, configs: Mapping[str, Mapping[str, str]]) -> None:
        tight.update(configs)

    monkeypatch.setattr(purge, "existing_topics", AsyncMock(return_value=before))
    monkeypatch.setattr(purge, "set_config", set_config)
    monkeypatch.setattr(purge, "replace_config", replaced)
    logs: Any = SimpleNamespace(name=lambda topic: topic.name, admin=None)
    with pytest.raises(RuntimeError, match="killed"):
        async with purge.tightened(logs, topics):
            raise RuntimeError("killed")

    assert [name for name, config in tight.items() if "delete.retention.ms" in config] == [PROFILES.name]
    assert [name for name, config in tight.items() if "max.compaction.lag.ms" in config] == [
        PROFILES.name,
        SESSION_STATE.name,
    ]
    replaced.assert_awaited_once_with(None, {topic.name: {"retention.ms": "1"} for topic in topics})


async def test_what_a_fact_s_key_says_stays_in_the_state_for_a_day() -> None:
    """Also of a user who is not the subject, but whom something of the subject's was said to; nothing of others."""
    keys = [(USER, f"{FACT_PART}name"), (USER, "head"), ("user:shop/ben", f"{FACT_PART}name"), ("user:shop/eve", "x")]

    async def read(_: Any) -> AsyncIterator[Any]:
        for offset, name in enumerate(keys):
            key = changelog.key_of(*name)
            yield SimpleNamespace(topic="t", partition=0, offset=offset, timestamp=0, key=key, value=None)

    logs: Any = SimpleNamespace(read=read, extents=AsyncMock(return_value={}))
    touched = await look_at_state(logs, MEMORY_STATE, owned=lambda _: False, touched=USER.__eq__)
    owned = await look_at_state(logs, MEMORY_STATE, owned=USER.__eq__, touched=lambda _: False)

    assert (touched.lasting_nulls, owned.lasting_nulls) == (1, 2)


STATE_ON = 3


class CutShort(World):
    """State of her session is on a partition that no key leads to; no role was ever here, and the archive gives up."""

    def __init__(self, state: bytes | None = None) -> None:
        super().__init__(has_index=False)
        self._state = {SESSION_STATE.name: [(SESSION, state)]}
        self.written: list[tuple[str, int, bytes | None]] = []
        self.asked: list[frozenset[events.SessionName]] = []

    async def extents(self, topic: Topic, **_: Any) -> dict[TopicPartition, Extent]:
        """Of the one record."""
        found = await super().extents(topic)
        return {TopicPartition(place.topic, STATE_ON): extent for place, extent in found.items()}

    async def write(self, records: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Note it, and where."""
        self.written += [(p.topic, p.partition, record.key) for p, each in records.items() for record in each]

    async def beyond(self, role: str, ends: Mapping[TopicPartition, int]) -> None:
        """Nobody to wait for."""
        self.waited.append((role, ends))

    async def erase(self, subject: ErasureSubject) -> list[events.ErasedStore]:
        """Not this time."""
        self.asked.append(subject.sessions)
        raise StoreUnavailable("the disk is full")


async def tried(world: Any, records: ErasureRecords) -> list[frozenset[events.SessionName]]:
    """Sessions that the archive was to forget in one try."""
    parts: dict[str, Any] = {"logs": world, "readers": world, "archive": world}
    with pytest.raises(StoreUnavailable):
        await Erasure(REQUEST, **parts, records=records, tally=Tally()).run()
    asked: list[frozenset[events.SessionName]] = world.asked
    return asked


@pytest.mark.parametrize(("state", "partition"), [(VALUE, STATE_ON), (None, 0)])
async def test_a_retry_knows_the_sessions_of_the_first_try(state: bytes | None, partition: int) -> None:
    """Archive and logs do not tell of them any more; where the state is, its worker is told, else by the key."""
    logs, records = CutShort(state), ErasureRecords()
    records.take_event(DUE, offset=0)

    assert await tried(logs, records) == [sessions("anna-1", app_id="shop")]
    assert logs.written[0] == (TURNS.name, partition, b"anna-1")
    assert logs.written[-1] == (ERASURES.name, 0, key_of("r-1", events.VectorsErasureDue))


async def test_a_session_that_only_the_log_has_is_erased_where_its_turns_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fold knows it any more, and its producer need not partition as Turntide does; an index reads the log anew."""
    logs, records = CutShort(), ErasureRecords()
    logs._state[TURNS.name] = [("anna-1", VALUE)]
    turn = said(0, session_id="anna-1", user_id="anna", app_id="shop")
    monkeypatch.setattr(logs, "event_of", lambda topic, _: turn if topic is TURNS else None, raising=False)

    await tried(logs, records)
    # Her user's memory is told before: what that has of the session would come into it as soon as it goes on.
    user, *_ = [place for place in logs.written if place[0] != ERASURES.name]
    of_turns = [place for place in logs.written if place[0] == TURNS.name]
    assert [(TURNS.name, STATE_ON, b"anna-1")] == of_turns
    assert user == (COMMANDS.name, 0, USER.encode())


async def test_nothing_is_noted_of_whom_nothing_is_known() -> None:
    """A second erasure leaves no new traces of its own."""
    logs = CutShort()

    assert await tried(logs, ErasureRecords()) == [frozenset()]
    assert logs.written == []


async def test_an_index_that_answered_once_is_waited_for() -> None:
    """Its offsets have expired, its points have not: nothing else is removed before it is back."""
    records = ErasureRecords()
    records.take_event(events.VectorsErased(request_id="r-0", timestamp=NOW, stores=[POINT]), offset=0)

    assert await tried(CutShort(), records) == []
