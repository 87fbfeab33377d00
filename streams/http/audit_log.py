"""Records of the audit, written to `audit.v1` in batches.

An answer waits for its record only where `http.audit_required` says so. What cannot be written is counted and logged
(`audit_records_total`, result `lost`), and what waits is bounded: a log that is away takes no memory.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import structlog

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.events.topics import AUDIT
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.kafka.producer import ProducerOnDemand, Record
from streams.observe.telemetry import metrics
from streams.settings import Settings

log = structlog.get_logger(__name__)

WRITE_AFTER_S = 0.5
"""Longest that a record waits for others."""
MOST_WAITING = 10_000
"""Records that wait while the log does not answer; further ones are lost, and counted."""
MOST_AT_ONCE = 1_000
WRITTEN_WITHIN_S = 5.0
"""How long an answer waits for its record, and the end of a role for those that are left."""


class _Waiting(NamedTuple):
    event: AccessAudited
    written: asyncio.Future[None] | None
    """Somebody waits for it."""


WriteAll = Callable[[Sequence[AccessAudited]], Awaitable[None]]
"""Writes records; raises `DeliveryFailed`."""


class BatchedAudit:
    """Records of the audit on their way to whatever writes them.

    Args:
        write_all: Writes a batch.
        required: Whether words are given only when their reading is on record.
    """

    def __init__(self, write_all: WriteAll, *, required: bool) -> None:
        self.required = required
        self._write_all = write_all
        self._waiting: list[_Waiting] = []
        self._at_once = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def record(self, event: AccessAudited) -> None:
        """Take a record; within `WRITE_AFTER_S` it is on its way."""
        if len(self._waiting) >= MOST_WAITING:
            _count("lost", 1)
            return
        self._take(_Waiting(event, None))

    async def write(self, event: AccessAudited) -> None:
        """Write a record now, with those that wait.

        Raises:
            DeliveryFailed: It is not on record, or not within `WRITTEN_WITHIN_S`.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise DeliveryFailed(f"{MOST_WAITING} records of the audit wait for the log already")
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._take(_Waiting(event, written))
        self._at_once.set()
        try:
            await asyncio.wait_for(written, WRITTEN_WITHIN_S)
        except TimeoutError as error:
            raise DeliveryFailed(f"no record of the audit was acknowledged within {WRITTEN_WITHIN_S:g} s") from error

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open while requests are answered; on leaving, what waits is written, for at most `WRITTEN_WITHIN_S`."""
        _count("lost", 0)  # there from the start: a series that begins at 1 has not risen for Prometheus
        try:
            yield
        finally:
            self._at_once.set()
            if self._writing is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._writing, WRITTEN_WITHIN_S)
            self._at_once.clear()
            if self._waiting:
                self._lose(self._waiting, "the role ended")
                self._waiting = []

    def _take(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        if len(self._waiting) >= MOST_AT_ONCE:
            self._at_once.set()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="audit")

    async def _write(self) -> None:
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), WRITE_AFTER_S)
            self._at_once.clear()
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            if self._waiting:
                self._at_once.set()
            await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[_Waiting]) -> None:
        try:
            await self._write_all([each.event for each in batch])
        except DeliveryFailed as error:
            self._lose(batch, str(error))
        except BaseException:
            self._lose(batch, "the writer failed or was ended")
            raise
        else:
            _count("written", len(batch))
            for each in batch:
                if each.written is not None and not each.written.done():
                    each.written.set_result(None)

    def _lose(self, batch: Sequence[_Waiting], reason: str) -> None:
        _count("lost", len(batch))
        log.error("audit_records_lost", records=len(batch), reason=reason)
        for each in batch:
            if each.written is not None and not each.written.done():
                each.written.set_exception(DeliveryFailed(reason))


class KafkaAudit(BatchedAudit):
    """The audit in `audit.v1`; connects when the first record comes.

    Args:
        settings: The cluster, the topics' prefix, and whether the audit is required.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(self._to_kafka, required=settings.http.audit_required)
        self._topic = AUDIT.full_name(settings.topic_prefix)
        self._producer = ProducerOnDemand(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As of every `BatchedAudit`, and disconnects at the end."""
        try:
            async with super().running():
                yield
        finally:
            await self._producer.close()

    async def _to_kafka(self, events: Sequence[AccessAudited]) -> None:
        # All of a batch under the first one's key: their order among each other means nothing.
        records = [Record(event.id.encode(), encode(event), headers_for(event)) for event in events]
        await self._producer.write(self._topic, events[0].id.encode(), records)


def _count(result: str, records: int) -> None:
    metrics.counter("audit_records_total", result=result).inc(records)
