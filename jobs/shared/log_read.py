"""Reads logs, changelogs and output topics for a comparison."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiokafka import TopicPartition

from models.errors import InvalidRecord
from models.events import DeadLetter, Output
from models.events.topics import COMMANDS, Cleanup, Topic
from models.wire.codec import decode_output
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.oracle.comparison import TopicOutputs
from streams.oracle.replay import OUTPUT_TOPICS, Entities, Folded
from streams.settings import Settings
from streams.state.table import StateTable

State = dict[int, Entities]
"""Partition → entity → part → bytes."""
Extent = dict[int, tuple[int, int]]
"""Partition → first and next offset of its log."""


async def log_extent(settings: Settings, topic: Topic) -> Extent:
    """First and next offset of each partition of a topic.

    Raises:
        ConfigurationError: There is no such topic.
        StoreUnavailable: Kafka does not answer.
    """
    name = topic.full_name(settings.topic_prefix)
    places = [TopicPartition(name, number) for number in await require_topic(settings.kafka, name)]
    async with consumer(settings.kafka) as client:
        starts, ends = await client.beginning_offsets(places), await client.end_offsets(places)
    return {place.partition: (starts[place], ends[place]) for place in places}


async def changelog_reader(settings: Settings, folded: Folded) -> Callable[[], Awaitable[State]]:
    """A reader of a role's changelog that may be asked again and again; it reads on from where it was.

    Raises:
        ConfigurationError: There is no such topic.
    """
    topic = folded.changelog.full_name(settings.topic_prefix)
    numbers = await require_topic(settings.kafka, topic)
    table = StateTable(settings, topic, producer=None)

    async def read() -> State:
        await table.recover(numbers)
        return {number: table.partition(number).entities for number in numbers if table.partition(number).entities}

    return read


async def read_outputs(settings: Settings) -> dict[str, TopicOutputs]:
    """Every output topic, by its name without the prefix."""
    return {topic.name: await _read_topic(settings, topic) for topic in OUTPUT_TOPICS}


async def _read_topic(settings: Settings, topic: Topic) -> TopicOutputs:
    found = TopicOutputs()
    following: dict[int, int] = {}
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        found.has_holes |= record.offset != following.get(record.partition, 0)
        following[record.partition] = record.offset + 1
        event_id = _id_of(topic, record.value)
        if event_id is not None:
            found.values.setdefault(event_id, []).append(record.value)
            found.written_ms.setdefault(event_id, record.timestamp)
    return found


def _id_of(topic: Topic, value: bytes | None) -> str | None:
    """Id of an output; None for what others write to `commands.v1`, good or bad, and for what an erasure deleted.

    Raises:
        InvalidRecord: Nobody else writes to the topic, and this is no event of it.
    """
    if value is None and topic.cleanup is Cleanup.COMPACT:
        return None
    try:
        event = decode_output(topic, value or b"")
    except InvalidRecord:
        if topic is COMMANDS:
            return None
        raise
    return event.id if isinstance(event, Output | DeadLetter) else None
