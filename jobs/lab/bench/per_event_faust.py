"""The same fold in stock Faust: one event at a time, outputs awaited, one table write per event.

Set up as Faust's documentation has it: default transport, an agent over `stream.events()`, a table with a changelog,
outputs acknowledged with `await (await topic.send(…))` before the table is written. Of one event all sends are awaited
together. A table has one value per key, so a write holds all parts of the session: a recovery must find them. The
table's store is in memory, which is faster than RocksDB and as durable: both are rebuilt from the changelog. Only the
session time-out is not Faust's 60 s but ours, so that a killed worker's partitions are not waited for longer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import faust
import msgspec

from jobs.lab.bench.event_fold import EventFold, record_of
from jobs.lab.bench.figures import Timing
from jobs.lab.bench.stopwatch import Stopwatch
from models.entities import TOPIC_OF
from models.events.topics import TURNS
from models.wire.codec import encode
from streams.kafka.client import require_topic
from streams.settings import Settings

_Parts = dict[str, bytes]


def fold(settings: Settings, turns: int | None, *, guarded: bool = False) -> Timing:
    """Fold the first `turns` turns that the agent gets, up to the last one's acknowledgement; none: without end."""
    logging.getLogger().setLevel(logging.ERROR)
    return asyncio.run(_fold(settings, Stopwatch(turns), guarded=guarded))


async def _fold(settings: Settings, stopwatch: Stopwatch, *, guarded: bool) -> Timing:
    partitions = len(await require_topic(settings.kafka, TURNS.full_name(settings.topic_prefix)))
    app = _app(settings)
    contender = _Contender(app, settings, stopwatch, partitions, guarded=guarded)
    await app.start()
    try:
        await contender.done.wait()
    finally:
        await app.stop()
    return stopwatch.timing()


def _app(settings: Settings) -> faust.App:
    datadir = settings.data_dir / "per-event-faust" / settings.topic_prefix
    datadir.mkdir(parents=True, exist_ok=True)
    return faust.App(
        f"{settings.topic_prefix}.per-event-faust",
        broker=f"kafka://{settings.kafka.bootstrap}",
        broker_session_timeout=settings.kafka.session_timeout.total_seconds(),
        broker_heartbeat_interval=settings.kafka.heartbeat_interval.total_seconds(),
        store="memory://",
        datadir=datadir,
        consumer_auto_offset_reset="earliest",
        topic_replication_factor=1,
        web_enabled=False,
        loghandlers=[],
    )


class _Contender:
    """The agent and its table; what it has read from that once it keeps at hand."""

    def __init__(
        self, app: faust.App, settings: Settings, stopwatch: Stopwatch, partitions: int, *, guarded: bool
    ) -> None:
        self.done = asyncio.Event()
        self._stopwatch = stopwatch
        self._fold = EventFold(settings, guarded=guarded)
        self._sessions: dict[bytes, _Parts] = {}
        self._decode = msgspec.msgpack.Decoder(_Parts).decode
        self._table = app.Table("sessions", partitions=partitions, key_type=bytes, value_type=bytes)
        self._topics = {
            kind: app.topic(topic.full_name(settings.topic_prefix), key_serializer="raw", value_serializer="raw")
            for kind, topic in TOPIC_OF.items()
        }
        source = app.topic(
            TURNS.full_name(settings.topic_prefix), key_serializer="raw", value_serializer="raw", value_type=bytes
        )
        app.agent(source, name="per-event", concurrency=1)(self._agent)

    async def _agent(self, stream: faust.StreamT[bytes]) -> None:
        async for event in stream.events():
            if not self.done.is_set():
                await self._take(event.message)

    async def _take(self, message: Any) -> None:
        record = record_of(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=int(message.timestamp * 1000),
            key=message.key,
            value=message.value,
        )
        for arrival in self._fold.arrivals([record]):
            folded = self._fold.fold(arrival, self._stored(message.key))
            pending = [
                await self._topics[type(output)].send(
                    key=message.key, value=encode(output), partition=message.partition
                )
                for output in folded.outputs
            ]
            await asyncio.gather(*pending)
            self._sessions[message.key] = folded.parts
            self._table[message.key] = msgspec.msgpack.encode(folded.parts)
        if self._stopwatch.took_one():
            self.done.set()

    def _stored(self, key: bytes) -> _Parts:
        if key not in self._sessions:
            value = self._table.get(key)
            self._sessions[key] = self._decode(value) if value else {}
        return self._sessions[key]
