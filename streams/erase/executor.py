"""Follows `erasures.v1` and carries out what is asked for there, one erasure after the other.

Runs beside landing in the archive worker that has the topic's first partition. What is pending is what has no proof:
a worker that died, or whose erasure waited in vain for a role, begins it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from models.errors import TurntideError
from models.events import EraseRequested, VectorsErasureDue
from models.events.topics import ERASURES
from models.policy import IntakePolicy
from streams.erase.archive import WriterArchive
from streams.erase.erasure import Erasure
from streams.erase.logs import Logs, Readers, opened
from streams.erase.purge import IdlePartitions, purge, restore
from streams.erase.record import PLACE, ErasureRecords, key_of, recorded
from streams.erase.residual import Tally
from streams.kafka.producer import Record
from streams.observe.telemetry import metrics
from streams.settings import Settings

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
TRY_AGAIN_AFTER_S = 15.0
WAKE_EVERY_S = 3_600.0


class Executor:
    """Carries out erasures while it is started; `intake` says what the folds take for a turn or a command."""

    def __init__(self, settings: Settings, intake: IntakePolicy, archive: WriterArchive) -> None:
        self._settings = settings
        self._intake = intake
        self._archive = archive
        self._task: asyncio.Task[None] | None = None
        self._tallies: dict[str, Tally] = {}
        self._tried_s: dict[str, float] = {}

    def is_answered_by(self, assigned: set[TopicPartition]) -> bool:
        """Whether the worker with these partitions carries out erasures."""
        return TopicPartition(ERASURES.full_name(self._settings.topic_prefix), PLACE) in assigned

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; an erasure under way stays pending."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                async with opened(self._settings, self._intake) as logs:
                    await self._follow(logs)
            except (TurntideError, KafkaError) as error:
                log.warning("erasures_interrupted", error=str(error), again_s=TRY_AGAIN_AFTER_S)
            except Exception as error:
                # Landing goes on whatever becomes of an erasure; it stays pending.
                log.exception("erasures_failed", error=type(error).__name__)
            await asyncio.sleep(TRY_AGAIN_AFTER_S)

    async def _follow(self, logs: Logs) -> None:
        await restore(logs)
        records, readers, idle = ErasureRecords(), Readers(logs, self._archive.landed), IdlePartitions(logs)
        wake_s = monotonic()
        while True:
            await records.refresh(logs)
            await self._clear(logs, records)
            _show(records.pending)
            for request in sorted(records.pending, key=lambda each: self._tried_s.get(each.request_id, 0.0)):
                if monotonic() >= self._tried_s.get(request.request_id, 0.0):
                    await self._carry_out(request, logs, readers, records)
            if monotonic() >= wake_s:
                await idle.wake(records.proved.values(), datetime.now(UTC))
                wake_s = monotonic() + WAKE_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)

    async def _carry_out(self, request: EraseRequested, logs: Logs, readers: Readers, records: ErasureRecords) -> None:
        """Erase, write the proof, then remove what names the subject; what fails is tried again later."""
        of = log.bind(request_id=request.request_id, scope=request.scope)
        tally = self._tallies.setdefault(request.request_id, Tally())
        began_s = monotonic()
        # Before the try: one that fails in any other way ends this round, and the next one begins with the others.
        self._tried_s[request.request_id] = began_s + TRY_AGAIN_AFTER_S
        try:
            erasure = Erasure(request, logs=logs, readers=readers, archive=self._archive, records=records, tally=tally)
            proof = await erasure.run()
        except TurntideError as error:
            self._tried_s[request.request_id] = monotonic() + TRY_AGAIN_AFTER_S
            of.warning("erasure_pending", reason=str(error), again_s=TRY_AGAIN_AFTER_S)
            return
        place = TopicPartition(logs.name(ERASURES), PLACE)
        await logs.write({place: [recorded(proof)]})
        await records.refresh(logs)
        await self._clear(logs, records)
        self._tallies.pop(request.request_id, None)
        self._tried_s.pop(request.request_id, None)
        of.info(
            "erasure_proved",
            complete=proof.complete,
            seconds=round(monotonic() - began_s, 1),
            removed=sum(store.removed for store in proof.stores),
            remaining=sum(store.remaining for store in proof.stores),
        )
        if request.purge_logs:
            await self._purge_requests(logs, readers, request.request_id)

    async def _clear(self, logs: Logs, records: ErasureRecords) -> None:
        """Write null records for what names somebody although the erasure is proved."""
        names = [Record(key, None) for key in records.names()]
        if names:
            await logs.write({TopicPartition(logs.name(ERASURES), PLACE): names})
            await records.refresh(logs)

    async def _purge_requests(self, logs: Logs, readers: Readers, request_id: str) -> None:
        """Remove what names the subject from the log's files too; the proof stands whether or not that works."""
        keys = {key_of(request_id, kind) for kind in (EraseRequested, VectorsErasureDue)}

        async def is_clean() -> bool:
            found = [record async for record in logs.read(await logs.extents(ERASURES)) if record.key in keys]
            return all(record.value is None for record in found)

        places = {ERASURES: [TopicPartition(logs.name(ERASURES), PLACE)]}
        try:
            await purge(logs, readers, request_id, places, is_clean)
        except TurntideError as error:
            log.warning("erasure_request_not_purged", request_id=request_id, reason=str(error))


def _show(pending: Sequence[EraseRequested]) -> None:
    metrics.gauge("erasures_pending").set(len(pending))
    oldest = min((request.timestamp for request in pending), default=None)
    age_s = 0.0 if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
    metrics.gauge("erasure_oldest_pending_seconds").set(max(0.0, age_s))
