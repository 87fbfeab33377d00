"""Counters, gauges and logs of the archive role."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from time import monotonic

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from models.events.topics import Topic
from streams.archive.buffer import UNLANDABLE, Move
from streams.archive.schema import TABLES, Skipped
from streams.archive.writer import LandedFiles
from streams.kafka.records import event_time_of, show_event_time_lag, show_lags
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)

_SHOW_EVERY_S = 1.0


def count_polled(polled: Mapping[TopicPartition, Sequence[ConsumerRecord]], owned: Container[TopicPartition]) -> None:
    """One poll's records, and how late the last of each partition are that has not moved to another worker since."""
    for partition, records in polled.items():
        if partition in owned:
            show_event_time_lag(partition.partition, event_time_of(records[-1]))
    if polled:
        metrics.histogram("batch_turns").observe(sum(map(len, polled.values())))


def count_landed(
    files: Mapping[str, LandedFiles], moves: Mapping[TopicPartition, Move], topics: Mapping[str, Topic]
) -> None:
    """One landing."""
    for name, written in files.items():
        topic = TABLES[name].topic.name
        metrics.counter("archive_rows_total", topic=topic).inc(written.rows)
        metrics.counter("archive_files_total", topic=topic).inc(written.files)
        metrics.counter("archive_bytes_total", topic=topic).inc(written.bytes)
    for place, move in moves.items():
        metrics.counter("records_total", topic=topics[place.topic].name).inc(move.next - move.begin)


def tell_skipped(skipped: Iterable[Skipped], topics: Mapping[str, Topic]) -> None:
    """A log line and a count for each record of which nothing can be made, and no dead letter tells."""
    for row in skipped:
        if row.value is not None or row.reason == UNLANDABLE:
            metrics.counter("records_skipped_total", topic=topics[row.topic].name, reason=row.reason).inc()
            log.error(
                "archive_undecodable",
                topic=row.topic,
                partition=row.kafka_partition,
                offset=row.first_offset,
                reason=row.reason,
                detail=row.detail,
            )


class Lags:
    """How far each partition is behind, also while rows wait to be landed."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        landed: Mapping[TopicPartition, Move],
        topics: Mapping[str, Topic],
        taken: Callable[[TopicPartition], int | None],
    ) -> None:
        self._consumer = consumer
        self._landed = landed
        self._topics = topics
        self._taken = taken
        self._shown_s = monotonic()

    async def show(self) -> None:
        """At most once a second; call it after what was polled is taken."""
        if monotonic() - self._shown_s < _SHOW_EVERY_S:
            return
        self._shown_s, assigned = monotonic(), self._consumer.assignment()
        lags: dict[TopicPartition, int] = {}
        for place, move in self._landed.items():
            end = self._consumer.last_stable_offset(place) if place in assigned else None
            if end is not None:
                # Behind the last record there may be markers of transactions, which nobody is given.
                is_all = self._taken(place) == move.next and await self._consumer.position(place) >= end
                lags[place] = 0 if is_all else max(0, end - move.next)
                labels = {"topic": self._topics[place.topic].name, "partition": str(place.partition)}
                metrics.gauge("archive_lag_records", **labels).set(lags[place])
        show_lags(lags)
