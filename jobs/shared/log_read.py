"""Reads logs, changelogs and output topics for a comparison."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from aiokafka import TopicPartition
from msgspec import Struct

from models.errors import InvalidRecord
from models.events import DeadLetter, Output, OutputEvent
from models.events.topics import COMMANDS, Cleanup, Topic
from models.session.turn_numbers import INDEX_STAGE
from models.wire.codec import UNDECODABLE, decode_output
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.oracle.comparison import TopicOutputs
from streams.oracle.replay import OUTPUT_TOPICS, Entities, Folded
from streams.settings import Settings
from streams.state.table import StateTable

State = dict[int, Entities]
"""Partition → entity → part → bytes."""
Extent = dict[int, tuple[int, int]]
"""Partition → first and next offset of its log."""
Ends = Mapping[int, int]
"""Partition → offset; what lies below it counts."""


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


async def read_outputs(settings: Settings, before: Mapping[Topic, Ends] | None = None) -> dict[str, TopicOutputs]:
    """Every output topic, by its name without the prefix.

    Args:
        settings: Which cluster and prefix.
        before: Input topic → partition → offset: only what came of input below it. None: everything.
    """
    ends = {topic.full_name(settings.topic_prefix): each for topic, each in (before or {}).items()}
    return {topic.name: await _read_topic(settings, topic, ends) for topic in OUTPUT_TOPICS}


async def _read_topic(settings: Settings, topic: Topic, before: Mapping[str, Ends]) -> TopicOutputs:
    found = TopicOutputs()
    following: dict[int, int] = {}
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        found.has_holes |= record.offset != following.get(record.partition, 0)
        following[record.partition] = record.offset + 1
        event = _output(topic, record.value)
        if event is None:
            continue
        if _is_beyond(event, before):
            found.later_keys.add(record.key)
        else:
            found.values.setdefault(event.id, []).append(record.value)
            found.written_ms.setdefault(event.id, record.timestamp)
    return found


def _is_beyond(event: OutputEvent, before: Mapping[str, Ends]) -> bool:
    """Whether it came of input that is not compared."""
    at = event if isinstance(event, DeadLetter) else event.source
    ends = before.get(at.topic)
    return ends is not None and at.offset >= ends.get(at.partition, 0)


def _output(topic: Topic, value: bytes | None) -> OutputEvent | None:
    """An output of a fold; None for what others write to `commands.v1`, good or bad, and for what an erasure deleted.

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
    is_of_a_fold = isinstance(event, Output) or (isinstance(event, DeadLetter) and event.stage != INDEX_STAGE)
    return event if is_of_a_fold else None


async def names_since(settings: Settings, topic: Topic, since: Ends) -> dict[str, int]:
    """What was appended to a topic at or beyond these offsets: `<topic>[<partition>] <event>` → records.

    Raises:
        ConfigurationError: There is no such topic.
        StoreUnavailable: Kafka does not answer.
    """
    found: Counter[str] = Counter()
    for number, first in since.items():
        async for record in read_to_end(
            settings.kafka, topic.full_name(settings.topic_prefix), only=number, first=first
        ):
            found[f"{topic.name}[{number}] {_event_name(record.value)}"] += 1
    return dict(found)


class _Typed(Struct):
    type: str = "turn"


_type_of = msgspec.json.Decoder(_Typed).decode


def _event_name(value: bytes | None) -> str:
    try:
        return _type_of(value or b"").type
    except UNDECODABLE:
        return "undecodable"
