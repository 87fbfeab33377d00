"""Check of where sessions stand: each on one partition, whichever partitioner its producer has."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from aiokafka import TopicPartition
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import ConsumerRecord

from jobs.operate.doctor.verdict import Verdict, ok, warn
from models.events import SessionName, Turn
from models.events.topics import TURNS
from models.policy import Policy
from streams.inference.intake import decode
from streams.kafka.client import Extent, consumer, read_extents, require_topic
from streams.settings import Settings
from streams.wiring import policy_of

LOOKED_AT = 500
"""Records of each partition, the newest."""
_NAMED = 3
_ADVICE = (
    "alerts and memory of such a session know a part of it each: give all its producers one partitioner, "
    "`partitioner=murmur2_random` in librdkafka's clients (deploy/producers.md)"
)


def check_partitioner(settings: Settings) -> Verdict:
    """Check that each session of the newest turns stands on one partition."""
    records = asyncio.run(_newest(settings))
    return verdict_of(standing(records, policy_of(settings)), partitions=len(records))


def standing(records: Mapping[int, list[ConsumerRecord]], policy: Policy) -> dict[SessionName, set[int]]:
    """On which partitions the turns of each session stand."""
    found = defaultdict[SessionName, set[int]](set)
    for partition, each in records.items():
        for arrival in decode(each, policy).arrivals:
            if isinstance(arrival.event, Turn):
                found[SessionName(arrival.event.app_id, arrival.event.session_id)].add(partition)
    return dict(found)


def verdict_of(found: Mapping[SessionName, set[int]], *, partitions: int) -> Verdict:
    """What is to be said of where sessions stand."""
    torn = sorted(session for session, places in found.items() if len(places) > 1)
    if torn:
        named = ", ".join(f"{each.session_id} of {each.app_id}" for each in torn[:_NAMED])
        return warn(f"{len(torn)} of {len(found)} sessions stand on two partitions and more: {named}", _ADVICE)
    choose, numbers = DefaultPartitioner(), list(range(partitions))
    foreign = sum({choose(each.session_id.encode(), numbers, numbers)} != places for each, places in found.items())
    return ok(
        f"{len(found)} sessions of the newest turns stand on one partition each; {foreign} by another partitioner"
    )


async def _newest(settings: Settings) -> dict[int, list[ConsumerRecord]]:
    """The newest records of every partition."""
    topic = TURNS.full_name(settings.topic_prefix)
    places = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    found: dict[int, list[ConsumerRecord]] = {place.partition: [] for place in places}
    async with consumer(settings.kafka) as client:
        starts, ends = await client.beginning_offsets(places), await client.end_offsets(places)
        extents = {each: Extent(max(starts[each], ends[each] - LOOKED_AT), ends[each]) for each in places}
        async for record in read_extents(client, extents):
            found[record.partition].append(record)
    return found
