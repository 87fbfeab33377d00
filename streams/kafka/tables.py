"""State of the partitions this worker owns, in memory, rebuilt from a compacted changelog.

An entity (a session) is a few parts of bytes. A write goes to the changelog first, all changes of a fold in one
record batch, and into memory once acknowledged: a crash leaves all of it or nothing, and memory never holds what a
crash would lose. Every value begins with the source offset of the last input folded in: should a worker that slept
through its session time-out still write, recovery keeps the value with the higher offset (design §5.8).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from models.errors import Fenced, RecoveryFailed
from streams.kafka.client import client_options
from streams.kafka.producer import Producer, Record
from streams.settings import Settings
from streams.telemetry import metrics

log = structlog.get_logger(__name__)

Parts = dict[str, bytes]
Changes = Mapping[str, Mapping[str, bytes | None]]
"""Entity → part → new bytes, None to delete."""

_SEPARATOR = "\x1f"
_OFFSET = struct.Struct(">q")
_OFFSET_HEADER = "offset"
RECOVERY_SILENCE_S = 60.0
"""Recovery fails when the changelog yields nothing for this long (hazards 13)."""
_POLL_RECORDS = 20_000


class PartitionTable:
    """Entities of one partition."""

    def __init__(self) -> None:
        self.entities: dict[str, Parts] = {}
        self.applied = 0
        """Next changelog offset to apply; what lies below is in memory."""
        self.bytes = 0

    def put(self, entity: str, changed: Mapping[str, bytes | None]) -> None:
        """Set and delete parts; an entity without parts is gone."""
        parts = self.entities.setdefault(entity, {})
        for part, value in changed.items():
            old = parts.pop(part, None)
            if old is not None:
                self.bytes -= len(old)
            if value is not None:
                parts[part] = value
                self.bytes += len(value)
        if not parts:
            del self.entities[entity]


class StateTable:
    """Parts of all entities on the partitions of this worker."""

    def __init__(self, settings: Settings, topic: str, producer: Producer) -> None:
        self._settings = settings
        self._topic = topic
        self._producer = producer
        self._partitions: dict[int, PartitionTable] = {}

    def partition(self, number: int) -> PartitionTable:
        """The table of one recovered partition."""
        return self._partitions[number]

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Release partitions that moved to another worker."""
        kept = set(numbers)
        for number in self._partitions.keys() - kept:
            del self._partitions[number]
            metrics.forget_partition(number)

    async def write(self, number: int, offset: int, changes: Changes) -> int:
        """Write through: changelog acknowledged first, then memory.

        Args:
            number: The partition.
            offset: Source offset of the last input folded in.
            changes: What changed.

        Returns:
            Bytes written to the changelog.

        Raises:
            DeliveryFailed: Not acknowledged; memory is unchanged.
            Fenced: Another worker wrote to this partition's changelog meanwhile.
        """
        table = self._partitions[number]
        records = [record for entity, parts in changes.items() for record in _records(entity, parts, offset)]
        if not records:
            return 0
        first = await self._producer.write_whole(self._topic, number, records)
        if first != table.applied:
            raise Fenced(
                f"changelog {self._topic}[{number}] holds records of another worker at {table.applied}: "
                "this worker was replaced; it stops and recovers when it is started again"
            )
        table.applied += len(records)
        for entity, parts in changes.items():
            table.put(entity, parts)
        return sum(record.size_bytes for record in records)

    async def recover(self, numbers: Iterable[int]) -> None:
        """Make the given partitions current: kept where nobody else wrote, else read anew from the changelog.

        Args:
            numbers: Partitions; others are released.

        Raises:
            RecoveryFailed: The changelog yields nothing for too long.
        """
        wanted = set(numbers)
        self.keep_only(wanted)
        if not wanted:
            return
        consumer = AIOKafkaConsumer(
            **client_options(self._settings.kafka),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=16 * 1024 * 1024,
            max_poll_records=_POLL_RECORDS,
        )
        try:
            await consumer.start()
            await self._replay(consumer, wanted)
        finally:
            await consumer.stop()

    async def _replay(self, consumer: AIOKafkaConsumer, wanted: set[int]) -> None:
        places = {number: TopicPartition(self._topic, number) for number in wanted}
        consumer.assign(list(places.values()))
        ends = await consumer.end_offsets(list(places.values()))
        replays = {}
        for number, tp in places.items():
            table = self._partitions.get(number)
            if table is None or table.applied != ends[tp]:
                # What another worker wrote may be a zombie's, older than memory: only the whole log tells.
                table = self._partitions[number] = PartitionTable()
            consumer.seek(tp, table.applied)
            replays[tp] = Replay(table)
        started_s = last_s = monotonic()
        applied = 0
        while behind := [tp for tp in replays if await consumer.position(tp) < ends[tp]]:
            polled = await consumer.getmany(*behind, timeout_ms=1000, max_records=_POLL_RECORDS)
            for tp, records in polled.items():
                applied += len(records)
                replays[tp].apply(records)
            if polled:
                last_s = monotonic()
            elif monotonic() - last_s > RECOVERY_SILENCE_S:
                raise RecoveryFailed(
                    f"changelog {self._topic} gave nothing for {RECOVERY_SILENCE_S:.0f} s at {behind}: "
                    "check the topic with `turntide topics check`, then start the worker again"
                )
        for tp, replay in replays.items():
            replay.table.applied = ends[tp]
        metrics.counter("recovery_records_total").inc(applied)
        metrics.histogram("recovery_seconds").observe(monotonic() - started_s)


class Replay:
    """Applies changelog records to one partition's table; per key the higher source offset wins."""

    def __init__(self, table: PartitionTable) -> None:
        self.table = table
        self._offsets: dict[bytes, int] = {}

    def apply(self, records: Iterable[Any]) -> None:
        """Apply records in log order. Records need `key`, `value` and `headers`."""
        offsets, put = self._offsets, self.table.put
        for record in records:
            key, value = record.key, record.value
            if value is None:
                offset = next((_OFFSET.unpack(v)[0] for name, v in record.headers if name == _OFFSET_HEADER), -1)
            else:
                offset = _OFFSET.unpack_from(value)[0]
            if offset < offsets.get(key, -1):
                continue
            offsets[key] = offset
            entity, _, part = key.decode().partition(_SEPARATOR)
            put(entity, {part: None if value is None else value[_OFFSET.size :]})


def _records(entity: str, parts: Mapping[str, bytes | None], offset: int) -> list[Record]:
    prefix = _OFFSET.pack(offset)
    return [
        Record(f"{entity}{_SEPARATOR}{part}".encode(), None, ((_OFFSET_HEADER, prefix),))
        if value is None
        else Record(f"{entity}{_SEPARATOR}{part}".encode(), prefix + value)
        for part, value in parts.items()
    ]
