"""A partition on which nothing moves though records wait: said by liveness first, then the process ends.

Clients of a log can stand still without an error: a fetcher that asks no more after an outage (hazards 12), a call
that never returns. Whoever started the process starts it again, and it goes on from what was acknowledged.

`Watchdog` decides, without I/O, on what it is told once a second; `watched` tells it and runs a role under it.
Not a stall: recovery (it has a deadline of its own), a sink that is slow but takes something, a sink that is known to
be down and tried again (`stir`), and a log whose end is reached.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any, NamedTuple

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from models.errors import Stalled
from streams.kafka.client import is_cancelled
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
ASK_EVERY_S = 15.0
_ANSWER_WITHIN_S = 5.0
EXIT_STALLED = 75
"""EX_TEMPFAIL: worth starting again."""
_END_WITHIN_S = 15.0
"""What hangs may hang the role's own stopping too: after this the process ends without it."""


class PartitionProgress(NamedTuple):
    """How far a partition is: the next offset to process, and the end of the log as far as it is known."""

    next: int
    end: int


Look = Callable[[], Awaitable[Mapping[str, PartitionProgress] | None]]
"""Tells the standing of every partition by its name; None while there is nothing to judge, as in recovery."""


class _LastMove(NamedTuple):
    next: int
    since_s: float


class Watchdog:
    """Remembers since when each partition has not moved."""

    def __init__(self, stall_after: timedelta, *, clock: Callable[[], float] = monotonic) -> None:
        self._limit_s = stall_after.total_seconds()
        self._clock = clock
        self._seen: dict[str, _LastMove] = {}
        self._still: dict[str, tuple[PartitionProgress, float]] = {}

    def stir(self) -> None:
        """Something moved that offsets do not show: every partition gets its time anew."""
        now_s = self._clock()
        self._seen = {place: seen._replace(since_s=now_s) for place, seen in self._seen.items()}
        self._still.clear()

    def look(self, places: Mapping[str, PartitionProgress] | None) -> None:
        """Take in how far every partition is; one that is missing is forgotten.

        Raises:
            Stalled: Some partition has not moved for too long.
        """
        now_s, before = self._clock(), self._seen
        self._seen, self._still = {}, {}
        for place, progress in (places or {}).items():
            seen = before.get(place)
            if seen is None or seen.next != progress.next or progress.end <= progress.next:
                seen = _LastMove(progress.next, now_s)
            self._seen[place] = seen
            if now_s - seen.since_s >= self._limit_s / 2:
                self._still[place] = (progress, now_s - seen.since_s)
        stalled = {place: progress for place, (progress, still_s) in self._still.items() if still_s >= self._limit_s}
        if stalled:
            raise Stalled(f"{self.alive()[1]}: the process ends; when restarted, it continues from there")

    def alive(self) -> tuple[bool, str]:
        """False with the reason from half of the time on, for liveness probes."""
        if not self._still:
            return True, "ok"
        still = [
            f"{place} stands at offset {progress.next} for {still_s:.0f} s, {progress.end - progress.next} records wait"
            for place, (progress, still_s) in sorted(self._still.items())
        ]
        return False, "; ".join(still)


class LogEnds:
    """Where logs end that are not read to their end, asked of the broker now and then.

    `ask` gives the end of every partition on which something is left to fetch: by the consumer's position, for a log
    may end with what is no record (markers of transactions, compacted records).
    """

    def __init__(
        self, ask: Callable[[], Awaitable[Mapping[Any, int]]], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_s = clock()
        self._answered_s = self._asked_s
        self._known: Mapping[Any, int] = {}

    @property
    def silent_s(self) -> float:
        """For how long no broker has answered; below `ASK_EVERY_S` while one does."""
        return self._clock() - self._answered_s

    async def known(self) -> Mapping[Any, int]:
        """As of the last time that the broker answered; a broker that does not is no stall."""
        if self._clock() - self._asked_s >= ASK_EVERY_S:
            try:
                async with asyncio.timeout(_ANSWER_WITHIN_S):
                    self._known = await self._ask()
                self._answered_s = self._clock()
            except asyncio.CancelledError:
                if is_cancelled():
                    raise  # else: the consumer was closed while it was asked
            except Exception as error:  # noqa: BLE001 - what was known before serves on
                log.debug("log_ends_unknown", error=type(error).__name__)
            self._asked_s = self._clock()
        metrics.gauge("kafka_silent_seconds").set(self.silent_s)
        return self._known


async def unread_ends(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    """The log's end of every assigned partition on which the consumer has something left to fetch."""
    partitions = list(consumer.assignment())
    ends = await consumer.end_offsets(partitions) if partitions else {}
    return {partition: end for partition, end in ends.items() if await consumer.position(partition) < end}


async def watched(
    work: Coroutine[Any, Any, None], watchdog: Watchdog, look: Look, *, end_soon: Callable[[], None] | None = None
) -> None:
    """Run `work` to its end, or cancel it when it stands still, after `end_soon` (by default a hard end).

    Raises:
        Stalled: A partition stood still; logged.
    """

    async def watch() -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            watchdog.look(await look())

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(watch())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            try:
                watching.result()
            except Stalled as stalled:
                log.error("partition_stalled", detail=str(stalled))  # noqa: TRY400 - the trace says nothing
                (end_soon or end_hard_soon)()
                raise
        await working
    finally:
        for task in (working, watching):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def end_hard_soon() -> None:
    """End the process in a while whatever it does; a hard end loses nothing (design §5)."""
    end = threading.Timer(_END_WITHIN_S, os._exit, (EXIT_STALLED,))
    end.daemon = True
    end.start()
