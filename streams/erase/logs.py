"""The logs of one prefix as an erasure reads and writes them: from any place to any place, without a group."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec import Struct

from models.errors import InvalidRecord
from models.events import DeadLetter
from models.events.topics import COMMANDS, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import decode_command, decode_input, decode_output
from streams.kafka.client import Extent, Extents, admin, consumer, read_extents, require_topic
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.records import appended_at
from streams.settings import Settings

_POLL_RECORDS = 2_000
_FETCH_WAIT_MS = 10
"""A broker answers a connection's requests one by one: whatever is asked next waits for a fetch that finds nothing."""


class Logs:
    """Reads and writes topics by partition and offset; its clients are started, the reader has no group.

    `intake` says what the folds take for a turn or a command.
    """

    def __init__(
        self,
        settings: Settings,
        intake: IntakePolicy,
        *,
        reader: AIOKafkaConsumer,
        admin_client: AIOKafkaAdminClient,
        producer: Producer,
    ) -> None:
        self.settings = settings
        self.admin = admin_client
        self.producer = producer
        self._intake = intake
        self._reader = reader
        self._places: dict[Topic, list[TopicPartition]] = {}

    def name(self, topic: Topic) -> str:
        """Its name on the broker."""
        return topic.full_name(self.settings.topic_prefix)

    async def extents(self, topic: Topic, *, start: Mapping[TopicPartition, int] | None = None) -> Extents:
        """From its first record, or from `start`, to where each partition ends now.

        Raises:
            ConfigurationError: There is no such topic.
        """
        places = await self._partitions(topic)
        starts = await self._reader.beginning_offsets(places)
        ends = await self._reader.end_offsets(places)
        return {place: Extent(max(starts[place], (start or {}).get(place, 0)), ends[place]) for place in places}

    async def _partitions(self, topic: Topic) -> list[TopicPartition]:
        if topic not in self._places:
            name = self.name(topic)
            numbers = await require_topic(self.settings.kafka, name)
            self._places[topic] = [TopicPartition(name, number) for number in numbers]
        return self._places[topic]

    async def ends(self, *topics: Topic) -> dict[TopicPartition, int]:
        """Where each partition of the topics ends now."""
        return {place: extent.end for topic in topics for place, extent in (await self.extents(topic)).items()}

    async def read(self, extents: Extents) -> AsyncGenerator[ConsumerRecord, None]:
        """Every record of the extents that the log has, each partition in order. Close it before the next one."""
        try:
            async for record in read_extents(self._reader, extents, most_records=_POLL_RECORDS):
                yield record
        finally:
            self._reader.unsubscribe()

    async def holds_records(self, extents: Extents) -> bool:
        """Whether anything can be read there: what is compacted away, or a marker, is nothing to wait for."""
        starts = await self._reader.beginning_offsets([*extents])
        present = {place: Extent(max(starts[place], extent.start), extent.end) for place, extent in extents.items()}
        async with aclosing(self.read(present)) as records:
            async for _ in records:
                return True
        return False

    def event_of(self, topic: Topic, record: ConsumerRecord) -> Struct | None:
        """What a record of a public topic says; refused input as its dead letter, None without a value."""
        if record.value is None:
            return None
        try:
            if topic not in (TURNS, COMMANDS):
                return decode_output(topic, record.value)
            decode = decode_input if topic is TURNS else decode_command
            return decode(record.value, record.key, appended_at(record), self._intake)
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
        """Write to partitions; returns the next offset after what was written, once it is acknowledged.

        Raises:
            DeliveryFailed: Not acknowledged; it may be repeated.
        """
        pending = []
        for place, each in records.items():
            pending += await self.producer.write(place.topic, place.partition, each)
        await acknowledged(pending)
        return await self._reader.end_offsets([*records]) if records else {}

    async def place_of(self, topic: Topic, key: bytes) -> TopicPartition:
        """The partition of a key."""
        name = self.name(topic)
        return TopicPartition(name, await self.producer.partition_of(name, key))


@asynccontextmanager
async def opened(settings: Settings, intake: IntakePolicy) -> AsyncIterator[Logs]:
    """Logs with clients of their own, closed at the end.

    Raises:
        StoreUnavailable: Kafka does not answer.
        DeliveryFailed: Likewise.
    """
    options = {"fetch_max_wait_ms": _FETCH_WAIT_MS}
    async with consumer(settings.kafka, **options) as reader, admin(settings.kafka) as admin_client:
        producer = Producer(settings)
        await producer.start()
        try:
            yield Logs(settings, intake, reader=reader, admin_client=admin_client, producer=producer)
        finally:
            await producer.stop()
