"""From the topic to a sink: what is committed, what comes again, and for how long a sink that refuses is left alone."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from jobs.alerts.command import harmless_alert
from models.errors import StoreUnavailable
from models.events import AlertChanged
from models.events.topics import ALERTS
from models.wire.codec import encode
from streams.notify import relay
from streams.notify.relay import SinkLags
from streams.observe.telemetry import metrics
from streams.ports import NO_TRACE_IDS
from streams.settings import load_settings

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
PLACE = TopicPartition(ALERTS.full_name(load_settings().topic_prefix), 0)


class Client:
    """A consumer whose polls are given: offsets of the partition's records, or None while it is another worker's."""

    def __init__(self, stop: asyncio.Event, polls: Sequence[Sequence[int] | None]) -> None:
        self.committed: list[int] = []
        self.seeks: list[int] = []
        self._stop = stop
        self._polls = list(polls)
        self._mine = True

    async def getmany(self, **_: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The next poll; with the last one the relay is told to stop."""
        offsets = self._polls.pop(0)
        self._mine = offsets is not None
        if not self._polls:
            self._stop.set()
        values = [(n, encode(msgspec.structs.replace(harmless_alert(NOW), id=f"change-{n}"))) for n in offsets or ()]
        records = [ConsumerRecord(PLACE.topic, 0, n, 0, 0, b"k", value, None, 1, 1, ()) for n, value in values]
        return {PLACE: records} if records else {}

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note it."""
        self.committed += offsets.values()

    def assignment(self) -> set[TopicPartition]:
        """The partition, unless it is another's."""
        return {PLACE} if self._mine else set()

    def last_stable_offset(self, _place: TopicPartition) -> int:
        """Where the log ends."""
        return 100

    def seek(self, _place: TopicPartition, offset: int) -> None:
        """Note it."""
        self.seeks.append(offset)


class Sink:
    """Takes alerts unless it is told to refuse."""

    name = "double"

    def __init__(self, refuses: Sequence[bool] = ()) -> None:
        self.delivered: list[str] = []
        self.progresses: list[Mapping[str, Any]] = []
        self.relay: Any = None
        self._refuses = list(refuses)

    async def deliver(self, alerts: Sequence[AlertChanged], _trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Keep the ids, and what is said of the relay meanwhile."""
        self.progresses.append(await self.relay.progress())
        if self._refuses and self._refuses.pop(0):
            raise StoreUnavailable("not now")
        self.delivered += [alert.id for alert in alerts]

    async def close(self) -> None:
        """Nothing to release."""


class Ends:
    """Where the log ends, whoever asks."""

    def __init__(self, _ask: Any) -> None:
        """Nobody is asked."""

    async def known(self) -> dict[TopicPartition, int]:
        """There is always more."""
        return {PLACE: 100}


async def relayed(monkeypatch: pytest.MonkeyPatch, sink: Sink, *polls: Sequence[int] | None) -> Client:
    """What is asked of a broker with these polls; pauses take no time, and double from 1 to 4."""
    stop = asyncio.Event()
    client = Client(stop, polls)

    @asynccontextmanager
    async def consumer(*_: Any, **__: Any) -> AsyncIterator[Client]:
        yield client

    monkeypatch.setattr(relay, "consumer", consumer)
    monkeypatch.setattr(relay, "LogEnds", Ends)
    monkeypatch.setattr(relay, "_FIRST_PAUSE_S", 1e-9)
    monkeypatch.setattr(relay, "_LONGEST_PAUSE_S", 4e-9)
    sink.relay = relay._Relay(load_settings(), sink, SinkLags())
    await sink.relay.run(stop)
    return client


async def test_what_was_refused_comes_again_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """From behind the last delivery; an offset is committed only once the sink has taken what stands before it."""
    sink = Sink([False, False, True, False])
    client = await relayed(monkeypatch, sink, [4, 5], [6], [6])

    assert sink.delivered == ["change-4", "change-5", "change-6"]
    assert (client.committed, client.seeks) == ([6, 7], [6])


async def test_what_was_delivered_before_a_refusal_does_not_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel or a mailbox cannot tell repeats: one alert that is refused would post those before it every minute."""
    sink = Sink([False, True, False, False])
    client = await relayed(monkeypatch, sink, [4, 5, 6], [5, 6])

    assert sink.delivered == ["change-4", "change-5", "change-6"]
    assert (client.committed, client.seeks) == ([7], [5])


async def test_a_partition_that_came_back_is_read_from_where_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker has delivered of it meanwhile: what that one delivered would be told twice."""
    client = await relayed(monkeypatch, Sink([False, True]), [4], None, [9])

    assert (client.committed, client.seeks) == ([5], [9])


async def test_a_delivery_that_takes_its_time_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has time-outs of its own; between deliveries what is unread counts."""
    sink = Sink()
    await relayed(monkeypatch, sink, [4])

    assert sink.progresses == [{}]
    assert [(each.next, each.end) for each in (await sink.relay.progress()).values()] == [(5, 100)]


async def test_a_sink_that_takes_its_time_holds_up_nobody() -> None:
    """They are delivered to side by side."""
    well = asyncio.Event()

    async def slow(_stop: asyncio.Event) -> None:
        await well.wait()

    async def quick(_stop: asyncio.Event) -> None:
        well.set()

    relays: list[Any] = [SimpleNamespace(run=slow), SimpleNamespace(run=quick)]
    async with asyncio.timeout(10):
        await relay._run_all(relays, asyncio.Event())


def test_the_sink_that_is_furthest_behind_is_the_roles_lag() -> None:
    """A partition that moved is shown by nobody: its new owner shows it."""
    lags, name = SinkLags(), "turntide_offset_lag_records"
    lags.show("slow", {90: 7, 91: 3})
    lags.show("fast", {90: 2})
    shown = metrics.registry.get_sample_value(name, {"partition": "90"})
    lags.show("slow", {91: 3})

    assert shown == 7
    assert metrics.registry.get_sample_value("turntide_sink_lag_records", {"sink": "slow", "partition": "90"}) is None
    assert metrics.registry.get_sample_value(name, {"partition": "91"}) == 3
