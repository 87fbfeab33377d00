"""Reads a contender's profiles and alerts while it works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

from aiokafka import AIOKafkaConsumer, TopicPartition

from models.events import OutputEvent, ProfileUpdated
from models.events.topics import ALERTS, PROFILES
from models.wire.codec import decode_output
from streams.kafka.client import consumer, require_topic
from streams.settings import Settings

_TOPICS = (PROFILES, ALERTS)
_POLL_S = 0.02


class Watch:
    """What stands on the two topics so far.

    Attributes:
        seen: Records, those of aborted transactions among them: a sign of work.
        events: What a reader gets (`read_committed`), in order within a partition.
        closed: Sessions whose closing profile is among them.
    """

    def __init__(self, settings: Settings) -> None:
        self.seen = 0
        self.events: list[OutputEvent] = []
        self.closed: set[str] = set()
        self._settings = settings
        self._last_s = monotonic()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def silent_s(self) -> float:
        """Since the last record."""
        return monotonic() - self._last_s

    def beyond(self, seen: int) -> bool:
        """Whether more records were seen than that."""
        return self.seen > seen

    async def until(self, true: Callable[[], bool], within_s: float) -> bool:
        """Wait until something is true; False if it is not in time. What ends the reading is raised here."""
        deadline_s = monotonic() + within_s
        while not true():
            for task in self._tasks:
                if task.done():
                    task.result()
            if monotonic() > deadline_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Read both topics from their start, in the background."""
        names = {topic.full_name(self._settings.topic_prefix): topic for topic in _TOPICS}
        places = [
            TopicPartition(name, number) for name in names for number in await require_topic(self._settings.kafka, name)
        ]
        options = {"auto_offset_reset": "earliest"}
        async with (
            consumer(self._settings.kafka, **options) as at_once,
            consumer(self._settings.kafka, isolation_level="read_committed", **options) as committed,
        ):
            at_once.assign(places)
            committed.assign(places)
            self._tasks = [asyncio.create_task(self._count(at_once)), asyncio.create_task(self._keep(committed))]
            try:
                yield
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _count(self, client: AIOKafkaConsumer) -> None:
        async for _ in client:
            self.seen += 1
            self._last_s = monotonic()

    async def _keep(self, client: AIOKafkaConsumer) -> None:
        topics = {topic.full_name(self._settings.topic_prefix): topic for topic in _TOPICS}
        async for record in client:
            event = decode_output(topics[record.topic], record.value)
            self.events.append(event)
            if isinstance(event, ProfileUpdated) and not event.open:
                self.closed.add(event.session_id)
            self._last_s = monotonic()
