"""Removes records from Kafka's own files at once, without waiting for retention and compaction.

A broker removes whole closed files. So for a while the topics concerned close a file after a second; a record of no
meaning, a *filler*, closes the one that is open; then topics that keep records for a time lose everything up to the
filler, and compacted ones are cleaned.

What it costs: on the partitions concerned everybody's records that are older than the erasure go. The archive has
them; a replay from the log, a reset, and readers that Turntide does not know begin after them. During the cleaning a
changelog may lose what a replaced worker's late write overruled (`models.events.topics`, `compaction_lag`).

Null records of public compacted topics go too, for a key may identify somebody; a reader that is not one of Turntide's
roles may never learn of the erasure. Null records of changelogs stay for `delete.retention.ms` (24 h), and the proof
counts them: Kafka cleans a whole topic, not what one erasure wrote, so a recovery that is behind, or reading at that
moment, would keep other sessions and users that went meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import KafkaError

from models.entities import REGISTRY, entity_key
from models.errors import ConfigurationError, StoreUnavailable
from models.events import ErasureProved, SessionErased, UserErased
from models.events.topics import COMMANDS, ERASURES, MEMORY_STATE, SESSION_STATE, TURNS, Cleanup, Topic
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.erase.logs import Logs, Readers
from streams.erase.residual import CHANGELOGS, COMPACTED, names_of
from streams.kafka.client import Extent, Extents
from streams.kafka.producer import Record
from streams.kafka.records import appended_at
from streams.kafka.topics import existing_topics, replace_config, set_config

log = structlog.get_logger(__name__)

FILLER_KEY = b"erasure"
READERS = ("sessions", "memory", "enrich", "index")
"""Roles that must have read what is cut off, beside the archive."""
CLEANED_WITHIN_S = 600.0
_SEGMENT_MS = 1_009
_TIGHT = {"segment.ms": str(_SEGMENT_MS), "file.delete.delay.ms": "1009"}
"""Odd numbers, so that what a killed erasure left is known as its own."""
_TIGHT_COMPACTED = {
    **_TIGHT,
    "min.cleanable.dirty.ratio": "0.0",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "1009",
}
_TIGHT_PUBLIC = {**_TIGHT_COMPACTED, "delete.retention.ms": "0"}
_LOOK_EVERY_S = 1.0
_FILL_EVERY_S = 3.0
"""A null record goes with the second cleaning after it, and only what was written to is cleaned."""

Places = Mapping[Topic, Iterable[TopicPartition]]


async def purge(
    logs: Logs, readers: Readers, request_id: str, places: Places, is_clean: Callable[[], Awaitable[bool]]
) -> None:
    """Cut off and clean the logs of the partitions that hold something of the subject.

    Args:
        logs: The logs.
        readers: Roles that must have read what is cut off.
        request_id: Of the erasure, for the fillers.
        places: The partitions, by topic.
        is_clean: Whether the compacted ones hold nothing of the subject any more.

    Raises:
        ReadersBehind: A role has not read what would be cut off.
        StoreUnavailable: The broker does not clean in time.
        ConfigurationError: The broker refuses.
    """
    wanted = {topic: found for topic, each in places.items() if (found := sorted(each))}
    if not wanted:
        return
    async with tightened(logs, wanted):
        # A file that was begun a moment ago closes only once it is old enough.
        await asyncio.sleep(1.5 * _SEGMENT_MS / 1000)
        ends = await fill(logs, request_id, wanted)
        await readers.all_beyond(ends, roles=READERS)
        archived = {logs.name(topic) for topic in REGISTRY.archived_topics}
        await readers.archived({place: end for place, end in ends.items() if place.topic in archived})
        await _cut(logs.admin, {p: ends[p] for t, each in wanted.items() if t.cleanup is Cleanup.DELETE for p in each})
        filled_s = began_s = monotonic()
        while not await is_clean():
            if monotonic() - began_s > CLEANED_WITHIN_S:
                raise StoreUnavailable(
                    f"the broker has not cleaned {', '.join(topic.name for topic in wanted)} in "
                    f"{CLEANED_WITHIN_S:.0f} s: check that its log cleaner runs. The erasure stays pending"
                )
            if monotonic() - filled_s > _FILL_EVERY_S:
                await fill(logs, request_id, wanted)
                filled_s = monotonic()
            await asyncio.sleep(_LOOK_EVERY_S)


async def fill(
    logs: Logs, request_id: str, wanted: Mapping[Topic, Iterable[TopicPartition]]
) -> dict[TopicPartition, int]:
    """Write a filler, a record of no meaning, to each partition; gives the offset after it.

    A changelog has one writer, which a record of somebody else's would stop: its role gets one to fold instead.
    """
    now, written = datetime.now(UTC), dict[TopicPartition, int]()
    for topic, places in wanted.items():
        cause = {SESSION_STATE: TURNS, MEMORY_STATE: COMMANDS}.get(topic, topic)
        for place in places:
            target = TopicPartition(logs.name(cause), place.partition)
            if target not in written:
                record = _filler(cause, request_id, now)
                offset = await logs.producer.write_whole(target.topic, target.partition, [record])
                written[target] = offset + 1
    return written


def _filler(topic: Topic, request_id: str, now: datetime) -> Record:
    """A record that changes nothing: somebody who never was is forgotten, or a key without a value."""
    name = f"erasure {request_id}"
    if topic is TURNS:
        session = SessionErased(session_id=name, app_id=name, timestamp=now, request_id=request_id)
        return Record(name.encode(), encode(session), headers_for(session))
    if topic is COMMANDS:
        user = UserErased(app_id=name, user_id=name, timestamp=now, request_id=request_id)
        return Record(entity_key(user).encode(), encode(user), headers_for(user))
    return Record(FILLER_KEY, None)


async def _cut(client: AIOKafkaAdminClient, ends: Mapping[TopicPartition, int]) -> None:
    """Delete what stands before these offsets."""
    if not ends:
        return
    try:
        await client.delete_records({place: RecordsToDelete(end) for place, end in ends.items()})
    except KafkaError as error:
        raise ConfigurationError(
            f"the broker refuses to delete records: {error!r}. Allow the ACL operation Delete on the topic"
        ) from error
    log.info("erasure_cut_logs", partitions=len(ends))


# --- configuration for a while


@asynccontextmanager
async def tightened(logs: Logs, topics: Iterable[Topic]) -> AsyncIterator[None]:
    """Have topics close files after a second and be cleaned at any cost; restores their configuration at the end.

    Raises:
        ConfigurationError: The broker refuses.
    """
    by_name = {logs.name(topic): topic for topic in topics}
    before = {name: each.own_config for name, each in (await existing_topics(logs.admin, [*by_name])).items()}
    try:
        await set_config(logs.admin, {name: _tight(topic) for name, topic in by_name.items()})
        yield
    finally:
        await replace_config(logs.admin, {name: _loosened(by_name[name], config) for name, config in before.items()})


async def restore(logs: Logs) -> list[str]:
    """Restore the configuration that a killed erasure left; returns the names of the topics.

    What an operator had set for the entries concerned is not known any more: they get the defaults back.

    Raises:
        ConfigurationError: The broker refuses.
    """
    by_name = {logs.name(topic): topic for topic in REGISTRY.topics}
    existing = await existing_topics(logs.admin, [*by_name])
    left = {name: each.own_config for name, each in existing.items() if _is_tight(each.own_config)}
    await replace_config(logs.admin, {name: _loosened(by_name[name], config) for name, config in left.items()})
    if left:
        log.warning("erasure_config_restored", topics=sorted(left))
    return sorted(left)


def _tight(topic: Topic) -> Mapping[str, str]:
    if topic.cleanup is Cleanup.DELETE:
        return _TIGHT
    return _TIGHT_PUBLIC if topic.public else _TIGHT_COMPACTED


def _is_tight(config: Mapping[str, str]) -> bool:
    return config.get("segment.ms") == _TIGHT["segment.ms"]


def _loosened(topic: Topic, config: Mapping[str, str]) -> dict[str, str]:
    """The topic's own entries as they were; of what an erasure set itself, as the topic table has them."""
    if not _is_tight(config):
        return dict(config)
    kept = {name: value for name, value in config.items() if name not in _tight(topic)}
    if topic.cleanup is Cleanup.COMPACT:
        kept["min.compaction.lag.ms"] = str(int(topic.compaction_lag.total_seconds() * 1000))
        kept["max.compaction.lag.ms"] = str(int(topic.compacted_within.total_seconds() * 1000))
    if topic.segment is not None:
        kept["segment.ms"] = str(int(topic.segment.total_seconds() * 1000))
    return kept


_NULLS_AFTER = timedelta(hours=12)
"""Beyond the second time-limit: the file that the first record began is old enough by then."""


class IdlePartitions:
    """Has Kafka clean partitions that nobody writes to, when it is due.

    A broker closes a file only when the next record comes, and cleans closed files only. What an erasure replaced on a
    quiet partition would stay beyond the date in the proof. So once `max.compaction.lag.ms` is over, each partition of
    a compacted topic without a later record gets a filler, and another one when the null records' time is over. A new
    object looks at every topic once more.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._done: dict[Topic, datetime] = {}

    async def wake(self, proofs: Iterable[ErasureProved], now: datetime) -> int:
        """Write to the partitions where it is due by the proofs of all erasures; returns how many.

        Raises:
            DeliveryFailed: Not acknowledged; it may be repeated.
        """
        idle: dict[Topic, list[TopicPartition]] = {}
        for topic, since in due(proofs, now).items():
            if self._done.get(topic) != since:
                extents = await self._logs.extents(topic)
                ends = {place: Extent(end - 1, end) for place, (start, end) in extents.items() if start < end}
                idle[topic] = [place for place, last in ends.items() if not await self._since({place: last}, since)]
                if not idle[topic]:
                    self._done[topic] = since
        woken = sum(map(len, idle.values()))
        if woken:
            await fill(self._logs, "idle", idle)
            log.info("erasure_woke_partitions", partitions=woken)
        return woken

    async def _since(self, last: Extents, since: datetime) -> bool:
        """Whether the last record of a partition is of after that."""
        async with aclosing(self._logs.read(last)) as records:
            return any([appended_at(record) >= since async for record in records])


def due(proofs: Iterable[ErasureProved], now: datetime) -> Mapping[Topic, datetime]:
    """Compacted topics, and the latest moment since which each of their partitions must have been written to."""
    found: dict[Topic, datetime] = {}
    for proof in proofs:
        for topic in _left_in(proof):
            lag = topic.compacted_within
            for moment in (proof.timestamp + lag, proof.timestamp + 2 * lag + _NULLS_AFTER):
                if moment <= now:
                    found[topic] = max(found.get(topic, moment), moment)
    return found


def _left_in(proof: ErasureProved) -> Iterator[Topic]:
    """Topics that time was to clean; the erasures' own held the request."""
    left = {store.store for store in proof.stores if store.remaining}
    yield ERASURES
    yield from (topic for topic in (*COMPACTED, *CHANGELOGS) if not left.isdisjoint(names_of(topic)[1:]))
