"""The floor: the same fold without Kafka, and Kafka without a fold."""

from __future__ import annotations

import asyncio
import gc
from datetime import UTC, datetime
from time import perf_counter

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from jobs.lab.bench.figures import Timing
from models.events.topics import TURNS
from models.policy import Policy
from models.wire.codec import decode_input
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.oracle.replay import Replay
from streams.settings import Settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

BATCH_RECORDS = 1_000
"""As the sessions role polls by default."""


def fold(settings: Settings, turns: int) -> Timing:
    """Decode, score, embed and fold records that are in memory already, in batches, into state in memory.

    The first batch is not counted, as with the sessions role.
    """
    by_partition = asyncio.run(_records(settings, turns))
    embedder = stream_embedder_of(settings)
    replay = Replay(policy_of(settings), embedder, scorer_of(settings, embedder))
    batches = [
        (partition, records[first : first + BATCH_RECORDS])
        for partition, records in by_partition.items()
        for first in range(0, len(records), BATCH_RECORDS)
    ]
    gc.collect()
    gc.freeze()  # what was read beforehand is no garbage of the fold's
    replay.fold(*batches[0])
    began, began_s = replay.result().turns, perf_counter()
    for partition, records in batches[1:]:
        replay.fold(partition, records)
    return Timing(replay.result().turns - began, perf_counter() - began_s)


async def _records(settings: Settings, turns: int) -> dict[int, list[ConsumerRecord]]:
    found: dict[int, list[ConsumerRecord]] = {}
    left = turns
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        if left:
            found.setdefault(record.partition, []).append(record)
            left -= 1
    return found


def read(settings: Settings, turns: int) -> Timing:
    """Fetch and decode with aiokafka alone, from the assignment to the last turn."""
    return asyncio.run(_read(settings, turns))


async def _read(settings: Settings, turns: int) -> Timing:
    topic = TURNS.full_name(settings.topic_prefix)
    places = [TopicPartition(topic, partition) for partition in await require_topic(settings.kafka, topic)]
    intake = Policy().intake
    left = turns
    async with consumer(settings.kafka, auto_offset_reset="earliest", max_poll_records=BATCH_RECORDS) as client:
        began_s = perf_counter()
        client.assign(places)
        while left > 0:
            for records in (await client.getmany(timeout_ms=1_000)).values():
                for record in records:
                    appended_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
                    decode_input(record.value, record.key, appended_at, intake)
                left -= len(records)
        return Timing(turns - left, perf_counter() - began_s)
