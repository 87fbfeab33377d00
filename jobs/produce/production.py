"""Sending an opened input to `turns.v1`: pace, counts, and what Ctrl-C does."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from jobs.produce.formats import InputConversation, Malformed
from jobs.produce.formats.source import InputSource, Item, RawLine
from jobs.shared.sending import Pace, ReadAhead, Sender, turns_sender
from models.errors import InvalidRecord
from models.events import InputEvent, Turn
from streams.kafka.producer import Record
from streams.kafka.records import input_record
from streams.settings import Settings


class ProductionSummary(Struct, kw_only=True):
    """Counts of what was sent; `turns` counts turns, or lines when they are sent raw."""

    format: str
    turns: int = 0
    sessions: int = 0
    malformed: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    turns_per_s: float = 0.0
    interrupted: bool = False


class Sending(Struct, frozen=True, kw_only=True):
    """Options of sending an input.

    Attributes:
        rate_per_s: Turns per second.
        speedup: Multiple of the events' own speed.
        shift_to_now: Whether each event's time becomes the moment it is sent.
        limit: Largest number of turns.
    """

    rate_per_s: float | None = None
    speedup: float | None = None
    shift_to_now: bool = False
    limit: int | None = None


class _Production:
    """Sends items through a sender and counts."""

    def __init__(
        self, sender: Sender, sending: Sending, *, report: Callable[[Malformed], None], format_name: str
    ) -> None:
        self.summary = ProductionSummary(format=format_name)
        self._sender = sender
        self._sending = sending
        self._pace = Pace(rate_per_s=sending.rate_per_s, speedup=sending.speedup)
        self._report = report
        self._sessions: set[str] = set()
        self._began = time.monotonic()

    async def send(self, chunk: list[Item], stop: asyncio.Event) -> None:
        """Send what is read; sets `stop` when the limit is reached."""
        for item in chunk:
            if stop.is_set():
                return
            if isinstance(item, Malformed):
                self._refuse(item)
                continue
            try:
                await self._send_item(item, stop)
            except InvalidRecord as error:
                self._refuse(Malformed(item.line, error.detail))

    async def finish(self, *, interrupted: bool) -> ProductionSummary:
        """Wait for the broker, complete the figures."""
        await self._sender.finish()
        summary = self.summary
        summary.seconds = round(time.monotonic() - self._began, 3)
        summary.turns_per_s = round(summary.turns / max(summary.seconds, 1e-3), 1)
        summary.acknowledged = self._sender.acknowledged
        summary.sessions = len(self._sessions)
        summary.interrupted = interrupted
        return summary

    def _refuse(self, malformed: Malformed) -> None:
        self.summary.malformed += 1
        self._report(malformed)

    async def _send_item(self, item: InputConversation | RawLine, stop: asyncio.Event) -> None:
        if isinstance(item, RawLine):
            await self._wait(datetime.now(UTC), stop)
            if stop.is_set():
                return
            await self._sender.add(Record(item.key, item.value))
            self._count(stop)
            return
        for event in item.events:
            await self._wait(event.timestamp, stop)
            if stop.is_set():
                return
            sent = self._stamped(event)
            await self._sender.add(input_record(sent))
            self._sessions.add(sent.session_id)
            if isinstance(sent, Turn):
                self._count(stop)

    async def _wait(self, timestamp: datetime, stop: asyncio.Event) -> None:
        ahead = self._began + self._pace.due(timestamp) - time.monotonic()
        if ahead <= 0:
            return
        await self._sender.flush()
        try:
            await asyncio.wait_for(stop.wait(), timeout=ahead)
        except TimeoutError:
            return

    def _stamped(self, event: InputEvent) -> InputEvent:
        if not self._sending.shift_to_now:
            return event
        return msgspec.structs.replace(event, timestamp=datetime.now(UTC))

    def _count(self, stop: asyncio.Event) -> None:
        self.summary.turns += 1
        if self.summary.turns == self._sending.limit:
            stop.set()


async def send(
    settings: Settings,
    source: InputSource,
    sending: Sending,
    *,
    report: Callable[[Malformed], None],
    progress: Callable[[int, int], None] = lambda _bytes, _turns: None,
) -> ProductionSummary:
    """Send an input to `turns.v1`. Ctrl-C ends the reading; what was read by then is still delivered.

    Raises:
        ConfigurationError: The topic is missing.
        DeliveryFailed: The broker did not confirm.
    """
    stop, interrupted = asyncio.Event(), asyncio.Event()
    async with turns_sender(settings) as sender:
        production = _Production(sender, sending, report=report, format_name=source.format_name)
        with _first_interrupt_stops(stop, interrupted):
            async for chunk in ReadAhead(source.items, ready=source.ready).chunks(stop):
                await production.send(chunk, stop)
                progress(source.bytes_read, production.summary.turns)
            return await production.finish(interrupted=interrupted.is_set())


@contextmanager
def _first_interrupt_stops(stop: asyncio.Event, interrupted: asyncio.Event) -> Iterator[None]:
    """The first Ctrl-C ends the reading, a second one everything."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        interrupted.set()
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
