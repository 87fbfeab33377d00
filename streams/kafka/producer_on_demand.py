"""A producer for those who seldom write: it connects with the first record, and anew after it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from models.errors import DeliveryFailed
from streams.kafka.producer import Producer, Record, acknowledged
from streams.settings import Settings


class ProducerOnDemand:
    """Writes to the log of a cluster that may be away when its owner starts.

    Args:
        settings: Which cluster.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: Producer | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether something was written, and nothing failed since."""
        return self._producer is not None

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
        try:
            producer = await self._connected()
            partition = await producer.partition_of(topic, key)
            return await acknowledged(await producer.write(topic, partition, records))
        except Exception as error:
            await self.close()  # a producer that failed once may be unfit for ever
            if isinstance(error, DeliveryFailed):
                raise
            reason = repr(error) if isinstance(error, KafkaError) else type(error).__name__
            raise DeliveryFailed(f"cannot write to {topic}: {reason}") from error

    async def close(self) -> None:
        """Disconnect; a later record connects again."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _connected(self) -> Producer:
        async with self._connecting:
            if self._producer is None:
                producer = Producer(self._settings)
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer
