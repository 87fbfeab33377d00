"""A producer for those who seldom write: it connects with the first record, and anew after it failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from models.errors import DeliveryFailed
from streams.kafka.producer import Producer, Record, acknowledged
from streams.settings import Settings


class _Connected:
    """A producer, and how many write by it now: it is stopped by the last of them, or their waiting would never end."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self._writers = 0
        self._unwanted = False

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Producer]:
        self._writers += 1
        try:
            yield self.producer
        finally:
            self._writers -= 1
            if self._unwanted and not self._writers:
                await self.producer.stop()

    async def leave(self) -> None:
        """Stop it, now or when nobody writes any more."""
        if not self._unwanted:
            self._unwanted = True
            if not self._writers:
                await self.producer.stop()


class ProducerOnDemand:
    """Writes to the log of a cluster that may be away when its owner starts.

    Args:
        settings: Which cluster.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connected: _Connected | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether something was written, and nothing failed since."""
        return self._connected is not None

    async def write(self, topic: str, key: bytes, records: Sequence[Record]) -> list[RecordMetadata]:
        """Write records where a key belongs; on return the log has them.

        Args:
            topic: Its full name.
            key: Of the record whose order matters.
            records: In order.

        Returns:
            Where each record batch begins.

        Raises:
            DeliveryFailed: The log did not confirm them. They may still be there.
        """
        connected: _Connected | None = None
        try:
            connected = await self._connect()
            async with connected.writing() as producer:
                partition = await producer.partition_of(topic, key)
                return await acknowledged(await producer.write(topic, partition, records))
        except Exception as error:
            # One that failed once may be unfit for ever; another one may have taken its place already.
            if connected is not None and connected is self._connected:
                self._connected = None
                await connected.leave()
            if isinstance(error, DeliveryFailed):
                raise
            reason = repr(error) if isinstance(error, KafkaError) else type(error).__name__
            raise DeliveryFailed(f"cannot write to {topic}: {reason}") from error

    async def close(self) -> None:
        """Disconnect; a later record connects again."""
        async with self._connecting:
            connected, self._connected = self._connected, None
        if connected is not None:
            await connected.leave()

    async def _connect(self) -> _Connected:
        async with self._connecting:
            if self._connected is None:
                producer = Producer(self._settings)
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._connected = _Connected(producer)
            return self._connected
