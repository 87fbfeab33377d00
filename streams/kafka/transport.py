"""Faust's aiokafka transport, handing the agent one message per poll instead of one per record.

The message of batched topics holds a `Poll`: the raw records by partition and the group generation they were fetched
in, so that a role waits for the broker's acknowledgements once per poll, not once per partition. Other topics are left
as they are. What may be processed and committed is decided by `streams.kafka.ledger`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from time import monotonic
from typing import Any, NamedTuple, cast

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalStateError
from aiokafka.structs import ConsumerRecord
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from models.errors import Fenced
from streams.kafka.client import READ_COMMITTED
from streams.kafka.ledger import Admission, Ledger
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)

Records = list[ConsumerRecord]
Recover = Callable[[list[TP]], Awaitable[None]]

IDLE_BEFORE_HEAL_S = 2.0
TAKEN_WITHIN_S = 1.0
"""A poll is waited for at most this long before the next one, should it have been dropped on the way."""


class Poll(NamedTuple):
    """What one poll brought."""

    generation: int
    batches: dict[TP, Records]


class CommittedConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The driver's thread, reading committed records only; a log ends for it where all transactions are decided."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        # The driver has a setting for it, but only together with transactions of its own producer (hazards 9).
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = READ_COMMITTED  # noqa: SLF001
        return consumer

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        # Of partitions that were all taken away the driver would commit nothing, which crashes it.
        mine = not self.assignment().isdisjoint(offsets)
        return mine and await super()._commit(offsets)

    def highwater(self, tp: TP) -> int:
        """The last stable offset, 0 before the first fetch."""
        return self._ensure_consumer().last_stable_offset(tp) or 0

    def partitions_of(self, topic: str) -> int:
        """Partitions of a topic, as of the last metadata; 0 while unknown."""
        return len(self._ensure_consumer().partitions_for_topic(topic) or ())

    def passed(self, tp: TP) -> int:
        """The next offset to fetch, 0 while unknown; also where it lies behind what is no record."""
        assignment = self._ensure_consumer()._subscription.subscription.assignment  # noqa: SLF001
        state = assignment.state_value(tp) if assignment is not None and tp in assignment.tps else None
        return state.position if state is not None and state.has_valid_position else 0


class BatchConsumer(driver.Consumer):  # type: ignore[misc]
    """Consumer of whole batches with an exact ledger of what was processed."""

    def _new_consumer_thread(self) -> CommittedConsumerThread:
        return CommittedConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.batched: frozenset[str] = self.transport.batched
        self.ledger: Ledger[TP] = Ledger()
        self._passed: dict[TP, int] = {}
        """Where the last poll that brought nothing of a partition left it."""
        self._seek_lock = asyncio.Lock()
        self._recovery: asyncio.Task[None] | None = None
        self._busy_since_s = monotonic()
        self._in_flight = 0
        self.proven_s = monotonic()
        """When this worker was last sure to be a member of its group."""
        self._taken = asyncio.Event()
        self._taken.set()
        self.recovered = asyncio.Event()

    # --- seek and recovery

    async def perform_seek(self) -> None:
        """Seek to the committed offsets; batched partitions rest until their state is recovered."""
        async with self._seek_lock:
            self.ledger.forget()
            self._passed.clear()
            self.recovered.clear()
            self._taken.set()
            if self._recovery is not None:
                self._recovery.cancel()
                self._recovery = None
            try:
                await super().perform_seek()
            except IllegalStateError:
                # The assignment changed under the seek: its own seek follows, else `heal` repeats this one.
                log.info("seek_overtaken_by_rebalance", generation=self.app.consumer_generation_id)
                return
            places = [tp for tp in self.assignment() if tp.topic in self.batched]
            self.pause_partitions(places)
            committed = {} if self.transport.from_start else self._committed_offset
            starts = {tp: offset for tp in places if (offset := committed.get(tp))}
            # Asked only where it is needed: behind a fetch that waits for records, the answer takes its 1.5 s too.
            if unknown := [tp for tp in places if tp not in starts]:
                first = await self.earliest_offsets(*unknown)
                starts |= {tp: first[tp] for tp in unknown}
            generation = self.app.consumer_generation_id
            self._recovery = asyncio.create_task(self._recover(generation, starts))

    async def _recover(self, generation: int, starts: Mapping[TP, int]) -> None:
        try:
            await self.transport.recover(list(starts))
            if generation != self.app.consumer_generation_id:
                return
            if self.transport.from_start:
                await self._begin_anew(starts)
            for tp, offset in starts.items():
                self._clear_acks(tp)
                await self.seek(tp, offset)
                self.ledger.know(tp, offset)
            self._touch()
            self.proven_s = self._busy_since_s
            self.resume_partitions(starts)
            self.recovered.set()
            log.info("partitions_ready", partitions=sorted(tp.partition for tp in starts), generation=generation)
        except Exception as error:  # noqa: BLE001 - whatever it was, without state nothing may be processed
            await self.app.crash(error)

    async def _begin_anew(self, starts: Mapping[TP, int]) -> None:
        """Commit where the logs begin before anything is processed: a worker that dies meanwhile begins there again.

        Raises:
            Fenced: The group does not take it.
        """
        if not await self._commit(starts):
            raise Fenced(f"the offsets of {sorted(starts)} could not be reset: restart the role")
        self._committed_offset.update(starts)
        self.transport.from_start = False
        log.warning("reading_from_the_start", partitions=len(starts))

    def _clear_acks(self, tp: TP) -> None:
        self._acked[tp].clear()
        self._acked_index[tp].clear()

    # --- fetch

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - Faust's signature
        """Yield one message for all batched partitions, and the rest one by one."""
        records, active = await self._next_records(timeout)
        generation = self.app.consumer_generation_id
        if records is None or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        self._passed |= {tp: self._thread.passed(tp) for tp in self.ledger.places() if tp not in records}
        batches = {tp: batch for tp, batch in records.items() if self._is_active(tp, active)}
        single = {tp: batches.pop(tp) for tp in list(batches) if tp.topic not in self.batched}
        if batches:
            yield self._poll_message(Poll(generation, batches))
        for tp, record in self.scheduler.iterate(single):
            if not self.flow_active or generation != self.app.consumer_generation_id:
                return
            self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
            yield tp, self._to_message(tp, record)

    def _is_active(self, tp: TP, active: set[TP] | None) -> bool:
        return active is None or tp in active or tp in self._buffered_partitions

    def _poll_message(self, poll: Poll) -> tuple[TP, Any]:
        """The message, under the name of one of its partitions: Faust's own offsets play no part (`_new_offset`)."""
        for tp, batch in poll.batches.items():
            self.ledger.fetched(tp, batch[-1].offset)
        tp = min(poll.batches)
        message = self._to_message(tp, poll.batches[tp][-1])
        message.value, message.key = poll, None
        # The drain loop would drop a batch that is read again after a seek, did it remember an offset.
        self._read_offset[tp] = None
        self._taken.clear()
        return tp, message

    async def _next_records(self, timeout_s: float) -> tuple[dict[TP, Records] | None, set[TP] | None]:
        """Poll again once the role has taken the last poll: what arrives meanwhile makes one larger poll.

        Polls that queue up would each wait for all before them. The driver fetches ahead by itself.
        """
        try:
            # `wait_for` would swallow a cancellation that comes together with the event (Python 3.11).
            async with asyncio.timeout(TAKEN_WITHIN_S):
                await self._taken.wait()
        except TimeoutError:
            if self._in_flight:
                return None, None
            self._taken.set()
        return cast("tuple[dict[TP, Records] | None, set[TP] | None]", await self._wait_next_records(timeout_s))

    # --- process and commit

    def take(self) -> None:
        """The role has begun with the last poll: the next one may be fetched."""
        self._touch()
        self._taken.set()

    async def admit(self, tp: TP, generation: int, records: Records) -> Admission[ConsumerRecord]:
        """Which records of a batch may be processed now; seeks back on a hole."""
        admission = self.ledger.admit(tp, records, fetched_in=generation, generation=self.app.consumer_generation_id)
        if admission.refusal is not None:
            metrics.counter("batches_refused_total", reason=admission.refusal.value).inc()
            log.debug("batch_refused", reason=admission.refusal.value, partition=tp.partition)
        if admission.seek_to is not None:
            await self._rewind(tp, admission.seek_to)
        return admission

    async def _rewind(self, tp: TP, offset: int) -> None:
        self.ledger.rewind(tp)
        await self.seek(tp, offset)

    async def still_member(self, tps: Collection[TP]) -> bool:
        """Prove membership to the coordinator: a commit of what is settled is refused to a fenced worker."""
        if not self.assignment().issuperset(tps):
            return False
        settled = {tp: self.ledger.settled(tp) for tp in tps}
        return None not in settled.values() and await self._commit(cast("dict[TP, int]", settled))

    def partitions_of(self, topic: str) -> int:
        """Partitions of a subscribed topic, as of the last metadata; 0 while unknown."""
        return int(self._thread.partitions_of(topic))

    def reached(self, tp: TP, end: int) -> bool:
        """Whether every record below an offset is processed; what lies there may be no record (markers, aborted)."""
        processed = self.ledger.processed(tp)
        if processed is None:
            return False
        return processed >= end or (self.ledger.fetched_to(tp) <= processed and self._passed.get(tp, 0) >= end)

    def lag(self, tp: TP) -> int:
        """Offsets between what is processed and the log's last stable offset; 0 while either is unknown."""
        end, processed = self.highwater(tp), self.ledger.processed(tp)
        return 0 if processed is None or self.reached(tp, end) else end - processed

    def in_flight(self, change: int) -> None:
        """A poll began (+1) or ended (−1) its way through the role."""
        self._in_flight += change
        self._touch()

    def _touch(self) -> None:
        self._busy_since_s = monotonic()

    async def heal(self) -> None:
        """Seek back where fetched batches were dropped and nothing follows that would show the hole.

        Call every second. Also repeats a seek that failed on the way.
        """
        if not self.flow_active or self._in_flight or monotonic() - self._busy_since_s < IDLE_BEFORE_HEAL_S:
            return
        for tp, offset in self.ledger.dropped():
            metrics.counter("rebalance_heals_total", partition=str(tp.partition)).inc()
            log.warning("dropped_batch_healed", partition=tp.partition, offset=offset)
            await self._rewind(tp, offset)
        unfinished = self._recovery is None or (self._recovery.done() and not self.recovered.is_set())
        if unfinished and self.assignment() and not self.app.rebalancing:
            self._touch()
            await self.perform_seek()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's alarm about partitions that stand still, without its clock of events.

        A poll has one message, under the name of one partition: of all others Faust believes that their stream has not
        started. What was processed is watched by `watchdog`; whether the client still fetches is asked here.
        """
        if tp.topic in self.batched:
            self._thread.verify_recovery_event_path(now, tp)
        else:
            super().verify_event_path(now, tp)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        plain = (tp for tp in super()._filter_tps_with_pending_acks(topics) if tp.topic not in self.batched)
        yield from plain
        for tp in self.ledger.places():
            if topics is None or tp in topics or tp.topic in topics:
                yield tp

    def _new_offset(self, tp: TP) -> int | None:
        if tp.topic not in self.batched:
            return cast("int | None", super()._new_offset(tp))
        self._clear_acks(tp)
        return self.ledger.to_commit(tp)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        asked_s = monotonic()
        done = bool(await super()._commit(offsets))
        if done:
            self.proven_s = max(self.proven_s, asked_s)
            for tp, offset in offsets.items():
                self.ledger.committed(tp, offset)
        return done

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        if tp.topic not in self.batched:
            await super()._add_gap(tp, offset_from, offset_to)


class BatchTransport(driver.Transport):  # type: ignore[misc]
    """Transport whose consumer hands over batches of the given topics.

    Assign it: `app.transport = BatchTransport(url, app, batched={…}, recover=…)`.
    """

    Consumer = BatchConsumer

    def __init__(self, *args: Any, batched: frozenset[str], recover: Recover, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.batched = batched
        self.recover = recover
        self.from_start = False
        """Whether the next assignment is read from the start of its logs, whatever was committed."""
