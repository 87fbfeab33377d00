"""Sending many records by key: read ahead in a thread, pace, batch per partition, wait for the broker's word."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

from aiokafka.partitioner import DefaultPartitioner

from models.errors import InvalidRecord
from models.events.topics import TURNS
from streams.kafka.client import require_topic
from streams.kafka.producer import Producer, Record, acknowledged
from streams.settings import Settings

_T = TypeVar("_T")

_FLUSH_BYTES = 2 * 1024 * 1024
_LINGER_SECONDS = 0.05
_CHUNK = 256
_CHUNKS_AHEAD = 8


class Sender:
    """Sends records to one topic; records of one key keep their order.

    Attributes:
        acknowledged: Records that the broker has confirmed.
    """

    def __init__(self, producer: Producer, topic: str, *, partitions: int, max_record_bytes: int) -> None:
        self.acknowledged = 0
        self._producer = producer
        self._topic = topic
        self._max_record_bytes = max_record_bytes
        self._buffers: dict[int, list[Record]] = defaultdict(list)
        self._buffered_bytes = 0
        self._flushed_at = time.monotonic()
        self._in_flight: tuple[list[asyncio.Future[Any]], int] = ([], 0)
        choose = DefaultPartitioner()
        self._partitions = partitions
        numbers = list(range(partitions))
        # Java's murmur2 in pure Python takes 10 µs: once per session is enough.
        self._partition_of: Callable[[bytes | None], int] = lru_cache(maxsize=65_536)(
            lambda key: int(choose(key, numbers, numbers))
        )

    async def add(self, record: Record) -> None:
        """Queue a record; hands over what has gathered when it is much or has waited 50 ms.

        Raises:
            InvalidRecord: The topic does not take a record of this size.
            DeliveryFailed: The broker did not confirm earlier records.
        """
        if record.size_bytes > self._max_record_bytes:
            raise InvalidRecord(
                "record_too_large", f"{record.size_bytes} bytes, {self._topic} allows {self._max_record_bytes}"
            )
        partition = record.partition
        if partition is None or partition >= self._partitions:
            partition = self._partition_of(record.key)
        self._buffers[partition].append(record)
        self._buffered_bytes += record.size_bytes
        if self._buffered_bytes >= _FLUSH_BYTES or time.monotonic() - self._flushed_at >= _LINGER_SECONDS:
            await self.flush()

    async def flush(self) -> None:
        """Hand over what has gathered, then wait for what was handed over the time before.

        Raises:
            DeliveryFailed: The broker did not confirm it.
        """
        self._flushed_at = time.monotonic()
        buffers, self._buffers = self._buffers, defaultdict(list)
        self._buffered_bytes = 0
        handed_over: list[asyncio.Future[Any]] = []
        for partition, records in buffers.items():
            handed_over += await self._producer.write(self._topic, partition, records)
        await self._confirm(handed_over, sum(map(len, buffers.values())))

    async def finish(self) -> None:
        """Hand over the rest and wait until the broker has confirmed everything.

        Raises:
            DeliveryFailed: It did not.
        """
        await self.flush()
        await self._confirm([], 0)

    async def _confirm(self, handed_over: list[asyncio.Future[Any]], records: int) -> None:
        """Wait for the last hand-over while the next one is on its way."""
        (pending, count), self._in_flight = self._in_flight, (handed_over, records)
        await acknowledged(pending)
        self.acknowledged += count


async def send_to_turns(settings: Settings, records: Iterable[Record]) -> None:
    """Send a few records to `turns.v1` and wait until the broker has them.

    Raises:
        ConfigurationError: The topic is missing.
        DeliveryFailed: The broker did not confirm.
    """
    async with turns_sender(settings) as sender:
        for record in records:
            await sender.add(record)
        await sender.finish()


@asynccontextmanager
async def turns_sender(settings: Settings) -> AsyncIterator[Sender]:
    """A sender to `turns.v1`; call its `finish` before leaving.

    Raises:
        ConfigurationError: The topic is missing.
        DeliveryFailed: The cluster does not answer.
    """
    topic = TURNS.full_name(settings.topic_prefix)
    await require_topic(settings.kafka, topic)
    producer = Producer(settings)
    await producer.start()
    try:
        count = await producer.partitions(topic)
        yield Sender(producer, topic, partitions=count, max_record_bytes=TURNS.max_message_bytes)
    finally:
        await producer.stop()


class Pace:
    """Schedule of events: at a rate, at a multiple of the events' own speed, or at once."""

    def __init__(self, *, rate_per_s: float | None = None, speedup: float | None = None) -> None:
        self._rate_per_s = rate_per_s
        self._speedup = speedup
        self._sent = 0
        self._first: datetime | None = None

    def due(self, timestamp: datetime) -> float:
        """Seconds after the beginning at which an event of this time is to go out; 0 when there is no pace."""
        self._first = self._first or timestamp
        self._sent += 1
        if self._rate_per_s is not None:
            return (self._sent - 1) / self._rate_per_s
        if self._speedup is not None:
            return (timestamp - self._first).total_seconds() / self._speedup
        return 0.0


class ReadAhead(Generic[_T]):
    """Items of a blocking iterator, read in a thread of its own a little ahead, in chunks.

    A chunk is what could be read without waiting, as far as `ready` tells, so that a slow pipe's lines arrive one by
    one and a file's in hundreds.
    """

    def __init__(self, items: Iterator[_T], *, ready: Callable[[], bool] = lambda: True) -> None:
        self._items = items
        self._ready = ready
        self._room = threading.Semaphore(_CHUNKS_AHEAD)
        self._closed = False
        self._queue: asyncio.Queue[list[_T] | Exception | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        # A daemon: it may stand in a read that never returns.
        threading.Thread(target=self._read, name="read-ahead", daemon=True).start()

    async def chunks(self, stop: asyncio.Event) -> AsyncIterator[list[_T]]:
        """Chunks until the end, or until `stop` is set.

        Raises:
            Exception: What the iterator raised.
        """
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                chunk = asyncio.ensure_future(self._queue.get())
                await asyncio.wait({chunk, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not chunk.done():
                    chunk.cancel()
                    return
                self._room.release()
                read = chunk.result()
                if read is None:
                    return
                if isinstance(read, Exception):
                    raise read
                yield read
        finally:
            stopped.cancel()
            self._closed = True
            self._room.release()

    def _read(self) -> None:
        chunk: list[_T] = []
        try:
            for item in self._items:
                chunk.append(item)
                if len(chunk) >= _CHUNK or not self._ready():
                    self._push(chunk)
                    chunk = []
                if self._closed:
                    return
            self._push(chunk)
            self._push(None)
        except Exception as error:  # noqa: BLE001 - handed over to the reader of the chunks
            self._push(error)

    def _push(self, chunk: list[_T] | Exception | None) -> None:
        self._room.acquire()
        if self._closed:
            return
        with suppress(RuntimeError):  # the loop may be closed by now: nobody waits for more
            self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)
