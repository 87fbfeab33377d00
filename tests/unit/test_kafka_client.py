"""Clients are stopped whatever their library does; of producers on demand, who fails takes nobody else's away."""

import asyncio
from typing import Any

import pytest

from models.errors import DeliveryFailed
from streams.kafka.client import _running
from streams.kafka.producer import ProducerOnDemand, Record
from streams.settings import KafkaSettings, load_settings


class Client:
    """Doubles one whose tasks are cancelled when it stops without its broker."""

    async def start(self) -> None:
        """Connected."""

    async def stop(self) -> None:
        """As aiokafka's fetcher: it cancels a task of its own and waits for it."""
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task


async def test_a_cancellation_of_the_librarys_own_ends_nobody() -> None:
    """What went wrong is told, not that something was cancelled."""
    client = Client()

    with pytest.raises(ConnectionError, match="broker away"):
        async with _running(client, KafkaSettings(), stop=client.stop):
            raise ConnectionError("broker away")


async def test_who_is_cancelled_ends() -> None:
    """Also while its client stops."""
    client, entered = Client(), asyncio.Event()

    async def use() -> None:
        async with _running(client, KafkaSettings(), stop=client.stop):
            entered.set()
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await entered.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using


RECORD = Record(b"k", b"v")


class Cluster:
    """Doubles producers of a cluster: writes to `slow` wait, `bad` are refused, `late` are after a while."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.well = asyncio.Event()

    def producer(self, _settings: object) -> Any:
        """As `Producer(settings)`."""
        self.made.append(Fake(self.well))
        return self.made[-1]


class Fake:
    """One producer."""

    def __init__(self, well: asyncio.Event) -> None:
        self.stopped = False
        self._well = well

    async def start(self) -> None:
        """Connected at once."""

    async def stop(self) -> None:
        """Remembered."""
        assert not self.stopped
        self.stopped = True

    async def partition_of(self, _topic: str, _key: bytes, _known: int | None) -> int:
        """One partition."""
        return 0

    async def write(self, topic: str, _partition: int, _records: object) -> list[Any]:
        """As the topic says."""
        if topic == "bad":
            raise DeliveryFailed("too large")
        if topic in {"slow", "late"}:
            await self._well.wait()
            assert not self.stopped, "the producer was stopped while somebody wrote"
        if topic == "late":
            raise DeliveryFailed("too late")
        return []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """In place of Kafka."""
    made = Cluster()
    monkeypatch.setattr("streams.kafka.producer.Producer", made.producer)
    return made


async def test_a_refusal_lets_others_finish_and_the_next_gets_a_new_producer(cluster: Cluster) -> None:
    """The old one is stopped by the last who writes with it, and only then."""
    log = ProducerOnDemand(load_settings())
    slow = asyncio.create_task(log.write("slow", b"k", [RECORD]))
    await asyncio.sleep(0)
    with pytest.raises(DeliveryFailed, match="too large"):
        await log.write("bad", b"k", [RECORD])
    await log.write("good", b"k", [RECORD])
    while_waiting = [each.stopped for each in cluster.made]
    cluster.well.set()
    await slow

    assert (while_waiting, [each.stopped for each in cluster.made], log.connected) == (
        [False, False],
        [True, False],
        True,
    )
    await log.close()
    assert [each.stopped for each in cluster.made] == [True, True]


async def test_a_late_failure_leaves_the_new_producer_alone(cluster: Cluster) -> None:
    """It was another one that failed."""
    log = ProducerOnDemand(load_settings())
    late = asyncio.create_task(log.write("late", b"k", [RECORD]))
    await asyncio.sleep(0)
    await log.close()
    await log.write("good", b"k", [RECORD])
    cluster.well.set()
    with pytest.raises(DeliveryFailed, match="too late"):
        await late

    assert ([each.stopped for each in cluster.made], log.connected) == ([True, False], True)
