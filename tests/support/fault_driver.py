"""What the tests of the fault matrix share: traffic by seed, roles in this process, and the oracle at the end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import product
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.structs import RecordMetadata

from jobs.lab.chaos.traffic import traffic
from jobs.replay.comparison import Settled, settle
from jobs.shared.role_process import RoleProcess
from models.events import AnyTurn, InputEvent, Role, Turn
from models.events.topics import TURNS, Topic
from models.wire.codec import decode_output, encode
from streams.kafka.client import admin, consumer, read_to_end
from streams.kafka.producer import Producer, Record, acknowledged
from streams.ports import Embedder, TurnScorer, Vectors
from streams.roles.batch_role import BatchRole
from streams.roles.sessions import SessionsRole
from streams.settings import Settings, VectorSettings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import ROLES, embedder_of, policy_of, scorer_of

WITHIN_S = 90.0
POLL_S = 0.1


@cache
def _loaded(name: str) -> Embedder:
    """The embedder of this name, loaded once."""
    return embedder_of(load_settings(vectors=VectorSettings.model_validate({"embedder": name})))


def disorder(seed: int, turns: int, *, hours: float = 1.0) -> list[Record]:
    """Chaos's traffic up to now: interleaved sessions, some of it twice, out of order, late or poison."""
    sent = traffic(seed, turns=turns, ends_at=datetime.now(UTC), span=timedelta(hours=hours))
    return [each.record for each in sent]


def said(number: int, *, session_id: str = "s", at: datetime | None = None, **more: Any) -> Turn:
    """A user's turn; by default of five minutes ago, one second per number."""
    fields: dict[str, Any] = {
        "session_id": session_id,
        "user_id": "u",
        "app_id": "a",
        "turn": number,
        "role": Role.USER,
        "content": "Where is my parcel?",
        "timestamp": at or datetime.now(UTC) - timedelta(minutes=5) + timedelta(seconds=number),
    }
    return Turn(**(fields | more))


def recorded(event: InputEvent) -> Record:
    """The event as its producer sends it."""
    return Record(event.session_id.encode(), encode(event))


async def send(
    settings: Settings,
    records: Iterable[Record],
    *,
    partition: int | None = None,
    per_s: float | None = None,
    **options: Any,
) -> list[RecordMetadata]:
    """Write records to `turns.v1` in order; gives where each one stands.

    Args:
        settings: Which cluster and prefix.
        records: What to send.
        partition: Where; none: by key.
        per_s: At most so many a second.
        options: Of the producer.
    """
    async with AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, linger_ms=5, **options) as producer:
        pending = []
        for n, record in enumerate(records):
            topic = TURNS.full_name(settings.topic_prefix)
            pending.append(await producer.send(topic, record.value, key=record.key, partition=partition))
            if per_s is not None and n % 20 == 0:
                await asyncio.sleep(20 / per_s)  # the pace
        return list(await asyncio.gather(*pending))


async def write(settings: Settings, topic: Topic, records: Sequence[Record], *, partition: int | None = 0) -> None:
    """Write records as a role does; None: to the partition of the first one's key."""
    producer, name = Producer(settings), topic.full_name(settings.topic_prefix)
    await producer.start()
    try:
        place = await producer.partition_of(name, records[0].key or b"") if partition is None else partition
        await acknowledged(await producer.write(name, place, records))
    finally:
        await producer.stop()


async def records_on(settings: Settings, topic: Topic) -> list[ConsumerRecord]:
    """All records of a topic."""
    return [record async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix))]


async def events(settings: Settings, topic: Topic) -> list[Any]:
    """Everything on an output topic."""
    return [decode_output(topic, record.value) for record in await records_on(settings, topic)]


async def commit(settings: Settings, role: str, topic: Topic, offset: int) -> None:
    """Let a role's group have read so far of the topic's first partition."""
    place = TopicPartition(topic.full_name(settings.topic_prefix), 0)
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.{role}") as client:
        client.assign([place])
        await client.commit({place: offset})


async def delete_topic(settings: Settings, topic: Topic) -> None:
    """As an operator's mistake would."""
    name = topic.full_name(settings.topic_prefix)
    async with admin(settings.kafka) as client:
        await client.delete_topics([name])
        while name in await client.list_topics():  # noqa: ASYNC110 - a broker has no event to wait for
            await asyncio.sleep(0.05)


async def until(holds: Callable[[], Any], what: str, *, within_s: float = WITHIN_S) -> Any:
    """Poll until it gives something true, and give that; what takes long is asked less often.

    Raises:
        AssertionError: It does not in time.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while True:
                asked_s = monotonic()
                found = holds()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(max(POLL_S, 2 * (monotonic() - asked_s)))  # poll
    raise AssertionError(f"not within {within_s:g} s: {what}")


async def valued(settings: Settings, topic: Topic, word: str) -> int:
    """Records of a topic in which a word comes, as readers with the keys have them."""
    found = read_to_end(settings.kafka, topic.full_name(settings.topic_prefix))
    return sum([word in (record.value or b"").decode().lower() async for record in found])


async def until_remembered(settings: Settings, topics: Iterable[Topic], words: Iterable[str]) -> None:
    """Wait until these words have come to all of these topics; what has come stays, and is not looked for again."""
    for topic, word in product(topics, words):
        await until(partial(valued, settings, topic, word), f"{word} in {topic.name}")


class PlainRole(BatchRole):
    """A role that has nothing to open and keeps no state."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def on_assigned(self, partitions: list[int]) -> None:
        """Nothing to load."""


class BrittleScorer(TurnScorer):
    """A scorer plug-in with a bug: what it says of turn 2 is no number."""

    name = "brittle"
    reads = ""

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[float]:  # noqa: ARG002
        """Risk 0.1, but for one turn."""
        return [0.1 if getattr(turn, "turn", 0) != 2 else "high" for turn in turns]  # type: ignore[misc]


@asynccontextmanager
async def sessions_role(
    settings: Settings, *, scorer: TurnScorer | None = None, embedder: Embedder | None = None
) -> AsyncIterator[asyncio.Future[None]]:
    """The sessions role in this process, stopped at the end; not ready yet."""
    mine = settings.model_copy(update={"http": HttpSettings(sessions_port=0, index_port=0)})
    reads = embedder or _loaded(mine.vectors.embedder)
    role = SessionsRole(mine, policy_of(mine), reads, scorer or scorer_of(mine, reads))
    async with working(role.run) as (task,):
        yield task


@asynccontextmanager
async def working(*runs: Callable[[asyncio.Event], Awaitable[None]]) -> AsyncIterator[list[asyncio.Future[None]]]:
    """Roles in this process, stopped at the end; what they raise is left in their tasks."""
    stop = asyncio.Event()
    tasks: list[asyncio.Future[None]] = [asyncio.ensure_future(run(stop)) for run in runs]
    try:
        yield tasks
    finally:
        stop.set()
        await asyncio.wait(tasks)


@asynccontextmanager
async def running(settings: Settings, *roles: str) -> AsyncIterator[None]:
    """These roles in this process, stopped at the end; one that fails fails the test."""
    async with working(*(partial(ROLES[role], settings) for role in roles)) as tasks:
        yield
    for task in tasks:
        task.result()


@asynccontextmanager
async def started(*roles: RoleProcess) -> AsyncIterator[None]:
    """Roles as processes: ready, and stopped at the end."""
    with ExitStack() as stack:
        for role in roles:
            stack.callback(role.stop)
            role.start()
        await asyncio.gather(*(role.ready() for role in roles))
        yield


async def settled_quietly(settings: Settings, index_url: str | None = None) -> Settled:
    """What is there once nothing moves any more, beside what the oracle has."""
    nobody_there = settings.model_copy(update={"http": HttpSettings(index_port=0)})
    return await settle(nobody_there, within_s=WITHIN_S, index_url=index_url)


async def assert_equal_to_replay(settings: Settings, index_url: str | None = None) -> Settled:
    """State byte for byte, outputs by id and payload, and what there is of archive and index: as the oracle has it."""
    settled = await settled_quietly(settings, index_url)

    assert (settled.comparison.counts, settled.comparison.examples) == ({}, []), settled.comparison.counts
    return settled
