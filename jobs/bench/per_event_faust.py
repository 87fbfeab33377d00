"""The same fold in stock Faust: one event at a time, outputs awaited, one table write per event.

Set up as Faust's documentation has it: default transport, an agent over `stream.events()`, a table in memory with a
changelog, outputs acknowledged with `await (await topic.send(…))`. Of one event all sends are awaited together.
A table has one value per key, so a write holds all parts of the session: a recovery must find them.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import Any

import faust
import msgspec

from jobs.bench.event_fold import EventFold, record_of
from jobs.bench.figures import Timing
from models.codec import encode
from models.topics import TOPIC_OF, TURNS
from streams.kafka.client import require_topic
from streams.settings import Settings


def fold(settings: Settings, turns: int) -> Timing:
    """Fold the first `turns` turns that the agent gets, from the first to the last one's acknowledgement."""
    logging.getLogger().setLevel(logging.ERROR)
    return asyncio.run(_fold(settings, turns))


async def _fold(settings: Settings, turns: int) -> Timing:
    partitions = len(await require_topic(settings.kafka, TURNS.full_name(settings.topic_prefix)))
    app = _app(settings)
    contender = _Contender(app, settings, turns, partitions)
    await app.start()
    try:
        await contender.done.wait()
    finally:
        await app.stop()
    return Timing(turns, contender.ended_s - contender.began_s)


def _app(settings: Settings) -> faust.App:
    datadir = settings.data_dir / "per-event-faust" / settings.topic_prefix
    datadir.mkdir(parents=True, exist_ok=True)
    return faust.App(
        f"{settings.topic_prefix}.per-event-faust",
        broker=f"kafka://{settings.kafka.bootstrap}",
        store="memory://",
        datadir=datadir,
        consumer_auto_offset_reset="earliest",
        topic_replication_factor=1,
        web_enabled=False,
        loghandlers=[],
    )


class _Contender:
    """The agent and its clock."""

    def __init__(self, app: faust.App, settings: Settings, turns: int, partitions: int) -> None:
        self.done = asyncio.Event()
        self.began_s = self.ended_s = 0.0
        self._left = turns
        self._fold = EventFold(settings)
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
            if not self.began_s:
                self.began_s = perf_counter()
            if not self.done.is_set():
                await self._take(event.message)

    async def _take(self, message: Any) -> None:
        folded = self._fold.fold(
            record_of(
                topic=message.topic,
                partition=message.partition,
                offset=message.offset,
                timestamp_ms=int(message.timestamp * 1000),
                key=message.key,
                value=message.value,
            )
        )
        pending = [
            await self._topics[type(output)].send(
                key=(output.session_id or output.app_id).encode(), value=encode(output), partition=message.partition
            )
            for output in folded.outputs
        ]
        await asyncio.gather(*pending)
        for session_id in folded.changed:
            parts = self._fold.whole(message.partition, session_id)
            self._table[session_id.encode()] = msgspec.msgpack.encode(parts)
        self._left -= 1
        if not self._left:
            self.ended_s = perf_counter()
            self.done.set()
