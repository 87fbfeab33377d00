"""Base of every role that reads batches: admission, one poll at a time, and stopping instead of skipping.

A role says what to do with admitted records (`on_records`) and how to get its state back (`on_assigned`). An error
that a role does not turn into a dead letter stops the process before anything is acknowledged; whoever started it
starts it again, and it goes on from the last offset whose outputs and state were acknowledged.
"""

from __future__ import annotations

import asyncio
import gc
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from time import monotonic

import faust
import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.entities import REGISTRY
from models.errors import ConfigurationError, Fenced
from models.events.topics import Topic
from models.wire.trace_context import NO_TRACES, Traces
from streams.encryption.records import opened
from streams.http.answering import ServedRoute
from streams.http.health import Endpoint, serving
from streams.kafka.app import create_app
from streams.kafka.client import admin
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.records import (
    ShownPartitions,
    count_records,
    event_time_of,
    show_event_time_lag,
    show_lags,
    traces_of,
)
from streams.kafka.topics import GROWING, partition_counts, require_equal
from streams.kafka.transport import BatchConsumer, Poll
from streams.kafka.watchdog import LogEnds, PartitionProgress, Watchdog, watched
from streams.observe.telemetry import metrics
from streams.observe.tracing import tracing
from streams.settings import Settings

log = structlog.get_logger(__name__)

HEARTBEAT_S = 1.0


class BatchRole(ABC):
    """A Faust app with one agent over its topics, folding whole batches.

    With several topics a poll may bring records of each. Their order against each other is nobody's promise: a topic's
    partitions are admitted, processed and committed each on its own.
    """

    name: str
    sources: tuple[Topic, ...]

    def __init__(self, settings: Settings, *, http_port: int, group: str | None = None) -> None:
        self.settings = settings
        self.http_port = http_port
        topics = [topic.full_name(settings.topic_prefix) for topic in self.sources]
        self.app = create_app(settings, role=group or self.name, topics=frozenset(topics), recover=self._recover)
        self.short_names = dict(zip(topics, (topic.name for topic in self.sources), strict=True))
        self._one_at_a_time = asyncio.Lock()
        self._partitions: dict[str, int] = {}
        self.traces: Traces = NO_TRACES
        self._current: frozenset[TP] = frozenset()
        self.shown = ShownPartitions()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.watchdog = Watchdog(settings.kafka.stall_after)
        self._log_ends = LogEnds(self._ask_log_ends)
        records = self.app.topic(*topics, value_serializer="raw", key_serializer="raw", value_type=bytes)
        self.app.agent(records, name=f"{self.name}.fold", concurrency=1)(self._agent)
        self.app.timer(HEARTBEAT_S, name=f"{self.name}.heartbeat")(self._heartbeat)

    # --- what a role is

    @abstractmethod
    async def open(self) -> None:
        """Connect to everything that `on_records` needs."""

    @abstractmethod
    async def close(self) -> None:
        """Release what `open` took; also called when `open` failed half-way."""

    @abstractmethod
    async def on_assigned(self, partitions: list[int]) -> None:
        """Make the state of exactly these partitions current, whichever of the sources they are of; each comes once."""

    @abstractmethod
    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Do everything that a poll's records ask for, by topic and partition; durable on return, or once `settled`."""

    async def refresh_keys(self) -> None:  # noqa: B027 - likewise
        """Encrypt with the keys that there are now, and let go of what erased ones opened; before batches and beats."""

    async def settled(self) -> bool:
        """Whether all that was processed is durable and may be committed; asked after a batch, then each second."""
        return True

    async def on_idle(self) -> None:  # noqa: B027 - a role may have nothing to do
        """Once a second, between batches."""

    def show(self) -> None:  # noqa: B027 - likewise
        """Show what the role holds; once a second, between batches: more often nobody looks, and it costs."""

    # --- running

    @property
    def consumer(self) -> BatchConsumer:
        """The app's consumer."""
        consumer: BatchConsumer = self.app.consumer
        return consumer

    def ready(self) -> tuple[bool, str]:
        """Whether state is recovered and batches are processed, and if not why."""
        if self._failure.done():
            return False, "the role failed and is stopping"
        if not self.consumer_ready():
            return False, "waiting for partitions and their state"
        return True, "ready"

    def consumer_ready(self) -> bool:
        """Whether the state of all assigned partitions is recovered."""
        return self.app.consumer is not None and self.consumer.recovered.is_set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set.

        Raises:
            TurntideError: What stopped the role.
        """
        await watched(self._run(stop), self.watchdog, self._progress)

    async def _run(self, stop: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.close)
            await self.open()
            states = {"ready": self.ready, "alive": self.watchdog.alive}
            served = {"routes": self.routes(), "endpoints": self.endpoints(), **states}
            await stack.enter_async_context(serving(self.name, self.http_port, self.settings.http, **served))
            await self.app.start()
            stack.push_async_callback(self.app.stop)
            # Imports, weights and clients stay for ever: the collector need not look at them again and again.
            gc.freeze()
            stopping = asyncio.ensure_future(stop.wait())
            crashed = asyncio.ensure_future(self.app.wait_for_stopped(asyncio.Event().wait()))
            await asyncio.wait({stopping, crashed, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            for task in (stopping, crashed):
                task.cancel()
            if self._failure.done():
                self._failure.result()
            if self.app.crashed:
                raise self.app.crash_reason or Fenced(f"role {self.name} crashed")

    def routes(self) -> Sequence[ServedRoute]:
        """Further HTTP routes of this role."""
        return ()

    def endpoints(self) -> Sequence[Endpoint]:
        """What it serves that is no declared route."""
        return ()

    # --- the agent

    async def _agent(self, stream: faust.StreamT[Poll]) -> None:
        async for poll in stream:
            await self._take(poll)

    async def _take(self, poll: Poll) -> None:
        async with self._one_at_a_time:
            if self._failure.done():
                return
            self.consumer.in_flight(+1)
            try:
                await self._work(poll)
            except Exception as error:
                partitions = sorted({tp.partition for tp in poll.batches})
                log.exception("role_failed", role=self.name, partitions=partitions, error=type(error).__name__)
                self._failure.set_exception(error)
            finally:
                self.consumer.in_flight(-1)

    async def _work(self, poll: Poll) -> None:
        consumer, ledger = self.consumer, self.consumer.ledger
        consumer.take()
        admitted: dict[TP, list[ConsumerRecord]] = {}
        for tp, records in poll.batches.items():
            admission = await consumer.admit(tp, poll.generation, records)
            if admission.records:
                admitted[tp] = list(admission.records)
        if not admitted:
            return
        self._current = frozenset(admitted)
        await self.fence()
        expected = {tp: ledger.processed(tp) for tp in admitted}
        metrics.histogram("batch_turns").observe(sum(map(len, admitted.values())))
        self.traces = traces_of(admitted.values())
        with tracing.batch(admitted, self.traces):
            await self.refresh_keys()
            if readable := {tp: found for tp, records in admitted.items() if (found := opened(records))}:
                await self.on_records(readable)
        is_settled = await self.settled()
        for tp, records in admitted.items():
            ledger.advance(tp, expected=expected[tp], processed=records[-1].offset + 1)
        if is_settled:
            ledger.settle()
        count_records(admitted, self.short_names)
        for partition, last in {tp.partition: records[-1] for tp, records in admitted.items()}.items():
            show_event_time_lag(partition, self.event_time(partition, last))

    def event_time(self, partition: int, last: ConsumerRecord) -> datetime:  # noqa: ARG002 - a role may ask for it
        """How far a partition is in event time, by the last record of it that was worked on."""
        return event_time_of(last)

    def _lags(self) -> dict[TP, int]:
        """Records that are not processed yet."""
        consumer, assigned = self.consumer, self.consumer.assignment()
        return {tp: consumer.lag(tp) for tp in consumer.ledger.places() if tp in assigned}

    def show_lags(self, lags: Mapping[TP, int]) -> None:
        """Show how far behind the role is; every second, also while a batch is stuck."""
        show_lags(lags)

    async def fence(self) -> None:
        """Call before each write: a worker that slept must not write when it wakes (design §5.8).

        Costs a look at the clock while commits go through; after half a session time-out without one the coordinator
        is asked. Before its first batch a worker has read nothing that it could write of.

        Raises:
            Fenced: The partition belongs to another worker by now.
        """
        silent_s = monotonic() - self.consumer.proven_s
        if not self._current or silent_s < self.settings.kafka.session_timeout.total_seconds() / 2:
            return
        if not await self.consumer.still_member(self._current):
            raise Fenced(
                f"role {self.name} was silent for {silent_s:.0f} s and partitions "
                f"{sorted({tp.partition for tp in self._current})} may have another worker: nothing more is written"
            )

    async def write(self, producer: Producer, records: Mapping[tuple[str, int], Sequence[Record]]) -> None:
        """Write records to partitions of topics, if the role may; on return they are acknowledged.

        Raises:
            Fenced: As `fence`.
            DeliveryFailed: Not acknowledged; what arrived is repeated later with the same ids.
        """
        await self.fence()
        pending = []
        for (topic, partition), each in records.items():
            pending += await producer.write(topic, partition, each)
        await acknowledged(pending)

    async def _recover(self, tps: list[TP]) -> None:
        async with self._one_at_a_time:
            await self._require_co_partitioned()
            await self.on_assigned(sorted({tp.partition for tp in tps}))

    async def _require_co_partitioned(self) -> None:
        """Ask how many partitions all topics have.

        Raises:
            ConfigurationError: Not the same number each.
        """
        names = [topic.full_name(self.settings.topic_prefix) for topic in {*REGISTRY.topics, *self.sources}]
        async with admin(self.settings.kafka) as client:
            counts = await partition_counts(client, names)
        require_equal(counts)
        self._partitions = {name: count for name, count in counts.items() if name in self.short_names}

    def _require_no_new_partitions(self) -> None:
        """Look whether a source has more partitions than at the last assignment.

        Raises:
            ConfigurationError: One has.
        """
        for name, before in self._partitions.items():
            if (now := self.consumer.partitions_of(name)) > before:
                raise ConfigurationError(f"{name} had {before} partitions and has {now} now. {GROWING}.")

    async def _progress(self) -> dict[str, PartitionProgress] | None:
        """How far each partition is; records wait if they were fetched or are still to be fetched."""
        if not self.consumer_ready():
            return None
        ends, ledger = await self._log_ends.known(), self.consumer.ledger
        return {
            f"{tp.topic}-{tp.partition}": PartitionProgress(processed, max(ledger.fetched_to(tp), ends.get(tp, 0)))
            for tp in ledger.places()
            if (processed := ledger.processed(tp)) is not None
        }

    async def _ask_log_ends(self) -> dict[TP, int]:
        consumer = self.consumer
        ends = await consumer.highwaters(*consumer.ledger.places())
        return {tp: end for tp, end in ends.items() if await consumer.position(tp) < end}

    async def _heartbeat(self) -> None:
        metrics.gauge("ready").set(self.ready()[0])
        try:
            if self.consumer_ready():
                self._require_no_new_partitions()
            if self.consumer_ready() and self.consumer.flow_active:
                self.shown.keep(tp.partition for tp in self.consumer.assignment())
                self.show_lags(self._lags())
            await self.consumer.heal()
            async with self._one_at_a_time:
                if not self._failure.done() and self.consumer.recovered.is_set():
                    # Again: while this waited, partitions may have gone.
                    self.shown.keep(tp.partition for tp in self.consumer.assignment())
                    await self.refresh_keys()
                    self.show()
                    if not self.consumer.ledger.is_settled and await self.settled():
                        self.consumer.ledger.settle()
                    await self.on_idle()
        except Exception as error:
            if not self._failure.done():
                log.exception("heartbeat_failed", role=self.name, error=type(error).__name__)
                self._failure.set_exception(error)
