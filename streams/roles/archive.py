"""Role archive: every public topic into Parquet, each record once.

A plain consumer, no Faust agent. Kafka's group assigns partitions and shows the lag; where to read on is in the
archive's own catalog, in the same transaction as the rows (`streams.archive.writer`). So there are only three rules:

* after an assignment, read from the catalog's `next` of each partition;
* take records only where they continue: what is below `next` is dropped, what leaves a hole is read again, and only a
  hole that is still there the second time is the log's own (compaction, transactions, retention) and noted as such;
* a landing that finds another `next` than it started from was overtaken by another owner: drop the buffer, read the
  offsets again.

Beside landing, the worker that has the first partition of `erasures.v1` carries out erasures (`streams.erase`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from time import monotonic

import structlog
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from models.entities import REGISTRY
from models.errors import ConfigurationError, Fenced, StoreUnavailable
from models.events.topics import Topic
from models.policy import IntakePolicy, Policy
from models.wire.trace_context import NO_TRACES
from streams.archive.buffer import UNLANDABLE, LandingBuffer, Move, hole
from streams.archive.catalog import paths_of
from streams.archive.iceberg.withdraw import withdraw
from streams.archive.landed import land_all, without_bytes
from streams.archive.maintenance import ArchiveUpkeep
from streams.archive.removal import FOLDER
from streams.archive.rows import seal_rows
from streams.archive.schema import ABSENT, EXPIRED
from streams.archive.writer import LakeWriter
from streams.encryption.keyring import sealer_of
from streams.erase.archive import WriterArchive
from streams.erase.executor import Executor
from streams.http.health import serving
from streams.kafka.client import OpeningConsumer, reader_options, require_topic
from streams.kafka.ledger import Ledger
from streams.kafka.watchdog import LogEnds, PartitionProgress, Watchdog, unread_ends, watched
from streams.masking.records import RecordMasker, masker_of
from streams.observe.telemetry import metrics, stage
from streams.observe.tracing import tracing
from streams.roles.archive_shown import Lags, count_landed, count_polled, tell_skipped
from streams.settings import Settings

log = structlog.get_logger(__name__)

_POLL_MS = 250
_FETCH_BYTES = 256 * 1024
"""Waited for at the broker, half a second at most: who lands seconds later needs them no sooner."""
_MAX_POLL_INTERVAL_MS = 60 * 60 * 1000
"""An erasure writes files anew, and nothing is polled meanwhile; what stands still is the watchdog's matter."""

_REBALANCE_TIMEOUT_MS = 2 * 60 * 1000
"""A member that lands before it lets go is waited for; one that died is out after the session's time-out."""
_STOP_WITHIN_S = 30.0
"""For leaving the group; whoever is cut off there is out after the session's time-out."""


async def run(settings: Settings, policy: Policy, *, stop: asyncio.Event) -> None:
    """Archive until `stop` is set, then land what is buffered.

    Raises:
        ConfigurationError: A topic does not exist, or the archive does not belong to these topics.
        StoreUnavailable: Kafka or the archive's disk do not serve; nothing half-written is left.
    """
    topics = {topic.full_name(settings.topic_prefix): topic for topic in REGISTRY.archived_topics}
    for name in topics:
        await require_topic(settings.kafka, name)
    async with AsyncExitStack() as stack:
        writer = await asyncio.to_thread(LakeWriter, paths_of(settings))
        stack.push_async_callback(asyncio.to_thread, writer.close)
        watchdog = Watchdog(settings.kafka.stall_after + settings.archive.flush_age)  # rows wait for so long in order
        mask = masker_of(policy.masking, personal=policy.masking.at_archive)
        archivist = Archivist(settings, topics, policy.intake, writer, stir=watchdog.stir, mask=mask)
        http, states = settings.http, {"ready": archivist.ready, "alive": watchdog.alive}
        await stack.enter_async_context(serving("archive", http.archive_port, http, **states))
        await watched(archivist.run(stop), watchdog, archivist.progress)


class Archivist(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reads the partitions it is assigned and lands them."""

    def __init__(
        self,
        settings: Settings,
        topics: dict[str, Topic],
        intake: IntakePolicy,
        writer: LakeWriter,
        *,
        stir: Callable[[], None] = lambda: None,
        mask: RecordMasker | None = None,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._intake = intake
        self._writer = writer
        self._mask = mask
        self._sealer = sealer_of(settings)
        self._consumer = OpeningConsumer(
            **reader_options(settings.kafka),
            group_id=f"{settings.topic_prefix}.archive",
            group_instance_id=f"{settings.worker_id}.archive" if settings.worker_id else None,
            auto_offset_reset="earliest",
            session_timeout_ms=int(settings.kafka.session_timeout.total_seconds() * 1000),
            heartbeat_interval_ms=int(settings.kafka.heartbeat_interval.total_seconds() * 1000),
            max_poll_interval_ms=_MAX_POLL_INTERVAL_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            fetch_min_bytes=_FETCH_BYTES,
        )
        self._buffer = LandingBuffer()
        self._oldest_s: float | None = None
        self._taken: Ledger[TopicPartition] = Ledger(gap_after_seeks=1)
        self._landed: dict[TopicPartition, Move] = {}
        """The owned partitions, as the catalog has them."""
        self._lags = Lags(self._consumer, self._landed, topics, self._taken.processed)
        self._one_at_a_time = asyncio.Lock()
        mined = settings.data_dir / FOLDER
        withdrawn = partial(withdraw, settings)
        self._erasures = Executor(settings, intake, WriterArchive(writer, self._one_at_a_time, stir, mined, withdrawn))
        self._assigned = asyncio.Event()
        self._stop = asyncio.Event()
        self._is_revoked = False
        self._failure: Exception | None = None
        self._upkeep = ArchiveUpkeep(writer, settings.archive)
        self._log_ends = LogEnds(partial(unread_ends, self._consumer))

    def ready(self) -> tuple[bool, str]:
        """Whether partitions are assigned and landing goes on, and if not why."""
        if self._failure is not None:
            return False, "the role failed and is stopping"
        if not self._assigned.is_set():
            return False, "waiting for partitions"
        return True, "ready"

    async def progress(self) -> dict[str, PartitionProgress] | None:
        """How far each partition is landed; None while none are assigned."""
        if not self._assigned.is_set():
            return None
        ends, taken = await self._log_ends.known(), self._taken
        return {
            f"{p.topic}-{p.partition}": PartitionProgress(move.next, max(taken.processed(p) or 0, ends.get(p, 0)))
            for p, move in self._landed.items()
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Read and land until `stop`."""
        self._stop = stop
        self._consumer.subscribe(list(self._topics), listener=self)
        try:
            await self._consumer.start()
            while not stop.is_set():
                await self._round()
            await self._erasures.stop()
            async with self._one_at_a_time:
                await self._land()
        except KafkaError as error:
            raise StoreUnavailable(
                f"archive: Kafka at {self._settings.kafka.bootstrap} fails ({type(error).__name__}). "
                "Landed data is kept; when restarted, the role continues from there."
            ) from error
        finally:
            await self._erasures.stop()
            await self._leave()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                await self._consumer.stop()
        except TimeoutError:
            log.warning("archive_left_without_goodbye", within_s=_STOP_WITHIN_S)

    def _is_urgent(self) -> bool:
        """Whether a stop or a revocation waits: maintenance is for later then."""
        return self._stop.is_set() or self._is_revoked

    async def _round(self) -> None:
        polled = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=self._settings.kafka.max_poll_records)
        if self._failure is not None:
            raise self._failure
        landed: dict[TopicPartition, Move] = {}
        async with self._one_at_a_time:
            for partition, records in polled.items():
                await self._take(partition, records)
            count_polled(polled, self._landed)
            if self._is_due():
                landed = await self._land()
            await self._upkeep.maintain(self._is_urgent)
        await self._commit_offsets(landed)
        await self._lags.show()
        metrics.gauge("ready").set(self.ready()[0])

    # --- taking

    async def _take(self, place: TopicPartition, fetched: Sequence[ConsumerRecord]) -> None:
        admission, expected = self._taken.admit(place, fetched), self._taken.processed(place)
        if admission.seek_to is not None:
            self._consumer.seek(place, admission.seek_to)
        records = admission.records
        if not records or expected is None:
            return
        next_offset = expected
        if records[0].offset > expected:
            next_offset = await self._expired(place, expected, records[0].offset)
        for record in records:
            if record.offset > next_offset:
                self._buffer.skip(hole(place, next_offset, record.offset - 1, ABSENT))
            next_offset = record.offset + 1
        topic = self._topics[place.topic]
        if self._mask is not None:
            records = self._mask.records(topic, records)
        landing = land_all(topic, place.topic, records, self._intake)
        if self._sealer is not None:
            self._sealer.refresh()
            seal_rows(place.topic, landing.rows, self._sealer)
        self._buffer.take(landing.rows)
        is_masked = self._sealer is not None or (self._mask is not None and self._mask.personal)
        self._buffer.skip_all(map(without_bytes, landing.skipped) if is_masked else landing.skipped)
        tell_skipped(landing.skipped, self._topics)
        self._taken.advance(place, expected=expected, processed=next_offset)
        self._buffer.moves[place] = self._landed[place]._replace(next=next_offset)
        if self._oldest_s is None:
            self._oldest_s = monotonic()

    async def _expired(self, place: TopicPartition, next_offset: int, first: int) -> int:
        """Note what retention removed before it was archived; returns where the log goes on."""
        start: int = min((await self._consumer.beginning_offsets([place]))[place], first)
        if start <= next_offset:
            return next_offset
        log.error(
            "archive_lost_to_retention", topic=place.topic, partition=place.partition, first=next_offset, last=start - 1
        )
        self._buffer.skip(hole(place, next_offset, start - 1, EXPIRED))
        return start

    # --- landing

    def _is_due(self) -> bool:
        wanted = self._settings.archive
        return self._oldest_s is not None and (
            self._buffer.records >= wanted.flush_rows
            or self._buffer.bytes >= wanted.flush_bytes
            or monotonic() - self._oldest_s >= wanted.flush_age.total_seconds()
        )

    async def _land(self) -> dict[TopicPartition, Move]:
        """Land the buffer; returns the partitions that moved. Call with the lock held."""
        buffer, self._buffer, self._oldest_s = self._buffer, LandingBuffer(), None
        if not buffer.moves:
            return {}
        try:
            with tracing.batch({"buffer": range(buffer.records)}, NO_TRACES), stage("land"):
                landed = await asyncio.to_thread(self._writer.land, buffer, now=datetime.now(UTC))
        except Fenced as error:
            log.warning("archive_fenced", error=str(error))
            await self._seek_to_catalog(list(self._landed))
            return {}
        count_landed(landed, buffer.moves, self._topics)
        tell_skipped((row for row in buffer.skipped if row.reason == UNLANDABLE), self._topics)
        for place, move in buffer.moves.items():
            if place in self._landed:
                self._landed[place] = move.landed
        log.debug("archive_landed", records=buffer.records, partitions=len(buffer.moves))
        return buffer.moves

    async def _commit_offsets(self, landed: dict[TopicPartition, Move]) -> None:
        """Commit to Kafka for those who watch the lag; nothing of ours reads it."""
        if not landed:
            return
        owned = {p: move.next for p, move in landed.items() if p in self._landed}
        with suppress(KafkaError):
            await self._consumer.commit(owned)

    # --- rebalances

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Land what is buffered, so that the next owner need not read it again."""
        self._is_revoked = True
        await self._erasures.stop()
        async with self._one_at_a_time:
            self._assigned.clear()
            try:
                await self._land()
            except Exception as error:  # noqa: BLE001 - aiokafka would log it and go on
                self._failure = error
            self._own_nothing()
            for number in {partition.partition for partition in revoked}:
                metrics.forget_partition(number)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Read on where the catalog stands."""
        async with self._one_at_a_time:
            self._is_revoked = False
            try:
                await self._seek_to_catalog([*assigned])
            except Exception as error:  # noqa: BLE001 - aiokafka would log it and go on
                self._failure = error
            else:
                self._assigned.set()
        if self._erasures.is_answered_by(assigned):
            self._erasures.start()

    def _own_nothing(self) -> None:
        self._taken.forget()
        self._landed.clear()

    async def _seek_to_catalog(self, places: Sequence[TopicPartition]) -> None:
        known = await asyncio.to_thread(self._writer.offsets)
        starts = await self._consumer.beginning_offsets([*places])
        ends = await self._consumer.end_offsets([*places])
        self._buffer, self._oldest_s = LandingBuffer(), None
        self._own_nothing()
        for place in places:
            start = starts[place]
            move = known.get(place, Move(None, start, start))
            if move.next > ends[place]:
                raise ConfigurationError(
                    f"the archive {self._writer.paths.shown} has {place.topic}-{place.partition} up to offset "
                    f"{move.next}, but the topic ends at {ends[place]}: it was recreated, or is on another cluster. "
                    "Set TURNTIDE_ARCHIVE__CATALOG and TURNTIDE_ARCHIVE__DATA_PATH to a new place."
                )
            self._taken.know(place, move.next)
            self._landed[place] = move
            self._consumer.seek(place, move.next)
        log.info("archive_assigned", partitions=len(places))
