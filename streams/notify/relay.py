"""Role `notify`: alert changes from the topic to the sinks.

Each sink has a consumer group of its own, so that one that is down does not hold up the others. An offset is committed
after delivery: a sink that refuses stops the role, which goes on from there when it starts again. The first start
delivers what the topic still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord

from models.codec import decode_output
from models.errors import ConfigurationError, InvalidRecord, StoreUnavailable
from models.events import AlertChanged
from models.topics import ALERTS
from streams.api.health import create_api, serve
from streams.kafka.client import consumer, require_topic
from streams.notify.sinks import configured_sinks
from streams.ports import AlertSink
from streams.settings import Settings
from streams.telemetry import metrics

log = structlog.get_logger(__name__)

_POLL_MS = 500
_MAX_RECORDS = 100


async def run(settings: Settings, *, stop: asyncio.Event, sinks: Sequence[AlertSink] | None = None) -> None:
    """Deliver until `stop` is set.

    Args:
        settings: Cluster, prefix and addresses.
        stop: Ends the role after the deliveries in hand.
        sinks: Where to deliver; None: the configured ones.

    Raises:
        ConfigurationError: No sink is configured, or the topic is missing.
        StoreUnavailable: A sink refused for good; its offset has not passed.
    """
    found = configured_sinks(settings.notify) if sinks is None else sinks
    if not found:
        raise ConfigurationError(
            "no alert sink is configured: set TURNTIDE_NOTIFY__WEBHOOK_URL or TURNTIDE_NOTIFY__ALERTMANAGER_URL"
        )
    await require_topic(settings.kafka, ALERTS.full_name(settings.topic_prefix))
    api = create_api(ready=lambda: (True, "ready"), registry=metrics.registry)
    try:
        async with serve(api, settings.http.host, settings.http.notify_port), asyncio.TaskGroup() as group:
            for sink in found:
                group.create_task(_relay(settings, sink, stop))
    except BaseExceptionGroup as failed:
        # One cause names the trouble; the others are mostly cancellations.
        raise failed.exceptions[0] from failed
    finally:
        for sink in found:
            await sink.close()


def group_of(settings: Settings, sink: AlertSink) -> str:
    """Consumer group of a sink."""
    return f"{settings.topic_prefix}.notify.{sink.name}"


async def _relay(settings: Settings, sink: AlertSink, stop: asyncio.Event) -> None:
    kafka = settings.kafka
    async with consumer(
        kafka,
        ALERTS.full_name(settings.topic_prefix),
        group_id=group_of(settings, sink),
        group_instance_id=settings.worker_id,
        auto_offset_reset="earliest",
        session_timeout_ms=int(kafka.session_timeout.total_seconds() * 1000),
        heartbeat_interval_ms=int(kafka.heartbeat_interval.total_seconds() * 1000),
    ) as client:
        while not stop.is_set():
            await _deliver_polled(client, sink)


async def _deliver_polled(client: AIOKafkaConsumer, sink: AlertSink) -> None:
    polled = await client.getmany(timeout_ms=_POLL_MS, max_records=_MAX_RECORDS)
    for partition, records in polled.items():
        alerts = [alert for record in records if (alert := _decoded(record)) is not None]
        try:
            await sink.deliver(alerts)
        except StoreUnavailable:
            metrics.counter("sink_deliveries_total", sink=sink.name, result="failed").inc(len(alerts))
            raise
        metrics.counter("sink_deliveries_total", sink=sink.name, result="delivered").inc(len(alerts))
        await client.commit({partition: records[-1].offset + 1})
        log.info("alerts_delivered", sink=sink.name, partition=partition.partition, alerts=len(alerts))


def _decoded(record: ConsumerRecord) -> AlertChanged | None:
    """A record that is no alert was written by somebody else: it is logged and passed, it can never be delivered."""
    try:
        event = decode_output(ALERTS, record.value or b"")
    except InvalidRecord as error:
        log.warning("alert_undecodable", partition=record.partition, offset=record.offset, detail=error.detail)
        return None
    return event if isinstance(event, AlertChanged) else None
