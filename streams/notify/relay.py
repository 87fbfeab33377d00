"""Role `notify`: alert changes from the topic to the sinks.

Each sink has a consumer group of its own, so that one that is down does not hold up the others. An offset is committed
after delivery: a sink that refuses is tried again with the same alerts, after longer and longer pauses, until it takes
them. The first start delivers what the topic still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from models.errors import ConfigurationError, StoreUnavailable
from models.events import AlertChanged
from models.events.topics import ALERTS
from models.wire.trace_context import Traces
from streams.http.health import serving
from streams.kafka.client import consumer, require_topic
from streams.kafka.records import count_records, event_time_of, readable, show_event_time_lag, traces_of
from streams.kafka.watchdog import LogEnds, PartitionProgress, Watchdog, unread_ends, watched
from streams.notify.sinks import NO_SINK
from streams.observe.telemetry import metrics, stage
from streams.observe.tracing import tracing
from streams.ports import AlertSink
from streams.settings import Settings

log = structlog.get_logger(__name__)

_POLL_MS = 500
_MAX_RECORDS = 100
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""Before a sink that refused is asked again, each twice the one before: Kafka waits five minutes for the next poll."""


async def run(settings: Settings, sinks: Sequence[AlertSink], *, stop: asyncio.Event) -> None:
    """Deliver until `stop` is set, and what is in hand then.

    Raises:
        ConfigurationError: No sink is configured, or the topic is missing.
    """
    if not sinks:
        raise ConfigurationError(NO_SINK)
    await require_topic(settings.kafka, ALERTS.full_name(settings.topic_prefix))
    lags = SinkLags()
    relays = [_Relay(settings, sink, lags) for sink in sinks]

    def ready() -> tuple[bool, str]:
        connected = all(relay.connected for relay in relays)
        return connected, "ready" if connected else "connecting to Kafka"

    watchdog = Watchdog(settings.kafka.stall_after)

    async def progress() -> dict[str, PartitionProgress]:
        metrics.gauge("ready").set(ready()[0])  # asked every second
        return {place: each for relay in relays for place, each in (await relay.progress()).items()}

    http = settings.http
    try:
        async with serving("notify", http.notify_port, http, ready=ready, alive=watchdog.alive):
            await watched(_run_all(relays, stop), watchdog, progress)
    except BaseExceptionGroup as failed:
        # One cause names the trouble; the others are mostly cancellations.
        raise failed.exceptions[0] from failed
    finally:
        for sink in sinks:
            await sink.close()


def group_of(settings: Settings, sink: AlertSink) -> str:
    """Consumer group of a sink."""
    return f"{settings.topic_prefix}.notify.{sink.name}"


async def _run_all(relays: Sequence[_Relay], stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        for relay in relays:
            group.create_task(relay.run(stop))


class _Relay:
    """From the topic to one sink."""

    def __init__(self, settings: Settings, sink: AlertSink, lags: SinkLags) -> None:
        self._settings = settings
        self._lags = lags
        self._sink = sink
        self._log_ends: LogEnds | None = None
        self._delivered: dict[TopicPartition, int] = {}
        self._delivering = False

    @property
    def connected(self) -> bool:
        """True if alerts are read."""
        return self._log_ends is not None

    async def run(self, stop: asyncio.Event) -> None:
        kafka = self._settings.kafka
        async with consumer(
            kafka,
            ALERTS.full_name(self._settings.topic_prefix),
            group_id=group_of(self._settings, self._sink),
            group_instance_id=self._settings.worker_id,
            auto_offset_reset="earliest",
            session_timeout_ms=int(kafka.session_timeout.total_seconds() * 1000),
            heartbeat_interval_ms=int(kafka.heartbeat_interval.total_seconds() * 1000),
        ) as client:
            self._log_ends = LogEnds(partial(unread_ends, client))
            metrics.counter("sink_deliveries_total", sink=self._sink.name, result="failed").inc(0)
            pause_s = 0.0
            while not stop.is_set():
                try:
                    if await self._deliver_polled(client):
                        pause_s = 0.0
                except StoreUnavailable as error:
                    self._read_again(client)
                    pause_s = min(2 * pause_s or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
                    context = {"sink": self._sink.name, "again_s": pause_s, "reason": str(error)}
                    log.error("sink_refused", **context)  # noqa: TRY400 - where it was raised says nothing
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause_s):
                            await stop.wait()

    def _read_again(self, client: AIOKafkaConsumer) -> None:
        """What was not delivered comes with the next poll."""
        assigned = client.assignment()
        for place, offset in self._delivered.items():
            if place in assigned:
                client.seek(place, offset)

    async def progress(self) -> dict[str, PartitionProgress]:
        """Partitions with unread alerts; none while alerts are delivered, which has time-outs of its own."""
        if self._log_ends is None or self._delivering:
            return {}
        return {
            f"{self._sink.name} {tp.topic}-{tp.partition}": PartitionProgress(self._delivered.get(tp, 0), end)
            for tp, end in (await self._log_ends.known()).items()
        }

    async def _deliver_polled(self, client: AIOKafkaConsumer) -> bool:
        """Whether there was anything to deliver.

        Raises:
            StoreUnavailable: The sink did not take it.
        """
        polled = await client.getmany(timeout_ms=_POLL_MS, max_records=_MAX_RECORDS)
        self._delivering = bool(polled)
        for partition, records in polled.items():
            self._delivered.setdefault(partition, records[0].offset)
        self._show_lags(client)
        for partition, records in polled.items():
            traces = traces_of([records])
            with tracing.batch({partition: records}, traces), stage("deliver"):
                trace_ids = await self._deliver(partition, records, traces)
            await client.commit({partition: self._delivered[partition]})
            metrics.histogram("batch_turns").observe(len(records))
            count_records({partition: records}, {partition.topic: ALERTS.name})
            show_event_time_lag(partition.partition, event_time_of(records[-1]))
            log.info(
                "alerts_delivered",
                sink=self._sink.name,
                partition=partition.partition,
                records=len(records),
                **({"trace_ids": sorted(set(trace_ids.values()))} if trace_ids else {}),
            )
            self._show_lags(client)
        self._delivering = False
        return bool(polled)

    async def _deliver(
        self, partition: TopicPartition, records: Sequence[ConsumerRecord], traces: Traces
    ) -> dict[str, str]:
        """Hand alerts over one by one, so that none comes again because a later one was refused.

        Returns the trace ids of those that have one, by the id of the event.
        """
        trace_ids: dict[str, str] = {}
        for record in records:
            alert = readable(ALERTS, record)
            if isinstance(alert, AlertChanged):  # what somebody else wrote can never be delivered
                if (trace := traces.get((record.topic, record.partition, record.offset))) is not None:
                    trace_ids[alert.id] = trace.trace_id
                result = "failed"
                try:
                    await self._sink.deliver([alert], trace_ids)
                    result = "delivered"
                finally:
                    metrics.counter("sink_deliveries_total", sink=self._sink.name, result=result).inc()
            self._delivered[partition] = record.offset + 1
        return trace_ids

    def _show_lags(self, client: AIOKafkaConsumer) -> None:
        """Alert changes that this sink has not taken, of partitions of which something came.

        A partition that moved is forgotten: should it come back, others will have delivered of it meanwhile.
        """
        assigned = client.assignment()
        self._delivered = {place: offset for place, offset in self._delivered.items() if place in assigned}
        ends = {place: client.last_stable_offset(place) for place in self._delivered}
        lags = {place.partition: max(0, (end or 0) - self._delivered[place]) for place, end in ends.items()}
        self._lags.show(self._sink.name, lags)


class SinkLags:
    """Shows them by sink, and the largest by partition as every role does."""

    def __init__(self) -> None:
        self._by_sink: dict[str, dict[int, int]] = {}

    def show(self, sink: str, lags: Mapping[int, int]) -> None:
        """Show alert changes that a sink has not taken."""
        for gone in self._by_sink.get(sink, {}).keys() - lags.keys():
            metrics.forget_partition(gone)
        self._by_sink[sink] = dict(lags)
        for partition, lag in lags.items():
            metrics.gauge("sink_lag_records", sink=sink, partition=str(partition)).set(lag)
            furthest = max(each.get(partition, 0) for each in self._by_sink.values())
            metrics.gauge("offset_lag_records", partition=str(partition)).set(furthest)
