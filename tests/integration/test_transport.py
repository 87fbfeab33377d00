"""The micro-batch transport on a real broker: what is committed is what was processed, whatever happens.

The role reads two topics: each topic's partitions are admitted and committed on their own.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.events.topics import CONVERSATION_TOPICS, TURNS
from streams.kafka.client import consumer
from streams.settings import Settings
from tests.support.fault_driver import PlainRole, records_on, until, working

PARTITIONS = 4
SOURCES = (TURNS, CONVERSATION_TOPICS)
Seen = set[tuple[TP, int]]


class Recorder(PlainRole):
    """Writes down what it is given of two topics."""

    name = "recorder"
    sources = SOURCES

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, http_port=0)
        self.polls: list[list[tuple[TP, int]]] = []
        self.assigned: list[list[int]] = []
        self.fail_at: tuple[str, int] | None = None

    @property
    def seen(self) -> list[tuple[TP, int]]:
        """Every place, as often as it was processed."""
        return [place for poll in self.polls for place in poll]

    async def on_assigned(self, partitions: list[int]) -> None:
        """Note the assignment."""
        self.assigned.append(partitions)

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Note the offsets, or fail before any of the poll is noted."""
        places = [(tp, record.offset) for tp, records in batches.items() for record in records]
        if any((tp.topic, offset) == self.fail_at for tp, offset in places):
            raise ValueError("told to fail")
        self.polls.append(places)


@asynccontextmanager
async def running(role: Recorder) -> AsyncIterator[Recorder]:
    """The role in this loop, stopped in order at the end."""
    async with working(role.run) as (task,):
        yield role
    task.result()


KAFKA = {"max_poll_records": 100}
"""Polls of at most a hundred records, of both topics together."""


def names(settings: Settings) -> list[str]:
    """The two topics on the broker."""
    return [topic.full_name(settings.topic_prefix) for topic in SOURCES]


async def produce(settings: Settings, count: int, *topics: str) -> None:
    """`count` records to each topic, evenly over the partitions."""
    async with AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, linger_ms=5) as producer:
        for n in range(count):
            for name in topics or names(settings):
                await producer.send(name, b"%d" % n, key=b"k", partition=n % PARTITIONS)


async def committed(settings: Settings, *topics: str) -> set[int]:
    """Committed offsets of all partitions of the topics."""
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.recorder") as client:
        places = [TopicPartition(name, n) for name in topics or names(settings) for n in range(PARTITIONS)]
        return {await client.committed(place) or 0 for place in places}


def every_place(settings: Settings, count: int, first: int = 0) -> Seen:
    """Where records of each topic lie, from the first of these numbers on."""
    return {(TP(name, n % PARTITIONS), n // PARTITIONS) for name in names(settings) for n in range(first, count)}


async def all_of(places: Collection[tuple[TP, int]], *roles: Recorder) -> None:
    """Wait until the roles have processed them."""
    await until(lambda: set(places) <= {place for role in roles for place in role.seen}, "all records of both topics")


@pytest.mark.behaviour("card-01")
async def test_every_record_once_and_commit_is_what_was_processed(settings: Settings) -> None:
    """A backlog arrives in few batches, each partition in its order; a restart finds nothing left to do."""
    await produce(settings, 1_000)
    async with running(Recorder(settings)) as role:
        await all_of(every_place(settings, 1_000), role)
    async with running(Recorder(settings)) as again:
        await until(again.consumer_ready, "the second start")
        await produce(settings, 4)
        await all_of([(tp, offset + 250) for tp, offset in every_place(settings, 4)], again)

    for tp in {tp for tp, _ in role.seen}:
        assert [offset for of, offset in role.seen if of == tp] == list(range(250))
    assert len(role.seen) == 2_000
    assert len(role.polls) < 200
    assert Counter(again.seen) == Counter((tp, 250) for tp, _ in every_place(settings, 4))
    assert await committed(settings) == {251}


async def test_a_failure_in_one_topic_commits_neither(settings: Settings) -> None:
    """What the poll held of the other topic comes again too; nothing is lost, and in the end all is committed."""
    await produce(settings, 1_000)
    failing = Recorder(settings)
    failing.fail_at = (names(settings)[1], 100)
    with pytest.raises(ValueError, match="told to fail"):
        await failing.run(asyncio.Event())
    async with running(Recorder(settings)) as role:
        await all_of(every_place(settings, 1_000), failing, role)

    assert every_place(settings, 1_000) == {*failing.seen, *role.seen}
    assert max(Counter(role.seen).values()) == 1
    assert await committed(settings) == {250}
    assert role.assigned == [list(range(PARTITIONS))]


@pytest.mark.behaviour("card-01")
async def test_workers_share_both_topics_without_loss(settings: Settings) -> None:
    """One joins and one leaves while records arrive; each has the same partitions of both topics."""
    first, sent = Recorder(settings), 0
    leave = asyncio.Event()
    leaving = asyncio.create_task(first.run(leave))
    await until(first.consumer_ready, "the first worker")
    async with running(Recorder(settings)) as second:
        async with asyncio.timeout(60):
            while not second.seen:
                await produce(settings, 200)
                sent += 200
        shares = [{(tp.topic, tp.partition) for tp in role.consumer.assignment()} for role in (first, second)]
        producing = asyncio.create_task(produce(settings, 2_000))
        leave.set()
        await asyncio.gather(producing, leaving)
        everything = every_place(settings, sent + 2_000)
        await all_of(everything, first, second)

    by_topic = [[{n for topic, n in share if topic == name} for name in names(settings)] for share in shares]
    assert [True, True] == [of_one == of_other != set() for of_one, of_other in by_topic]
    assert everything == {*first.seen, *second.seen}
    assert await committed(settings) == {(sent + 2_000) // PARTITIONS}


async def test_aborted_records_are_never_seen(settings: Settings) -> None:
    """By roles and commands; nor those of a transaction that is undecided. At the log's end nothing is left to do."""
    topic = names(settings)[0]
    place = TP(topic, 0)
    producers = [
        AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, transactional_id=f"{settings.topic_prefix}-{n}")
        for n in range(2)
    ]
    deciding, open_ended = producers
    async with AsyncExitStack() as stack:
        for producer in producers:
            await stack.enter_async_context(producer)
        for is_good in (True, False, True, False):
            await deciding.begin_transaction()
            await deciding.send_and_wait(topic, b"v", key=b"k", partition=0)
            await (deciding.commit_transaction() if is_good else deciding.abort_transaction())
        async with running(Recorder(settings)) as role:
            await until(lambda: len(role.seen) == 2, "the committed records")
            await until(lambda: role.consumer.reached(place, 8), "the end behind aborted records and markers")
            assert role.consumer.lag(place) == 0
            await open_ended.begin_transaction()
            await open_ended.send_and_wait(topic, b"v", key=b"k", partition=0)
            async with deciding.transaction():
                await deciding.send_and_wait(topic, b"v", key=b"k", partition=0)
            await produce(settings, 1, names(settings)[1])
            await all_of([(TP(names(settings)[1], 0), 0)], role)
            assert (role.consumer.highwater(place), role.consumer.lag(place)) == (8, 0)
            await open_ended.abort_transaction()
            await until(lambda: len(role.seen) == 4, "what was behind the open transaction")

    assert [offset for tp, offset in role.seen if tp == place] == [0, 4, 9]
    assert [record.offset for record in await records_on(settings, TURNS)] == [0, 4, 9]
