"""An erasure that was cut short and begins anew: what it still knows, and to whom it says it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from msgspec import Struct

from models.erasure import Subject
from models.errors import StoreUnavailable
from models.events import ErasedStore, EraseRequested, VectorsErased, VectorsErasureDue
from models.events.topics import ERASURES, SESSION_STATE, TURNS, Topic
from streams.erase.erasure import Erasure
from streams.erase.logs import Extent
from streams.erase.record import ErasureRecords, key_of
from streams.erase.traces import Tally
from streams.kafka.producer import Record
from streams.state import changelog

NOW = datetime(2026, 5, 1, tzinfo=UTC)
REQUEST = EraseRequested(request_id="r-1", timestamp=NOW, scope="user", user_id="anna")
DUE = VectorsErasureDue(request_id="r-1", timestamp=NOW, scope="user", user_id="anna", session_ids=["anna-1"])
STATE_ON = 3


class Logs:
    """Topics without a record, but for state of `anna-1` on a partition that no key leads to."""

    def __init__(self, *, state: bytes | None) -> None:
        self.written: list[tuple[str, int, bytes | None]] = []
        self.producer = self
        self._state = state

    def name(self, topic: Topic) -> str:
        """As it is."""
        return topic.name

    async def ends(self, *topics: Topic) -> dict[TopicPartition, int]:
        """Where the state ends."""
        return {TopicPartition(topic.name, STATE_ON): 1 for topic in topics if topic is SESSION_STATE}

    async def extents(self, topic: Topic) -> dict[TopicPartition, Extent]:
        """Of the one record."""
        return {place: Extent(0, end) for place, end in (await self.ends(topic)).items()}

    async def read(self, extents: Mapping[TopicPartition, Extent]) -> AsyncIterator[Any]:
        """The state."""
        key = changelog.key_of("anna-1", "head")
        for topic, partition in extents:
            yield SimpleNamespace(topic=topic, partition=partition, offset=0, timestamp=0, key=key, value=self._state)

    def event_of(self, _topic: Topic, _record: Any) -> Struct | None:
        """No topic has any."""
        return None

    async def place_of(self, topic: Topic, _key: bytes) -> TopicPartition:
        """Always the first."""
        return TopicPartition(topic.name, 0)

    async def write(self, records: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Note it."""
        self.written += [(p.topic, p.partition, record.key) for p, each in records.items() for record in each]

    async def write_whole(self, topic: str, partition: int, records: Sequence[Record]) -> int:
        """Note it."""
        await self.write({TopicPartition(topic, partition): records})
        return 0


class Nobody:
    """No role was ever here, and the archive has everything."""

    def __init__(self) -> None:
        self.waited_for: list[str] = []

    async def works_here(self, _role: str) -> bool:
        """None does."""
        return False

    async def beyond(self, role: str, _ends: Any) -> None:
        """Nobody to wait for."""
        self.waited_for.append(role)

    async def archived(self, _ends: Any) -> None:
        """At once."""


class Archive:
    """Knows no session, and gives up."""

    def __init__(self) -> None:
        self.asked: list[Subject] = []

    async def sessions_of(self, _request: EraseRequested) -> list[Any]:
        """None."""
        return []

    async def erase(self, subject: Subject) -> list[ErasedStore]:
        """Not this time."""
        self.asked.append(subject)
        raise StoreUnavailable("the disk is full")


async def tried(logs: Logs, records: ErasureRecords, readers: Nobody | None = None) -> list[frozenset[str]]:
    """Sessions that the archive was to forget in one try."""
    archive: Any = Archive()
    parts: dict[str, Any] = {"logs": logs, "readers": readers or Nobody(), "archive": archive}
    with pytest.raises(StoreUnavailable):
        await Erasure(REQUEST, **parts, records=records, tally=Tally()).run()
    return [subject.session_ids for subject in archive.asked]


@pytest.mark.parametrize(("state", "partition"), [(b"12345678hers", STATE_ON), (None, 0)])
async def test_a_retry_knows_the_sessions_of_the_first_try(state: bytes | None, partition: int) -> None:
    """Archive and logs do not tell of them any more; where the state is, its worker is told, else by the key."""
    logs, records = Logs(state=state), ErasureRecords()
    records.take_event(DUE, offset=0)

    assert await tried(logs, records) == [frozenset({"anna-1"})]
    assert logs.written[0] == (TURNS.name, partition, b"anna-1")
    assert logs.written[-1] == (ERASURES.name, 0, key_of("r-1", VectorsErasureDue))


async def test_a_judge_s_answer_under_way_is_waited_for() -> None:
    """It names the session on `turns.v1`: written behind the erasure, it would come into the archive again."""
    readers, records = Nobody(), ErasureRecords()
    records.take_event(DUE, offset=0)
    await tried(Logs(state=b"12345678hers"), records, readers)

    assert readers.waited_for[:4] == ["sessions", "sessions", "judge", "sessions"]


async def test_nothing_is_noted_of_whom_nothing_is_known() -> None:
    """A second erasure leaves no new traces of its own."""
    logs = Logs(state=None)

    assert await tried(logs, ErasureRecords()) == [frozenset()]
    assert logs.written == []


async def test_an_index_that_answered_once_is_waited_for() -> None:
    """Its offsets have expired, its points have not: nothing else is removed before it is back."""
    logs, records = Logs(state=None), ErasureRecords()
    points = ErasedStore(store="vectors turns", looked_at=5, removed=1, remaining=0)
    records.take_event(VectorsErased(request_id="r-0", timestamp=NOW, stores=[points]), offset=0)

    assert await tried(logs, records) == []
