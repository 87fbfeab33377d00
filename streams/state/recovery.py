"""Brings tables up to the end of their changelog: in batches, with progress, and never silently for ever.

A table that stands goes on from its `applied` (why that is right: `streams.state.changelog`), unless it may not be
of this changelog or may have missed deletions: then it is dropped and read anew.

| what is found | what it means |
|---|---|
| `applied` outside the changelog | the topic was made anew, or records were deleted |
| another record at the table's tail | the same, and it has grown since |
| not current for `state.max_age` | deletions may be gone: a broker keeps tombstones for `delete.retention.ms` |
| current in the future, by as much | a clock jumped: how old it is cannot be told |
| not current since a key was erased | it may hold what that key opened |

The end is reached by position, not by the last record: what stands there may be a transaction marker or have been
removed by compaction. While nothing comes, the end is asked for again: a topic that was made anew meanwhile is read
from its start; anything else fails after `kafka.recovery_silence` with a message.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import monotonic

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from models.errors import RecoveryFailed
from streams.encryption.keyring import Sealer
from streams.kafka.client import consumer
from streams.kafka.records import uncollected
from streams.observe.telemetry import metrics
from streams.settings import KafkaSettings
from streams.state.changelog import ChangelogReplay, tail_of
from streams.state.partition import PartitionTable, TableProgress

log = structlog.get_logger(__name__)

POLL_RECORDS = 20_000
PROGRESS_EVERY_S = 2.0
_CLOCKS_DIFFER_S = 60.0
_FETCH_BYTES = 16 * 1024 * 1024
_POLL_MS = 1_000


class Outdated(Exception):  # noqa: N818 - it says what is so
    """Tables of these partitions are not of this changelog: drop them and begin again. Never leaves this package."""

    def __init__(self, numbers: Sequence[int], reason: str) -> None:
        super().__init__(reason)
        self.numbers = numbers


class RecoveryProgress:
    """How far a recovery is, for the log, metrics and readiness."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._began_s = self._logged_s = monotonic()
        self.total = self.done = self.records = 0

    def begin(self, total: int) -> None:
        """Note how many changelog positions lie ahead."""
        self.total, self.done = total, 0
        metrics.gauge("recovery_remaining_records").set(total)

    def note(self, records: int, remaining: int) -> None:
        """Note records applied and positions left; tells the log at most every `PROGRESS_EVERY_S`."""
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
        """Since the recovery began."""
        return monotonic() - self._began_s

    @property
    def per_cent(self) -> int:
        """Of the positions; 100 where there are none."""
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
        """Apply what the changelog holds beyond the tables; gives keys whose last record is stale, by partition.

        Raises:
            Outdated: Tables are not of this changelog.
            RecoveryFailed: Nothing comes, or a record is none of ours.
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
                f"changelog {self._topic} gave nothing for {limit_s:g} s, partitions {left}: check the brokers and the "
                "topic with `turntide doctor` and `turntide topics check`, then start the worker again"
            )


async def _remaining(client: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    left = {tp: end - await client.position(tp) for tp, end in ends.items()}
    return {tp: count for tp, count in left.items() if count > 0}


def _beyond_tail(
    progress: TableProgress, tp: TopicPartition, records: Sequence[ConsumerRecord]
) -> Sequence[ConsumerRecord]:
    """The records that the table does not have; its own last one is read again only to be compared."""
    if not progress.tail or records[0].offset >= progress.applied:
        return records
    if tail_of(records[0].offset, records[0]) != progress.tail:
        raise Outdated([tp.partition], "the changelog was made anew: another record stands at the table's tail")
    return records[1:]


def _now_ms() -> int:
    return round(time.time() * 1000)
