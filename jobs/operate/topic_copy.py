"""Turns of one prefix sent to another one's topic in the order of their arrival, as for more partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from jobs.shared.sending import turns_sender
from models.errors import ConfigurationError, InvalidRecord
from models.events import ClockTicked
from models.events.topics import TURNS
from models.policy import IntakePolicy
from models.wire.codec import decode_input
from streams.kafka.client import consumer, require_topic
from streams.kafka.producer import Record
from streams.kafka.records import appended_at
from streams.settings import Settings

_POLL_MS = 500
_AT_ONCE = 500


async def copy_turns(settings: Settings, old_prefix: str) -> int:
    """Send every record of the old prefix's `turns.v1` that its log still has to the present one's; returns how many.

    Keys, headers and bytes stay, also of records that are refused. Clock ticks stay behind: they are of a partition,
    and workers write their own. What was appended first is sent first, over all partitions: the clock of a partition
    follows its records. Run twice it sends everything twice, and the second time counts as duplicates.

    Raises:
        ConfigurationError: It is the same prefix, or a topic is missing.
        StoreUnavailable: The cluster does not answer.
        DeliveryFailed: The broker did not confirm.
    """
    if old_prefix == settings.topic_prefix:
        raise ConfigurationError(f"{old_prefix} is the present prefix: set TURNTIDE_TOPIC_PREFIX to the new one")
    name = TURNS.full_name(old_prefix)
    places = [TopicPartition(name, number) for number in await require_topic(settings.kafka, name)]
    async with consumer(settings.kafka) as client, turns_sender(settings) as sender:
        client.assign(places)
        await client.seek_to_beginning(*places)
        ends = await client.end_offsets(places)
        async for record in _by_arrival(client, ends):
            if not _is_tick(record):
                await sender.add(Record(record.key, record.value, [(n, v or b"") for n, v in record.headers]))
        await sender.finish()
        return sender.acknowledged


async def _by_arrival(client: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> AsyncIterator[ConsumerRecord]:
    """Records of all partitions below their ends, merged by the broker's time."""
    waiting: dict[TopicPartition, deque[ConsumerRecord]] = {place: deque() for place in ends}
    while waiting:
        for place in [place for place, records in waiting.items() if not records]:
            await _refill(client, place, ends[place], waiting)
        if waiting:
            first = min(waiting, key=lambda place: waiting[place][0].timestamp)
            yield waiting[first].popleft()


async def _refill(
    client: AIOKafkaConsumer, place: TopicPartition, end: int, waiting: dict[TopicPartition, deque[ConsumerRecord]]
) -> None:
    """Read on in a partition; one that is at its end waits no longer."""
    while not waiting[place]:
        if await client.position(place) >= end:
            del waiting[place]
            return
        polled = await client.getmany(place, timeout_ms=_POLL_MS, max_records=_AT_ONCE)
        waiting[place].extend(record for record in polled.get(place, ()) if record.offset < end)


def _is_tick(record: ConsumerRecord) -> bool:
    try:
        return isinstance(decode_input(record.value, record.key, appended_at(record), IntakePolicy()), ClockTicked)
    except InvalidRecord:
        return False
