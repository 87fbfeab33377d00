"""State of the partitions this worker owns: written through to a changelog, rebuilt from it.

An entity (a session) is a few parts of bytes. A write goes to the changelog first, all changes of a fold in one
record batch, and into the table once acknowledged: a crash leaves all of it or nothing, and the table never holds
what a crash would lose. Tables live in memory or, for state larger than that, in RocksDB (`state.store`).
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from time import monotonic

import structlog

from models.errors import Fenced
from streams.kafka.producer import Producer, acknowledged
from streams.observe.telemetry import metrics
from streams.settings import Settings
from streams.state.changelog import Changes, keyed, name_of, records_of, tail_of
from streams.state.memory import MemoryTable
from streams.state.partition import PartitionTable, Parts
from streams.state.recovery import Outdated, Recovery, RecoveryProgress

log = structlog.get_logger(__name__)


class StateTable:
    """Parts of all entities on this worker's partitions; without a producer it only reads, into memory."""

    def __init__(self, settings: Settings, topic: str, producer: Producer | None) -> None:
        self._settings = settings
        self._topic = topic
        self._producer = producer
        sealing = None if producer is None else producer.sealing
        self._sealer = None if sealing is None else sealing.sealer
        self._partitions: dict[int, PartitionTable] = {}
        self._recovering: RecoveryProgress | None = None

    def partition(self, number: int) -> PartitionTable:
        """The table of one recovered partition."""
        return self._partitions[number]

    def owned(self) -> list[Mapping[str, Parts]]:
        """Entities of each partition that is here."""
        return [table.entities for table in self._partitions.values()]

    @property
    def recovering(self) -> str | None:
        """How far a running recovery is, in a sentence; None while there is none."""
        return None if self._recovering is None else str(self._recovering)

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Release partitions that moved to another worker."""
        for number in self._partitions.keys() - set(numbers):
            self._partitions.pop(number).close()
            metrics.forget_partition(number)

    def close(self) -> None:
        """Release all of them."""
        self.keep_only(())

    async def write(self, number: int, offset: int, changes: Changes, *, erased: bool = False) -> int:
        """Write changes through: changelog acknowledged first, then the table; returns the bytes written.

        Raises:
            DeliveryFailed: Not acknowledged; the table is unchanged.
            Fenced: Another worker wrote to this partition's changelog meanwhile.
        """
        if self._producer is None:
            raise Fenced(f"changelog {self._topic} is open for reading only")
        table = self._partitions[number]
        parts = keyed(changes)
        records = records_of(parts, offset, self._sealer)
        if not records:
            return 0
        first = await self._producer.write_whole(self._topic, number, records)
        if first != table.progress.applied:
            raise Fenced(
                f"changelog {self._topic}[{number}] holds records of another worker at {table.progress.applied}: "
                "this worker was replaced; it stops and recovers when it is started again"
            )
        applied = first + len(records)
        tail = tail_of(applied - 1, records[-1])
        table.apply(parts, offset=offset, applied=applied, tail=tail, now_ms=round(time.time() * 1000))
        if erased:
            await self._forget(number, changes)
        return sum(record.size_bytes for record in records)

    async def recover(self, numbers: Iterable[int]) -> None:
        """Make these partitions current, from where they stand if that can be trusted, else anew; release others.

        Raises:
            RecoveryFailed: The changelog yields nothing for too long, or holds what is none of ours.
            DeliveryFailed: What a stale write has overruled could not be written again.
            StoreUnavailable: Kafka does not answer.
        """
        wanted = sorted(set(numbers))
        self.keep_only(wanted)
        for number in wanted:
            if number not in self._partitions:
                self._partitions[number] = self._open(number)
        if not wanted:
            return
        recovery = Recovery(self._settings.kafka, self._topic, self._settings.state.max_age, self._sealer)
        self._recovering = recovery.progress
        try:
            while await self._pass(recovery):
                pass
            for number in wanted:
                await self._forget(number)
            await self._drop_outdated()
        finally:
            self._recovering = None
        log.info(
            "recovered",
            topic=self._topic,
            partitions=wanted,
            records=recovery.progress.records,
            seconds=round(recovery.progress.seconds, 3),
        )
        metrics.histogram("recovery_seconds").observe(recovery.progress.seconds)

    async def _forget(self, number: int, entities: Collection[str] | None = None) -> None:
        began_s = monotonic()
        await asyncio.to_thread(self._partitions[number].forget, entities)
        if entities is not None:
            log.info("state_erased", topic=self._topic, partition=number, seconds=round(monotonic() - began_s, 3))

    async def _drop_outdated(self) -> None:
        """Of partitions that other workers have by now: what is erased there must not stay here."""
        if self._settings.state.store == "rocksdb" and self._producer is not None:
            from streams.state.rocksdb import drop_outdated  # noqa: PLC0415 - extra `rocksdb`

            parent, max_age = self._folder(0).parent, self._settings.state.max_age
            await asyncio.to_thread(drop_outdated, parent, max_age, now_s=time.time())

    async def _pass(self, recovery: Recovery) -> bool:
        """Read to the end once; whether it must be read again: tables were dropped, or the changelog was mended."""
        try:
            overruled = await recovery.run(self._partitions)
        except Outdated as outdated:
            log.warning("state_dropped", topic=self._topic, partitions=outdated.numbers, reason=str(outdated))
            for number in outdated.numbers:
                self._partitions[number].drop()
                self._partitions[number] = self._open(number)
            return True
        mended = [await self._mend(number, keys) for number, keys in overruled.items() if keys]
        return any(mended)

    async def _mend(self, number: int, keys: Iterable[bytes]) -> bool:
        """Write again what a stale record overruled: compaction keeps a key's last record, whatever its offset."""
        if self._producer is None:
            return False
        table = self._partitions[number]
        entities, parts = table.entities, {}
        for key in keys:
            entity, part = name_of(key)
            parts[key] = entities.get(entity, {}).get(part)
        log.warning("stale_writes_mended", topic=self._topic, partition=number, parts=len(parts))
        records = records_of(parts, table.progress.offset, self._sealer)
        await acknowledged(await self._producer.write(self._topic, number, records))
        return True

    def _open(self, number: int) -> PartitionTable:
        state = self._settings.state
        if state.store == "memory" or self._producer is None:
            return MemoryTable()
        from streams.state.rocksdb import open_table  # noqa: PLC0415 - extra `rocksdb`

        folder = self._folder(number)
        sizes = {"cache_bytes": state.cache_bytes, "write_buffer_bytes": state.write_buffer_bytes}
        return open_table(folder, sealer=self._sealer, **sizes)

    def _folder(self, number: int) -> Path:
        return self._settings.data_dir / "state" / self._topic / str(number)
