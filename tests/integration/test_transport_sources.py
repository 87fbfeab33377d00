"""One role over two topics on a real broker: each topic's partitions are admitted and committed on their own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from jobs.operate.topics import apply_topics
from models.events.topics import CONVERSATION_TOPICS, TURNS
from streams.kafka.client import consumer
from streams.roles.batch_role import BatchRole
from streams.settings import Settings, load_settings
from tests.fault_driver import until

pytestmark = pytest.mark.kafka

PARTITIONS = 4
SOURCES = (TURNS, CONVERSATION_TOPICS)


class Recorder(BatchRole):
    """Writes down what it is given of two topics."""

    name = "recorder"
    sources = SOURCES

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, http_port=0)
        self.seen: list[tuple[TP, int]] = []
        self.assigned: list[list[int]] = []
        self.fail_at: tuple[str, int] | None = None

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def on_assigned(self, partitions: list[int]) -> None:
        """Note the assignment."""
        self.assigned.append(partitions)

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Note the offsets, or fail before any of the poll is noted."""
        places = [(tp, record.offset) for tp, records in batches.items() for record in records]
        if any((tp.topic, offset) == self.fail_at for tp, offset in places):
            raise ValueError("told to fail")
        self.seen += places


@pytest.fixture
async def settings(kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Own topics with four partitions; polls of at most a hundred records, of both topics together."""
    settings = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": PARTITIONS,
            "max_poll_records": 100,
            "session_timeout": timedelta(seconds=6),
            "heartbeat_interval": timedelta(seconds=1),
        },
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
    )
    await apply_topics(settings)
    return settings


def names(settings: Settings) -> list[str]:
    """The two topics on the broker."""
    return [topic.full_name(settings.topic_prefix) for topic in SOURCES]


async def produce(settings: Settings, count: int) -> None:
    """`count` records to each topic, evenly over the partitions."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, linger_ms=5)
    await producer.start()
    for n in range(count):
        for name in names(settings):
            await producer.send(name, b"%d" % n, key=b"k", partition=n % PARTITIONS)
    await producer.stop()


async def committed(settings: Settings) -> set[int]:
    """Committed offsets of all partitions of both topics."""
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.recorder") as client:
        places = [TopicPartition(name, n) for name in names(settings) for n in range(PARTITIONS)]
        return {await client.committed(place) or 0 for place in places}


def every_place(settings: Settings, count: int) -> set[tuple[TP, int]]:
    """Where `count` records of each topic lie."""
    return {(TP(name, n % PARTITIONS), n // PARTITIONS) for name in names(settings) for n in range(count)}


async def test_a_failure_in_one_topic_commits_neither(settings: Settings) -> None:
    """What the poll held of the other topic comes again too; nothing is lost, and in the end all is committed."""
    await produce(settings, 1_000)
    failing = Recorder(settings)
    failing.fail_at = (names(settings)[1], 100)
    with pytest.raises(ValueError, match="told to fail"):
        await failing.run(asyncio.Event())
    role, stop = Recorder(settings), asyncio.Event()
    running = asyncio.create_task(role.run(stop))
    everything = every_place(settings, 1_000)
    await until(lambda: everything <= {*failing.seen, *role.seen}, "all records of both topics")
    stop.set()
    await running

    assert everything == {*failing.seen, *role.seen}
    assert max(Counter(role.seen).values()) == 1
    assert await committed(settings) == {250}
    assert role.assigned == [list(range(PARTITIONS))]


async def test_workers_share_both_topics_without_loss(settings: Settings) -> None:
    """One joins and one leaves while records arrive; each has the same partitions of both topics."""
    first, second = Recorder(settings), Recorder(settings)
    leave, stop = asyncio.Event(), asyncio.Event()
    leaving = asyncio.create_task(first.run(leave))
    await until(first.consumer_ready, "the first worker")
    staying, sent = asyncio.create_task(second.run(stop)), 0
    async with asyncio.timeout(60):
        while not second.seen:
            await produce(settings, 200)
            sent += 200
    shares = [{(tp.topic, tp.partition) for tp in role.consumer.assignment()} for role in (first, second)]
    producing = asyncio.create_task(produce(settings, 2_000))
    leave.set()
    await asyncio.gather(producing, leaving)
    everything = every_place(settings, sent + 2_000)
    await until(lambda: everything <= {*first.seen, *second.seen}, "all records of both topics")
    stop.set()
    await staying

    by_topic = [[{n for topic, n in share if topic == name} for name in names(settings)] for share in shares]
    assert [True, True] == [of_one == of_other != set() for of_one, of_other in by_topic]
    assert everything == {*first.seen, *second.seen}
    assert await committed(settings) == {(sent + 2_000) // PARTITIONS}
