"""Acknowledged writes: whole record batches, built here, awaited together.

Faust's producer cannot say whether a publish arrived (hazards 5 and 6). This one is idempotent, waits for all
replicas and raises. A record batch is appended by the broker as a whole or not at all, which is what keeps the parts
of one session's state consistent.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2
from aiokafka.structs import RecordMetadata

from models.errors import DeliveryFailed
from models.session.bounds import OUTPUT_RECORD_BYTES, STATE_WRITE_BYTES
from streams.encryption.records import record_sealer_of
from streams.kafka.client import client_options, why_unreachable
from streams.settings import Settings

MAX_RECORD_BATCH_BYTES = OUTPUT_RECORD_BYTES
"""Record batches of outputs stay below the broker's default limit of 1 MiB; a record is alone if it is larger."""
MAX_WHOLE_BATCH_BYTES = STATE_WRITE_BYTES
"""Record batches that must not be split stay below the state topic's limit of 8 MiB."""
_RECORD_OVERHEAD_BYTES = 40
DELIVERY_DEADLINE_MS = 90_000
"""Longer than a broker's restart: a short outage is waited out in place."""

Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """A record to write. `value` None is a tombstone.

    `partition` is where what it is about is known to stand; None: where its key belongs by Turntide's own partitioner,
    which a producer of turns need not have.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None

    @property
    def size_bytes(self) -> int:
        """Upper estimate of the bytes on the wire."""
        size = len(self.key or b"") + len(self.value or b"") + _RECORD_OVERHEAD_BYTES
        return size + sum([len(name) + len(value) + 8 for name, value in self.headers]) if self.headers else size


class Producer:
    """Idempotent producer of record batches.

    Attributes:
        sealing: Encrypts the content of records, see `streams.encryption`; None: nothing is.
    """

    def __init__(self, settings: Settings) -> None:
        self._kafka = settings.kafka
        self.sealing = record_sealer_of(settings)
        self._producer = AIOKafkaProducer(
            **client_options(settings.kafka),
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            compression_type=None if settings.kafka.compression == "none" else settings.kafka.compression,
            max_batch_size=MAX_WHOLE_BATCH_BYTES,
            max_request_size=MAX_WHOLE_BATCH_BYTES,
            request_timeout_ms=DELIVERY_DEADLINE_MS,
        )

        self._partitions: dict[str, int] = {}

    async def start(self) -> None:
        """Connect.

        Raises:
            DeliveryFailed: The cluster does not answer.
        """
        try:
            await self._producer.start()
        except KafkaError as error:
            raise DeliveryFailed(
                f"cannot reach Kafka: {self._kafka.bootstrap} {why_unreachable(self._kafka, error)} `turntide doctor` "
                "checks."
            ) from error

    async def stop(self) -> None:
        """Disconnect."""
        await self._producer.stop()

    async def partitions(self, topic: str) -> int:
        """Number of partitions of a topic."""
        return len(await self._producer.partitions_for(topic))

    async def partition_of(self, topic: str, key: bytes, known: int | None = None) -> int:
        """Where Kafka's own clients put a record with this key, so that whoever writes it keeps the key's order.

        Args:
            topic: Full name.
            key: Of the record.
            known: Where the key's records are known to stand, whoever put them there; it counts if there is such a
                partition.
        """
        if topic not in self._partitions:
            self._partitions[topic] = await self.partitions(topic)
        count = self._partitions[topic]
        return known if known is not None and known < count else _murmur2(key) % count

    async def write(self, topic: str, partition: int, records: Iterable[Record]) -> list[asyncio.Future[Any]]:
        """Queue records, in as many record batches as their size needs; give the futures to `acknowledged`."""
        pending: list[asyncio.Future[Any]] = []
        batch, size = self._producer.create_batch(), 0
        for plain in records:
            record = plain if self.sealing is None else self.sealing.sealed(topic, plain)
            record_bytes = record.size_bytes
            if size and size + record_bytes > MAX_RECORD_BATCH_BYTES:
                pending.append(await self._send(batch, topic, partition))
                batch, size = self._producer.create_batch(), 0
            _append(batch, record)
            size += record_bytes
        if size:
            pending.append(await self._send(batch, topic, partition))
        return pending

    async def write_whole(self, topic: str, partition: int, records: Sequence[Record]) -> int:
        """Write records that the broker appends together or not at all; returns the offset of the first.

        Raises:
            DeliveryFailed: Not acknowledged, or more than one record batch can hold.
        """
        batch = self._producer.create_batch()
        for record in records:
            if _append(batch, record) is None:
                raise DeliveryFailed(
                    f"{len(records)} state records for {topic}[{partition}] exceed {MAX_WHOLE_BATCH_BYTES} bytes; "
                    "lower `max_poll_records`"
                )
        (written,) = await acknowledged([await self._send(batch, topic, partition)])
        return int(written.offset)

    async def _send(self, batch: Any, topic: str, partition: int) -> asyncio.Future[Any]:
        batch.close()
        try:
            future: asyncio.Future[Any] = await self._producer.send_batch(batch, topic, partition=partition)
        except KafkaError as error:
            raise DeliveryFailed(
                f"cannot write to {topic}[{partition}]: {error!r}. Check the topic, its limits and ACLs."
            ) from error
        return future


@lru_cache(maxsize=65_536)
def _murmur2(key: bytes) -> int:
    """Kafka's hash of a key, not negative; in Python it takes a while, and the same users come again and again."""
    return int(murmur2(key)) & 0x7FFFFFFF


def _append(batch: Any, record: Record) -> Any:
    return batch.append(timestamp=None, key=record.key, value=record.value, headers=list(record.headers))


async def acknowledged(pending: Iterable[asyncio.Future[Any]]) -> list[RecordMetadata]:
    """Await the broker's acknowledgement of every batch.

    Raises:
        DeliveryFailed: Any of them was refused or timed out; what arrived is repeated later with the same ids.
    """
    try:
        return list(await asyncio.gather(*pending))
    except KafkaError as error:
        raise DeliveryFailed(
            f"the broker did not acknowledge a batch: {error!r}. Check topic limits and ACLs."
        ) from error


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
    """Writes to the log of a cluster that may be away when its owner starts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sealing = record_sealer_of(settings)
        self._connected: _Connected | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether something was written, and nothing failed since."""
        return self._connected is not None

    async def partition_of(self, topic: str, key: bytes) -> int:
        """Where a key belongs, as of `Producer`.

        Raises:
            DeliveryFailed: The cluster does not answer.
        """
        async with (await self._connect()).writing() as producer:
            return await producer.partition_of(topic, key)

    def sealed(self, topic: str, records: Sequence[Record]) -> Sequence[Record]:
        """Records as they will be written: where content is encrypted, larger."""
        if self._sealing is None:
            return records
        self._sealing.sealer.refresh()
        return [self._sealing.sealed(topic, record) for record in records]

    async def write(self, topic: str, key: bytes, records: Sequence[Record]) -> list[RecordMetadata]:
        """Write records where a key belongs; on return the log has them. Returns where each record batch begins.

        The first one says it if it is known where they stand (`Record.partition`).

        Raises:
            DeliveryFailed: The log did not confirm them. They may still be there.
        """
        connected: _Connected | None = None
        try:
            connected = await self._connect()
            async with connected.writing() as producer:
                partition = await producer.partition_of(topic, key, records[0].partition)
                return await acknowledged(await producer.write(topic, partition, self.sealed(topic, records)))
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
