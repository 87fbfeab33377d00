"""State of the partitions of this worker: written through to a changelog, and rebuilt from it.

An entity (a session) consists of a few parts of bytes. A write goes to the changelog first, all changes of a fold in
one record batch, and into the table once acknowledged: after a crash all of it exists or nothing, and the table never
has data that a crash would lose. Tables are in memory or, for larger state, in RocksDB (`state.store`).

Recovery reads the changelog to its end, in batches, with progress and a time limit.

An existing table continues from its `applied` (see `streams.state.changelog`), unless it may be of another changelog or
may have missed deletions: then it is dropped and read again.

| finding | meaning |
|---|---|
| `applied` is outside the changelog | the topic was recreated, or records were deleted |
| another record at the table's tail | the same, and the topic has grown since |
| not current for `state.max_age` | deletions may be missing: a broker keeps tombstones for `delete.retention.ms` |
| current in the future, by as much | a clock jumped: its age is unknown |
| not current since a key was erased | it may have data of that key |

The end is reached by position, not by the last record, which may be a transaction marker or removed by compaction.
While no record arrives, the end is requested again: a recreated topic is read from its start; any other case fails with
a message after `kafka.recovery_silence`.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from time import monotonic

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from models.errors import Fenced, RecoveryFailed
from streams.encryption.keyring import Sealer
from streams.kafka.client import consumer
from streams.kafka.producer import Producer, acknowledged
from streams.kafka.records import uncollected
from streams.observe.telemetry import metrics
from streams.settings import KafkaSettings, Settings
from streams.state.changelog import ChangelogReplay, Changes, keyed, name_of, records_of, tail_of
from streams.state.memory import MemoryTable
from streams.state.partition import PartitionTable, Parts, TableProgress

log = structlog.get_logger(__name__)

POLL_RECORDS = 20_000
PROGRESS_EVERY_S = 2.0
_CLOCKS_DIFFER_S = 60.0
_FETCH_BYTES = 16 * 1024 * 1024
_POLL_MS = 1_000


class Outdated(Exception):  # noqa: N818 - it says what is so
    """Tables of these partitions are of another changelog: drop and reread them. Internal to this package."""

    def __init__(self, numbers: Sequence[int], reason: str) -> None:
        super().__init__(reason)
        self.numbers = numbers


class RecoveryProgress:
    """Progress of a recovery, for the log, metrics and readiness."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._began_s = self._logged_s = monotonic()
        self.total = self.done = self.records = 0

    def begin(self, total: int) -> None:
        """Set the number of changelog positions to read."""
        self.total, self.done = total, 0
        metrics.gauge("recovery_remaining_records").set(total)

    def note(self, records: int, remaining: int) -> None:
        """Record applied records and remaining positions; writes to the log at most every `PROGRESS_EVERY_S`."""
        self.records += records
        self.done = self.total - remaining
        metrics.counter("recovery_records_total").inc(records)
        metrics.gauge("recovery_remaining_records").set(remaining)
        now_s = monotonic()
        if now_s - self._logged_s >= PROGRESS_EVERY_S:
            self._logged_s = now_s
            log.info(
                "recovery_progress",
                topic=self._topic,
                records=self.done,
                total=self.total,
                per_cent=self.per_cent,
                records_per_s=round(self.records / (now_s - self._began_s)),
            )

    @property
    def seconds(self) -> float:
        """Seconds since the recovery began."""
        return monotonic() - self._began_s

    @property
    def per_cent(self) -> int:
        """Per cent of positions read; 100 without any."""
        return 100 * self.done // self.total if self.total else 100

    def __str__(self) -> str:
        return f"recovering {self._topic}: {self.done:,} of {self.total:,} records ({self.per_cent} %)"


class Recovery:
    """Recovers partitions of one changelog."""

    def __init__(self, kafka: KafkaSettings, topic: str, max_age: timedelta, sealer: Sealer | None = None) -> None:
        self._kafka = kafka
        self._topic = topic
        self._max_age_ms = round(max_age.total_seconds() * 1000)
        erased_at = [key.erased_at.timestamp() for key in (sealer.erased if sealer else ())]
        self._erased_ms = round((max(erased_at) + _CLOCKS_DIFFER_S) * 1000) if erased_at else 0
        self.progress = RecoveryProgress(topic)

    async def run(self, tables: Mapping[int, PartitionTable]) -> dict[int, set[bytes]]:
        """Apply the changelog beyond the tables; returns the keys whose last record is stale, by partition.

        Raises:
            Outdated: Tables are of another changelog.
            RecoveryFailed: No record arrives, or a record is foreign.
            StoreUnavailable: Kafka does not answer.
        """
        places = {number: TopicPartition(self._topic, number) for number in tables}
        async with consumer(
            self._kafka,
            auto_offset_reset="none",
            max_partition_fetch_bytes=_FETCH_BYTES,
            fetch_max_bytes=4 * _FETCH_BYTES,
            max_poll_records=POLL_RECORDS,
        ) as client:
            client.assign(list(places.values()))
            now_ms, assigned = _now_ms(), list(places.values())
            starts, ends = await client.beginning_offsets(assigned), await client.end_offsets(assigned)
            self._check(tables, {n: (starts[tp], ends[tp]) for n, tp in places.items()}, now_ms)
            replays = {}
            for number, tp in places.items():
                progress = tables[number].progress
                client.seek(tp, progress.tail.position if progress.tail else starts[tp])
                replays[tp] = ChangelogReplay(tables[number])
            try:
                with uncollected():
                    await self._read(client, replays, ends)
            except OffsetOutOfRangeError as error:
                raise Outdated(list(places), "the changelog was cut while it was read") from error
        for tp, replay in replays.items():
            progress = replay.table.progress
            replay.table.apply({}, offset=progress.offset, applied=ends[tp], tail=progress.tail, now_ms=now_ms)
        return {tp.partition: replay.overruled for tp, replay in replays.items()}

    def _check(self, tables: Mapping[int, PartitionTable], extents: dict[int, tuple[int, int]], now_ms: int) -> None:
        outside, old, erased = [], [], []
        for number, table in tables.items():
            progress, (start, end) = table.progress, extents[number]
            if progress == TableProgress():
                continue
            if not start <= progress.applied <= end or (progress.tail and progress.tail.position < start):
                outside.append(number)
            elif abs(now_ms - progress.current_ms) > self._max_age_ms:
                old.append(number)
            elif progress.current_ms < self._erased_ms:
                erased.append(number)
        if outside:
            raise Outdated(outside, "the changelog was made anew or cut")
        if old:
            raise Outdated(old, "not current for state.max_age: deletions may have been missed")
        if erased:
            raise Outdated(erased, "a key was erased since")

    async def _read(
        self,
        client: AIOKafkaConsumer,
        replays: Mapping[TopicPartition, ChangelogReplay],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        remaining = await _remaining(client, ends)
        self.progress.begin(sum(remaining.values()))
        last_s = monotonic()
        while remaining:
            polled = await client.getmany(*remaining, timeout_ms=_POLL_MS, max_records=POLL_RECORDS)
            now_ms = _now_ms()
            for tp, records in polled.items():
                fresh = _beyond_tail(replays[tp].table.progress, tp, records)
                if fresh:
                    replays[tp].apply(fresh, now_ms=now_ms)
            before, remaining = remaining, await _remaining(client, ends)
            self.progress.note(sum(map(len, polled.values())), sum(remaining.values()))
            if remaining != before:
                last_s = monotonic()
            elif not polled:
                await self._bear_silence(client, remaining, ends, monotonic() - last_s)

    async def _bear_silence(
        self,
        client: AIOKafkaConsumer,
        remaining: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        silent_s: float,
    ) -> None:
        try:
            now = await client.end_offsets(list(remaining))
        except KafkaError:
            now = ends
        cut = [tp.partition for tp in remaining if now[tp] < ends[tp]]
        if cut:
            raise Outdated(cut, "the changelog was made anew while it was read")
        limit_s = self._kafka.recovery_silence.total_seconds()
        if silent_s > limit_s:
            left = ", ".join(f"{tp.partition} ({count:,} records left)" for tp, count in remaining.items())
            raise RecoveryFailed(
                f"changelog {self._topic} returned nothing for {limit_s:g} s, partitions {left}: check the brokers and "
                "the topic with `turntide doctor` and `turntide topics check`, then restart the worker"
            )


async def _remaining(client: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    left = {tp: end - await client.position(tp) for tp, end in ends.items()}
    return {tp: count for tp, count in left.items() if count > 0}


def _beyond_tail(
    progress: TableProgress, tp: TopicPartition, records: Sequence[ConsumerRecord]
) -> Sequence[ConsumerRecord]:
    """Records beyond the table; its own last one is read only for comparison."""
    if not progress.tail or records[0].offset >= progress.applied:
        return records
    if tail_of(records[0].offset, records[0]) != progress.tail:
        raise Outdated([tp.partition], "the changelog was made anew: another record stands at the table's tail")
    return records[1:]


def _now_ms() -> int:
    return round(time.time() * 1000)


class StateTable:
    """Parts of all entities on this worker's partitions; without a producer read-only, in memory."""

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
        """Entities of each owned partition."""
        return [table.entities for table in self._partitions.values()]

    @property
    def recovering(self) -> str | None:
        """Progress of a running recovery in a sentence; None without one."""
        return None if self._recovering is None else str(self._recovering)

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Release partitions that moved to another worker."""
        for number in self._partitions.keys() - set(numbers):
            self._partitions.pop(number).close()
            metrics.forget_partition(number)

    def close(self) -> None:
        """Release all partitions."""
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
                f"changelog {self._topic}[{number}] has records of another worker at {table.progress.applied}: "
                "this worker was replaced; it stops, and recovers when restarted"
            )
        applied = first + len(records)
        tail = tail_of(applied - 1, records[-1])
        table.apply(parts, offset=offset, applied=applied, tail=tail, now_ms=round(time.time() * 1000))
        if erased:
            await self._forget(number, changes)
        return sum([record.size_bytes for record in records])

    async def recover(self, numbers: Iterable[int]) -> None:
        """Make these partitions current, from existing tables if they are valid, else from the start; release others.

        Raises:
            RecoveryFailed: The changelog yields no record for too long, or has foreign records.
            DeliveryFailed: Values overwritten by a stale write could not be written again.
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
        """Drop tables of partitions that other workers own now: data erased there must not stay here."""
        if self._settings.state.store == "rocksdb" and self._producer is not None:
            from streams.state.rocksdb import drop_outdated  # noqa: PLC0415 - extra `rocksdb`

            parent, max_age = self._folder(0).parent, self._settings.state.max_age
            await asyncio.to_thread(drop_outdated, parent, max_age, now_s=time.time())

    async def _pass(self, recovery: Recovery) -> bool:
        """Read to the end once; returns whether another pass is needed: tables were dropped, or the log repaired."""
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
        """Rewrite values that a stale record overwrote, since compaction keeps the last record of a key."""
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
