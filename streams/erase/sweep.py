"""Reading compacted topics for what they hold of a subject by key, and the null records that remove it."""

from collections.abc import Callable, Iterable

from aiokafka import ConsumerRecord, TopicPartition
from msgspec import Struct

from models.events.topics import Cleanup, Topic
from models.user.facts import PREFIX as FACT_PART
from streams.erase.logs import Logs, Positions
from streams.erase.residual import ResidualRecord, ResidualRecords
from streams.kafka.client import Extent
from streams.kafka.producer import Record
from streams.kafka.records import appended_at
from streams.state.changelog import name_of


async def look(
    logs: Logs,
    topic: Topic,
    concerns: Callable[[Struct], bool],
    *,
    keys: Iterable[bytes | None] = (),
    until: Positions | None = None,
) -> ResidualRecords:
    """Read a public topic from its start and note what is the subject's.

    `keys` are those that earlier looks found. From `until` on nothing counts: what was said after the erasure does not
    belong to it.
    """
    residual, compacted = ResidualRecords(keys=set(keys)), topic.cleanup is Cleanup.COMPACT
    extents = await logs.extents(topic)
    residual.read_to = {place: extent.end for place, extent in extents.items()}
    async for record in logs.read(extents):
        residual.looked_at += 1
        event = logs.event_of(topic, record)
        place = TopicPartition(record.topic, record.partition)
        counts = event is not None and _is_before(record, until) and concerns(event)
        found = ResidualRecord(record.offset, appended_at(record), owned=True) if counts else None
        if compacted and event is None:
            residual.take_null(place, record.key)
        elif compacted:
            residual.take(place, record.key, found)
        elif found is not None:
            residual.past[place].add(found)  # of a topic that keeps all of them for a time
    return residual


async def sweep(logs: Logs, topic: Topic, concerns: Callable[[Struct], bool]) -> int:
    """Write a null record for every key of a compacted topic whose last value is the subject's; returns how many.

    A key that is written again meanwhile is left: what is said after the erasure does not belong to it.

    Raises:
        DeliveryFailed: Not acknowledged; it may be repeated.
    """
    residual = await look(logs, topic, concerns)
    live = residual.live
    ends = await logs.ends(topic)
    since = {place: Extent(residual.read_to[place], ends[place]) for place in live}
    later = {(record.topic, record.partition, record.key) async for record in logs.read(since)}
    nulls = {place: [Record(key, None) for key in keys if (*place, key) not in later] for place, keys in live.items()}
    await logs.write({place: records for place, records in nulls.items() if records})
    return sum(map(len, nulls.values()))


async def look_at_state(
    logs: Logs,
    topic: Topic,
    *,
    owned: Callable[[str], bool],
    touched: Callable[[str], bool],
    until: Positions | None = None,
) -> ResidualRecords:
    """Read a changelog from its start.

    Args:
        logs: The logs.
        topic: The changelog.
        owned: Whether an entity is the subject's.
        touched: Whether it holds something of the subject: what it was before counts too.
        until: Where the changelog ended when its role had forgotten; nothing counts from there on.
    """
    residual = ResidualRecords()
    async for record in logs.read(await logs.extents(topic)):
        residual.looked_at += 1
        place = TopicPartition(record.topic, record.partition)
        entity, part = name_of(record.key)
        mine, is_before = owned(entity), _is_before(record, until)
        counts = record.value is not None and is_before and (mine or touched(entity))
        residual.take(
            place, record.key, ResidualRecord(record.offset, appended_at(record), owned=mine) if counts else None
        )
        if record.value is None and is_before:
            # Of somebody who holds something of the subject: a fact's key is what was said.
            residual.lasting_nulls += mine or (touched(entity) and part.startswith(FACT_PART))
    return residual


def stands_on(residual: ResidualRecords) -> dict[str, set[int]]:
    """Entities of a changelog that are there, and on which partitions.

    A producer of the source may choose these otherwise than Turntide does.
    """
    found: dict[str, set[int]] = {}
    for place, keys in residual.live.items():
        for key in keys:
            if key is not None:
                found.setdefault(name_of(key)[0], set()).add(place.partition)
    return found


def _is_before(record: ConsumerRecord, until: Positions | None) -> bool:
    return until is None or record.offset < until.get(TopicPartition(record.topic, record.partition), 0)
