"""An erasure that was cut short and begins anew: what it still knows, and to whom it says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition

from models.erasure import ErasureSubject
from models.errors import StoreUnavailable
from models.events import ErasedStore, SessionName, VectorsErased, VectorsErasureDue
from models.events.topics import ERASURES, SESSION_STATE, TURNS, Topic
from streams.erase.erasure import Erasure
from streams.erase.record import ErasureRecords, key_of
from streams.erase.residual import Tally
from streams.kafka.client import Extent
from streams.kafka.producer import Record
from tests.support.subjects import sessions
from tests.unit.test_erase_steps import DUE, NOW, POINT, REQUEST, SESSION, VALUE, World

STATE_ON = 3


class CutShort(World):
    """State of her session is on a partition that no key leads to; no role was ever here, and the archive gives up."""

    def __init__(self, state: bytes | None = None) -> None:
        super().__init__(has_index=False)
        self._state = {SESSION_STATE.name: [(SESSION, state)]}
        self.written: list[tuple[str, int, bytes | None]] = []
        self.asked: list[frozenset[SessionName]] = []

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

    async def erase(self, subject: ErasureSubject) -> list[ErasedStore]:
        """Not this time."""
        self.asked.append(subject.sessions)
        raise StoreUnavailable("the disk is full")


async def tried(world: Any, records: ErasureRecords) -> list[frozenset[SessionName]]:
    """Sessions that the archive was to forget in one try."""
    parts: dict[str, Any] = {"logs": world, "readers": world, "archive": world}
    with pytest.raises(StoreUnavailable):
        await Erasure(REQUEST, **parts, records=records, tally=Tally()).run()
    asked: list[frozenset[SessionName]] = world.asked
    return asked


@pytest.mark.parametrize(("state", "partition"), [(VALUE, STATE_ON), (None, 0)])
async def test_a_retry_knows_the_sessions_of_the_first_try(state: bytes | None, partition: int) -> None:
    """Archive and logs do not tell of them any more; where the state is, its worker is told, else by the key."""
    logs, records = CutShort(state), ErasureRecords()
    records.take_event(DUE, offset=0)

    assert await tried(logs, records) == [sessions("anna-1", app_id="shop")]
    assert logs.written[0] == (TURNS.name, partition, b"anna-1")
    assert logs.written[-1] == (ERASURES.name, 0, key_of("r-1", VectorsErasureDue))


async def test_nothing_is_noted_of_whom_nothing_is_known() -> None:
    """A second erasure leaves no new traces of its own."""
    logs = CutShort()

    assert await tried(logs, ErasureRecords()) == [frozenset()]
    assert logs.written == []


async def test_an_index_that_answered_once_is_waited_for() -> None:
    """Its offsets have expired, its points have not: nothing else is removed before it is back."""
    records = ErasureRecords()
    records.take_event(VectorsErased(request_id="r-0", timestamp=NOW, stores=[POINT]), offset=0)

    assert await tried(CutShort(), records) == []
