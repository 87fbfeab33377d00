"""Has Kafka clean partitions that nobody writes to, when it is due.

A broker closes a file only when the next record comes, and cleans closed files only. What an erasure replaced on a
quiet partition would stay beyond the date in the proof. So once `max.compaction.lag.ms` is over, each partition of a
compacted topic without a later record gets a filler, and another one when the time of the null records is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta

import structlog
from aiokafka import TopicPartition

from models.events import ErasureProved
from models.events.topics import ERASURES, Topic
from streams.erase.logs import Logs
from streams.erase.purge import fill
from streams.erase.residual import CHANGELOGS, COMPACTED, names_of
from streams.kafka.client import Extent, Extents
from streams.kafka.records import appended_at

log = structlog.get_logger(__name__)

_NULLS_AFTER = timedelta(hours=12)
"""Beyond the second time-limit: the file that the first record began is old enough by then."""


class IdlePartitions:
    """Remembers which topics need no more; a new one looks once more."""

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
