"""Writes of many requests at once: what comes while a partition's last record batch is under way goes with the next."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from streams.http.problems import Problem
from streams.kafka.producer import MAX_RECORD_BATCH_BYTES, ProducerOnDemand, Record
from streams.observe.telemetry import metrics

RETRY_AFTER_S = 1


class Place(NamedTuple):
    """Where a record stands."""

    partition: int
    offset: int


class _Unacknowledged(NamedTuple):
    record: Record
    written: asyncio.Future[Place]


class TurnsLog:
    """Appends records to a topic, each partition's in the order in which they came.

    Args:
        producer: Connects when the first record comes.
        topic: Full name.
        max_bytes: Of records that are not acknowledged; further ones are refused.
    """

    def __init__(self, producer: ProducerOnDemand, topic: str, *, max_bytes: int) -> None:
        self._producer = producer
        self._topic = topic
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: defaultdict[int, deque[_Unacknowledged]] = defaultdict(deque)
        self._writers: dict[int, asyncio.Task[None]] = {}

    async def append(self, records: Sequence[Record]) -> list[Place]:
        """Append records by their keys; on return all replicas have them, and where.

        Raises:
            Problem: 429, too much is under way; nothing was written.
            DeliveryFailed: The log did not confirm one. They may be there all the same.
        """
        records = self._producer.sealed(self._topic, records)
        size = sum(record.size_bytes for record in records)
        if self._bytes and self._bytes + size > self._max_bytes:
            metrics.counter("http_refused_total", reason="in_flight").inc()
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "log_behind",
                f"Kafka has not confirmed {self._bytes} bytes of earlier turns: repeat this in {RETRY_AFTER_S} s",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self._add(size)
        try:
            placed = [await self._producer.partition_of(self._topic, record.key or b"") for record in records]
        except BaseException:
            self._add(-size)
            raise
        loop, written = asyncio.get_running_loop(), list[asyncio.Future[Place]]()
        for partition, record in zip(placed, records, strict=True):
            written.append(loop.create_future())
            self._waiting[partition].append(_Unacknowledged(record._replace(partition=partition), written[-1]))
            if partition not in self._writers:
                self._writers[partition] = asyncio.create_task(self._write(partition), name="turns")
        return await asyncio.gather(*written)

    async def look(self) -> None:
        """Connect, if that is still to be done; a producer that failed was dropped.

        Raises:
            DeliveryFailed: The cluster does not answer.
        """
        await self._producer.partition_of(self._topic, b"")

    async def close(self) -> None:
        """Wait for what is under way, then disconnect."""
        await asyncio.gather(*self._writers.values())
        await self._producer.close()

    async def _write(self, partition: int) -> None:
        waiting = self._waiting[partition]
        while waiting:
            batch = [waiting.popleft()]
            size = batch[0].record.size_bytes
            while waiting and size + waiting[0].record.size_bytes <= MAX_RECORD_BATCH_BYTES:
                batch.append(waiting.popleft())
                size += batch[-1].record.size_bytes
            try:
                (first,) = await self._producer.write(self._topic, b"", [each.record for each in batch])
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                for each in batch:
                    if not each.written.done():
                        each.written.set_exception(error)
            else:
                for n, each in enumerate(batch):
                    if not each.written.done():
                        each.written.set_result(Place(partition, first.offset + n))
            finally:
                self._add(-size)
        del self._writers[partition], self._waiting[partition]

    def _add(self, size: int) -> None:
        self._bytes += size
        metrics.gauge("gateway_in_flight_bytes").set(self._bytes)
