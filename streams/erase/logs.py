"""Access of an erasure to the logs of one prefix: reads between any offsets and writes, without a consumer group.

Also the wait until roles have read written records, by their groups' committed offsets and the archive's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from msgspec import Struct

from models.errors import InvalidRecord, StoreUnavailable
from models.events import DeadLetter
from models.events.topics import COMMANDS, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import decode_command, decode_input, decode_output
from streams.index.generations import group_of
from streams.kafka.client import Extent, Extents, admin, consumer, read_extents, require_topic
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.records import appended_at
from streams.settings import Settings

_POLL_RECORDS = 2_000
_FETCH_WAIT_MS = 10
"""A broker serves a connection's requests one by one, so the next request waits for an empty fetch to end."""


@dataclass(frozen=True)
class Logs:
    """Reads and writes topics by partition and offset; its clients are started, the reader has no group.

    `intake` has the folds' limits of turns and commands.
    """

    settings: Settings
    intake: IntakePolicy
    reader: AIOKafkaConsumer
    admin: AIOKafkaAdminClient
    producer: Producer
    _places: dict[Topic, list[TopicPartition]] = field(default_factory=dict, init=False)

    def name(self, topic: Topic) -> str:
        """Name of the topic on the broker."""
        return topic.full_name(self.settings.topic_prefix)

    async def extents(self, topic: Topic, *, start: Mapping[TopicPartition, int] | None = None) -> Extents:
        """Offsets of each partition, from its first record or `start` to its current end.

        Raises:
            ConfigurationError: There is no such topic.
        """
        places = await self._partitions(topic)
        starts = await self.reader.beginning_offsets(places)
        ends = await self.reader.end_offsets(places)
        return {place: Extent(max(starts[place], (start or {}).get(place, 0)), ends[place]) for place in places}

    async def _partitions(self, topic: Topic) -> list[TopicPartition]:
        if topic not in self._places:
            name = self.name(topic)
            numbers = await require_topic(self.settings.kafka, name)
            self._places[topic] = [TopicPartition(name, number) for number in numbers]
        return self._places[topic]

    async def ends(self, *topics: Topic) -> dict[TopicPartition, int]:
        """Current end of each partition of the topics."""
        return {place: extent.end for topic in topics for place, extent in (await self.extents(topic)).items()}

    async def read(self, extents: Extents) -> AsyncGenerator[ConsumerRecord, None]:
        """Every record of the extents that the log has, each partition in order. Close it before the next one."""
        try:
            async for record in read_extents(self.reader, extents, most_records=_POLL_RECORDS):
                yield record
        finally:
            self.reader.unsubscribe()

    async def holds_records(self, extents: Extents) -> bool:
        """Whether the extents have readable records: compacted records and markers need no waiting."""
        starts = await self.reader.beginning_offsets([*extents])
        present = {place: Extent(max(starts[place], extent.start), extent.end) for place, extent in extents.items()}
        async with aclosing(self.read(present)) as records:
            async for _ in records:
                return True
        return False

    def event_of(self, topic: Topic, record: ConsumerRecord) -> Struct | None:
        """The event of a record of a public topic; a refused input as its dead letter, None without a value."""
        if record.value is None:
            return None
        try:
            if topic not in (TURNS, COMMANDS):
                return decode_output(topic, record.value)
            decode = decode_input if topic is TURNS else decode_command
            return decode(record.value, record.key, appended_at(record), self.intake)
        except InvalidRecord as error:
            return DeadLetter(
                id="",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                stage="erasure",
                reason=error.reason,
                detail="",
                key=record.key,
                value=record.value,
                headers=[],
                appended_at=appended_at(record),
            )

    async def write(self, records: Mapping[TopicPartition, Sequence[Record]]) -> dict[TopicPartition, int]:
        """Write to partitions; returns the next offsets after the acknowledged records.

        Raises:
            DeliveryFailed: Not acknowledged; it may be repeated.
        """
        pending = []
        for place, each in records.items():
            pending += await self.producer.write(place.topic, place.partition, each)
        await acknowledged(pending)
        return await self.reader.end_offsets([*records]) if records else {}

    async def place_of(self, topic: Topic, key: bytes) -> TopicPartition:
        """The partition of a key."""
        name = self.name(topic)
        return TopicPartition(name, await self.producer.partition_of(name, key))


@asynccontextmanager
async def opened(settings: Settings, intake: IntakePolicy) -> AsyncIterator[Logs]:
    """Logs with their own clients, closed at the end.

    Raises:
        StoreUnavailable: Kafka does not answer.
        DeliveryFailed: Likewise.
    """
    options = {"fetch_max_wait_ms": _FETCH_WAIT_MS}
    async with consumer(settings.kafka, **options) as reader, admin(settings.kafka) as admin_client:
        producer = Producer(settings)
        await producer.start()
        try:
            yield Logs(settings, intake, reader=reader, admin=admin_client, producer=producer)
        finally:
            await producer.stop()


log = structlog.get_logger(__name__)

Positions = Mapping[TopicPartition, int]
WITHIN = timedelta(minutes=10)
"""How long one step waits for a role before the erasure starts again."""
_POLL_S = 0.1
_ASK_S = 1.0
_ANSWER_WITHIN_S = 20.0
_SAY_EVERY_S = 30.0
_NOBODY = "Dead"
"""Kafka's state of a group that never existed, or whose offsets have expired."""


class ReadersBehind(StoreUnavailable):
    """A role has not read the records of an erasure, which stays pending and is retried."""


class Readers:
    """Progress of all readers; `landed` returns that of the archive's catalog, `within` limits a wait."""

    def __init__(self, logs: Logs, landed: Callable[[], Awaitable[Positions]], *, within: timedelta = WITHIN) -> None:
        self._logs = logs
        self._landed = landed
        self._within_s = within.total_seconds()

    async def _groups_of(self, role: str) -> list[str]:
        """Groups of a role; for the index role all active ones, one a generation, since settings may be outdated.

        If none is active, the group of the settings.
        """
        own = group_of(self._logs.settings, role)
        if role != "index":
            return [own]
        first = f"{self._logs.settings.topic_prefix}.{role}"
        named = {name for name in await self._listed() if name == first or name.startswith(f"{first}-")}
        return [name for name in sorted(named) if await self._members(name)] or [own]

    async def _here(self, role: str) -> list[str]:
        groups = await self._groups_of(role)
        return [group for group in groups if await self._committed(group) or await self._members(group)]

    async def _listed(self) -> set[str]:
        """Groups of this prefix."""
        listed = await _answered("any group", self._logs.admin.list_consumer_groups)
        return {name for name, *_ in listed if name.startswith(f"{self._logs.settings.topic_prefix}.")}

    async def works_here(self, role: str) -> bool:
        """Whether the role has a worker or has ever committed; else it has no data to erase."""
        return bool(await self._here(role))

    async def all_beyond(self, ends: Positions, *, roles: Iterable[str]) -> None:
        """As `beyond` for each of the roles, sinks of alerts, and any other active reader of this prefix."""
        groups = {group for role in roles for group in await self._groups_of(role)}
        others, sinks = await self._listed(), f"{self._logs.settings.topic_prefix}.notify."
        # What the archive commits is for those who watch the lag: its catalog is what counts.
        for group in sorted((groups | others) - {group_of(self._logs.settings, "archive")}):
            theirs = {topic for topic, _ in await self._committed(group)}
            mine = {place: end for place, end in ends.items() if place.topic in theirs}
            ours = group in groups or group.startswith(sinks)
            if mine and (ours or await self._members(group)):
                await self._wait(group, partial(self._committed, group), mine)

    async def beyond(self, role: str, ends: Positions) -> None:
        """Wait until a role's group has committed up to these offsets; a role that never ran is skipped.

        Raises:
            ReadersBehind: It has not committed in time.
            StoreUnavailable: Kafka does not answer.
        """
        for group in await self._here(role):
            await self._wait(group, partial(self._committed, group), ends)

    async def archived(self, ends: Positions) -> None:
        """Wait until the archive has all records up to these offsets.

        Raises:
            ReadersBehind: It has not in time.
        """
        await self._wait("archive", self._landed, ends)

    async def _wait(self, who: str, positions: Callable[[], Awaitable[Positions]], ends: Positions) -> None:
        began_s = said_s = monotonic()
        asked_s = 0.0
        while behind := _behind(await positions(), ends):
            now_s = monotonic()
            if now_s - asked_s >= _ASK_S:
                if not await self._logs.holds_records(behind):
                    return
                asked_s = now_s
            if now_s - began_s > self._within_s:
                records = sum(extent.end - extent.start for extent in behind.values())
                raise ReadersBehind(
                    f"{who} has not read {records} records on {len(behind)} partitions after {self._within_s:g} s. "
                    "Start its worker if it is not running. The erasure stays pending until then"
                )
            if now_s - said_s > _SAY_EVERY_S:
                said_s = now_s
                log.info("erasure_waits", for_group=who, partitions=len(behind), seconds=round(now_s - began_s))
            await asyncio.sleep(_POLL_S)

    async def _committed(self, group: str) -> Positions:
        found = await _answered(group, lambda: self._logs.admin.list_consumer_group_offsets(group))
        return {place: known.offset for place, known in found.items() if known.offset >= 0}

    async def _members(self, group: str) -> int:
        # One group in a request: aiokafka 0.14 reads the answer to its version 3 as one of version 2, which is shorter.
        (answer,) = await _answered(group, lambda: self._logs.admin.describe_consumer_groups([group]))
        ((_code, _name, state, _type, _protocol, members, *_),) = answer.groups
        return 0 if state == _NOBODY else len(members)


async def _answered(group: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    """The broker's response; a cluster without any group needs some time to choose a coordinator.

    Raises:
        StoreUnavailable: No response.
    """
    deadline_s = monotonic() + _ANSWER_WITHIN_S
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not error.retriable or monotonic() > deadline_s:
                raise StoreUnavailable(f"Kafka does not return the offsets of {group}: {error!r}. Check it") from error
            await asyncio.sleep(_POLL_S)


def _behind(positions: Positions, ends: Positions) -> dict[TopicPartition, Extent]:
    """Extents that are not read yet."""
    return {place: Extent(positions.get(place, 0), end) for place, end in ends.items() if positions.get(place, 0) < end}
