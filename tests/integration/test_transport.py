"""The micro-batch transport on a real broker: what is committed is what was processed, whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path

import faust
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from jobs.operate.topics import apply_topics
from models.events.topics import TURNS
from streams.kafka.client import admin
from streams.kafka.topics import BrokerTopic, create
from streams.roles.batch_role import BatchRole
from streams.settings import Settings, load_settings

pytestmark = pytest.mark.kafka

PARTITIONS = 4
MAX_POLL_RECORDS = 100


class Recorder(BatchRole):
    """Writes down what it is given."""

    name = "recorder"
    sources = (TURNS,)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, http_port=0)
        self.batches: list[tuple[int, list[int]]] = []
        self.assigned: list[list[int]] = []
        self.fail_at: int | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def on_assigned(self, partitions: list[int]) -> None:
        """Note the assignment."""
        self.assigned.append(partitions)

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Note the offsets, or fail."""
        await self.gate.wait()
        for (_, partition), records in batches.items():
            if self.fail_at is not None and any(r.offset == self.fail_at for r in records):
                raise ValueError("told to fail")
            self.batches.append((partition, [r.offset for r in records]))

    def seen(self) -> Counter[tuple[int, int]]:
        """How often each offset was processed."""
        return Counter((p, o) for p, offsets in self.batches for o in offsets)


class Running:
    """A role running in this loop."""

    def __init__(self, role: Recorder) -> None:
        self.role = role
        self.stop_event = asyncio.Event()
        self.task = asyncio.create_task(role.run(self.stop_event))

    async def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait for a condition; an error of the role ends the wait."""
        async with asyncio.timeout(within_s):
            while not condition():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.05)  # poll

    async def stop(self) -> None:
        """Stop it and let errors through."""
        self.stop_event.set()
        await self.task


@pytest.fixture
async def settings(kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Own topics with four partitions."""
    settings = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": PARTITIONS,
            "max_poll_records": MAX_POLL_RECORDS,
            "session_timeout": timedelta(seconds=6),
            "heartbeat_interval": timedelta(seconds=1),
        },
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
    )
    await apply_topics(settings)
    return settings


async def produce(settings: Settings, count: int, *, topic: str | None = None) -> None:
    """`count` records, evenly over the partitions."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, linger_ms=5)
    await producer.start()
    for n in range(count):
        await producer.send(
            topic or TURNS.full_name(settings.topic_prefix), b"%d" % n, key=b"k", partition=n % PARTITIONS
        )
    await producer.stop()


async def committed(settings: Settings) -> dict[int, int | None]:
    """Committed offset of each partition."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        group_id=f"{settings.topic_prefix}.recorder",
        enable_auto_commit=False,
    )
    await consumer.start()
    topic = TURNS.full_name(settings.topic_prefix)
    found = {p: await consumer.committed(TopicPartition(topic, p)) for p in range(PARTITIONS)}
    await consumer.stop()
    return found


def every_offset(count: int) -> Counter[tuple[int, int]]:
    """Each of `count` records once."""
    return Counter((n % PARTITIONS, n // PARTITIONS) for n in range(count))


def contiguous(batches: Iterable[tuple[int, list[int]]]) -> bool:
    """Whether each partition's offsets only ever rise by one."""
    last: dict[int, int] = {}
    for partition, offsets in batches:
        for offset in offsets:
            if last.get(partition, offset - 1) != offset - 1:
                return False
            last[partition] = offset
    return True


async def test_every_record_once_and_commit_is_what_was_processed(settings: Settings) -> None:
    """A backlog arrives in batches of one partition each; a restart finds nothing left to do."""
    await produce(settings, 2000)
    running = Running(Recorder(settings))
    await running.until(lambda: len(running.role.seen()) == 2000)
    await running.stop()
    again = Running(Recorder(settings))
    await again.until(again.role.consumer_ready)
    await produce(settings, 4)
    await again.until(lambda: len(again.role.seen()) == 4)
    await again.stop()

    assert running.role.seen() == every_offset(2000)
    assert contiguous(running.role.batches)
    assert len(running.role.batches) < 200
    assert again.role.seen() == Counter((p, 500) for p in range(PARTITIONS))
    assert await committed(settings) == dict.fromkeys(range(PARTITIONS), 501)


async def test_failure_stops_the_role_before_the_offset(settings: Settings) -> None:
    """A batch that fails is not committed; the next start gets it again."""
    await produce(settings, 400)
    failing = Recorder(settings)
    failing.fail_at = 50
    with pytest.raises(ValueError, match="told to fail"):
        await Running(failing).task
    resumed = Running(Recorder(settings))
    await resumed.until(lambda: not every_offset(400) - failing.seen() - resumed.role.seen())
    await resumed.stop()

    assert await committed(settings) == dict.fromkeys(range(PARTITIONS), 100)
    assert all(offset < 100 for _, offset in failing.seen())


async def test_second_worker_shares_without_loss(settings: Settings) -> None:
    """While records arrive a worker joins and one leaves; together they process every record."""
    first = Running(Recorder(settings))
    await first.until(first.role.consumer_ready)
    second, sent = Running(Recorder(settings)), 0
    async with asyncio.timeout(60):
        while not (second.role.seen() and first.role.seen()):
            await produce(settings, 400)
            sent += 400
    producing = asyncio.create_task(produce(settings, 4000))
    await first.stop()
    await producing
    sent += 4000
    await second.until(lambda: not every_offset(sent) - first.role.seen() - second.role.seen())
    await second.stop()

    assert await committed(settings) == dict.fromkeys(range(PARTITIONS), sent // PARTITIONS)
    assert set(first.role.seen() + second.role.seen()) == set(every_offset(sent))


async def test_slow_role_holds_back_fetching(settings: Settings) -> None:
    """While a batch takes its time, no more than the poll it came from and the next one are handed over."""
    role = Recorder(settings)
    role.gate.clear()
    running = Running(role)
    await running.until(role.consumer_ready)
    await produce(settings, 20_000)
    ahead: list[int] = []
    for _ in range(20):
        ahead.append(sum(e.fetched - (e.processed or 0) for e in role.consumer.ledger._entries.values()))
        await asyncio.sleep(0.1)  # give an unbounded fetcher time to show itself
    role.gate.set()
    await running.until(lambda: len(role.seen()) == 20_000)
    await running.stop()

    assert 0 < max(ahead) <= 2 * MAX_POLL_RECORDS
    assert role.seen() == every_offset(20_000)


async def test_gap_of_the_log_is_no_obstacle(settings: Settings) -> None:
    """Transaction markers take offsets that no record has; processing goes on behind them."""
    topic = TURNS.full_name(settings.topic_prefix)
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, transactional_id=settings.topic_prefix)
    await producer.start()
    for n in range(3):
        async with producer.transaction():
            await producer.send_and_wait(topic, b"%d" % n, key=b"k", partition=0)
    await producer.stop()
    running = Running(Recorder(settings))
    await running.until(lambda: len(running.role.seen()) == 3)
    await running.stop()

    assert running.role.seen() == Counter({(0, 0): 1, (0, 2): 1, (0, 4): 1})


async def test_ordinary_topics_are_left_as_they_are(settings: Settings) -> None:
    """An agent on another topic of the same app gets single values, and its offsets are committed by Faust."""
    other = f"{settings.topic_prefix}.other"
    async with admin(settings.kafka) as client:
        await create(client, [BrokerTopic(name=other, partitions=PARTITIONS, replication=1, config={})])
    role = Recorder(settings)
    values: list[bytes] = []

    async def keep(stream: faust.StreamT[bytes]) -> None:
        async for value in stream:
            values.append(value)  # noqa: PERF401 - a comprehension would end only with the stream

    role.app.agent(role.app.topic(other, value_serializer="raw", value_type=bytes), name="other")(keep)
    running = Running(role)
    await running.until(role.consumer_ready)
    await produce(settings, 40, topic=other)
    await produce(settings, 40)
    await running.until(lambda: len(values) == 40 and len(role.seen()) == 40)
    await running.stop()

    assert sorted(values, key=int) == [b"%d" % n for n in range(40)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        group_id=f"{settings.topic_prefix}.recorder",
        enable_auto_commit=False,
    )
    await consumer.start()
    offsets = [await consumer.committed(TopicPartition(other, p)) for p in range(PARTITIONS)]
    await consumer.stop()
    assert offsets == [10] * PARTITIONS
