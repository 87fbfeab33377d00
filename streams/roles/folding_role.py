"""Base of every role that folds keyed state: recover, decode, fold, outputs, state, in this order.

A role says how its records are decoded, which fold one of its partitions has, and what is counted. What is decided is
decided in `models`.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from time import monotonic
from typing import Any, Generic, TypeVar

import structlog
from aiokafka.structs import ConsumerRecord, TopicPartition
from faust.types import TP

from models.entities import REGISTRY, TOPIC_OF
from models.errors import TurntideError
from models.events import Control, OutputEvent, Position
from models.events.topics import COMMANDS, Topic
from models.partition.log_fold import LogFold, PartitionFolded, Parts, Placed, folded_offset
from models.policy import Policy
from models.policy.digest import policy_digest
from models.wire.codec import NULL_VALUE, encode
from models.wire.envelope import Headers, headers_for, key_of, unread
from models.wire.flood import FloodGauge
from streams.inference.intake import Decoded, unfoldable
from streams.kafka.client import Extent, consumer, read_extents
from streams.kafka.producer import Producer, Record
from streams.kafka.records import trace_headers
from streams.kafka.state_loss import LossRule, committed_offsets, require_whole
from streams.observe.telemetry import metrics, stage
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.state import policy_versions as versions
from streams.state.in_faust import TableInFaust
from streams.state.table import StateTable

log = structlog.get_logger(__name__)
_Arrival = TypeVar("_Arrival", bound=Placed)
_Fold = TypeVar("_Fold", bound=LogFold[Any])


class FoldingRole(BatchRole, Generic[_Arrival, _Fold]):
    """Folds the partitions that this worker owns over their state.

    Attributes:
        changelog: Where the state is kept.
        scorer_file: Content of the scorer's file, where a role has a scorer with one.
        folds: The fold of each partition.
        floods: Its refused records of late.
    """

    changelog: Topic
    scorer_file: bytes | None = None

    def __init__(self, settings: Settings, policy: Policy, *, http_port: int) -> None:
        super().__init__(settings, http_port=http_port)
        self.policy = policy
        self.producer = Producer(settings)
        self._commands = COMMANDS.full_name(settings.topic_prefix)
        self._topics = {kind: topic.full_name(settings.topic_prefix) for kind, topic in TOPIC_OF.items()}
        self._table = StateTable(settings, self.changelog.full_name(settings.topic_prefix), self.producer)
        self._in_faust = TableInFaust(self.app, self._table, self.changelog, settings.topic_prefix)
        self.folds: dict[int, _Fold] = {}
        self._last_record_s: dict[int, float] = {}
        self.floods: dict[int, FloodGauge] = {}

    # --- what a folding role is

    @abstractmethod
    def decode(self, batches: Mapping[int, list[ConsumerRecord]]) -> dict[int, Decoded[_Arrival]]:
        """Arrivals and dead letters of each partition's records that are not folded yet; moves on its flood gauge."""

    @abstractmethod
    def new_fold(self, entities: Mapping[str, Parts]) -> _Fold:
        """The fold of a partition over its state."""

    @abstractmethod
    def usable(self, records: list[ConsumerRecord]) -> list[Position]:
        """Places of the records that a fold takes: once folded they are in the state, or were dead letters."""

    @abstractmethod
    def count(self, number: int, folded: PartitionFolded) -> None:
        """Count what the role's outputs say."""

    @abstractmethod
    def show_partition(self, number: int) -> None:
        """Show what a partition's state holds."""

    # --- state

    async def open(self) -> None:
        """Connect the producer."""
        await self.producer.start()

    async def close(self) -> None:
        """Disconnect it and let go of the state."""
        await self.producer.stop()
        self._table.close()

    def ready(self) -> tuple[bool, str]:
        """As every role, and while state is recovered, how far that is."""
        is_ready, reason = super().ready()
        return is_ready, reason if is_ready else self._table.recovering or reason

    async def on_assigned(self, partitions: list[int]) -> None:
        """Bring the state of these partitions up to the end of its changelog."""
        rule = LossRule(self.name, self.sources[0], self.changelog, folded_offset, self.usable)
        committed = await committed_offsets(self.settings, rule, partitions)
        await self._table.recover(partitions)
        await require_whole(self.settings, rule, committed=committed, entities=self._entities)
        await self.migrate(partitions)
        self.folds = {number: self.new_fold(self._entities(number)) for number in partitions}
        self._last_record_s = dict.fromkeys(partitions, monotonic())
        self.floods = {number: FloodGauge(self.policy.intake) for number in partitions}
        if committed:
            await self._look_back(committed)
        self._note_version()

    def version(self) -> versions.Version:
        """Rules that this worker folds by."""
        return versions.Version(policy_digest(self.policy), "", "")

    def _note_version(self) -> None:
        """Note which version of the rules this worker's partitions are folded by from here on."""
        version = self.version()
        try:
            versions.keep(self.settings, self.policy, self.scorer_file, version.scorer)
            firsts = {number: fold.offset + 1 for number, fold in self.folds.items()}
            versions.note(self.settings, firsts, version, role=self.name)
        except TurntideError as error:
            # Alerts matter more than making them again: records are folded all the same.
            log.warning("version_not_kept", role=self.name, policy=version.policy, reason=str(error))

    async def _look_back(self, next_offsets: Mapping[int, int]) -> None:
        """Read what was refused right before these offsets: letters are thinned as if the role had never stopped."""
        source = self.sources[0].full_name(self.settings.topic_prefix)
        places = [TopicPartition(source, number) for number in next_offsets]
        async with consumer(self.settings.kafka) as client:
            starts, ends = await client.beginning_offsets(places), await client.end_offsets(places)
            extents = {
                place: Extent(
                    max(starts[place], next_offset - self.floods[number].reach), min(ends[place], next_offset)
                )
                for place, (number, next_offset) in zip(places, next_offsets.items(), strict=True)
            }
            async for record in read_extents(client, extents):
                self.decode({record.partition: [record]})

    async def migrate(self, partitions: list[int]) -> None:
        """Bring state that an earlier release wrote to this one's layout, before it is folded on; none by default."""

    async def refresh_keys(self) -> None:
        """Read the state anew where a key was erased since: what it sealed is gone, and must not be written again."""
        if self.producer.sealing is not None and self.producer.sealing.sealer.refresh():
            partitions = sorted(self.folds)
            log.warning("keys_erased", role=self.name, partitions=partitions)
            self._table.close()
            await self.on_assigned(partitions)

    def _entities(self, number: int) -> Mapping[str, Parts]:
        return self._table.partition(number).entities

    def owned_folds(self) -> Iterator[tuple[int, _Fold]]:
        """Number and fold of each partition that is this worker's; one that was taken away stays until the next."""
        return ((number, fold) for number, fold in self.folds.items() if number in self.shown.owned)

    def silent_s(self, number: int) -> float:
        """Seconds since a partition's last record."""
        return monotonic() - self._last_record_s[number]

    # --- a batch

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Fold the records; on return outputs and state are acknowledged."""
        await self._take_in({tp.partition: records for tp, records in batches.items()})

    async def _take_in(self, batches: Mapping[int, list[ConsumerRecord]]) -> None:
        self._last_record_s.update(dict.fromkeys(batches, monotonic()))
        decoded = self.decode(batches)
        await self._publish({number: each.dead for number, each in decoded.items()})
        for letter in chain.from_iterable(each.dead for each in decoded.values()):
            metrics.counter("dead_letters_total", reason=letter.reason).inc()
        for number, each in decoded.items():
            thinned = sum(letter.value is None and letter.reason != NULL_VALUE for letter in each.dead)
            metrics.counter("dead_letters_thinned_total", partition=str(number)).inc(thinned)
        for number in await self._fold({number: each.arrivals for number, each in decoded.items()}):
            await self._fold_one_by_one(number, decoded[number].arrivals, batches[number])

    async def _fold(self, arrivals: Mapping[int, Sequence[_Arrival]]) -> dict[int, Exception]:
        """Fold what arrived and make it durable, chunk by chunk; returns what broke the fold of which partition."""
        results = {number: self.folds[number].fold(batch) for number, batch in arrivals.items()}
        broken: dict[int, Exception] = {}
        while results:
            folded: dict[int, PartitionFolded] = {}
            with stage("fold"):
                for number, chunks in list(results.items()):
                    chunk = self._next(number, chunks, broken)
                    if chunk is None:
                        del results[number]
                    else:
                        folded[number] = chunk
            await self._make_durable(folded)
        return broken

    def _next(
        self, partition: int, chunks: Iterator[PartitionFolded], broken: dict[int, Exception]
    ) -> PartitionFolded | None:
        try:
            return next(chunks, None)
        except Exception as error:
            log.exception("fold_failed", role=self.name, partition=partition, error=type(error).__name__)
            self.folds[partition] = self.new_fold(self._entities(partition))
            broken[partition] = error
            return None

    async def _make_durable(self, folded: Mapping[int, PartitionFolded]) -> None:
        """Outputs before state: a state that is durable before its alert would hide the alert on replay."""
        if not folded:
            return
        with stage("outputs"):
            await self._publish({number: chunk.outputs for number, chunk in folded.items()})
        await self.fence()
        with stage("state"):
            written = await asyncio.gather(
                *[
                    self._table.write(number, chunk.offset, chunk.changed, erased=bool(chunk.erased))
                    for number, chunk in folded.items()
                ]
            )
        for (number, chunk), changelog_bytes in zip(folded.items(), written, strict=True):
            self._in_faust.written(chunk.changed)
            self._count(number, chunk, changelog_bytes)

    def _count(self, partition: int, folded: PartitionFolded, changelog_bytes: int) -> None:
        metrics.counter("turns_folded_total").inc(folded.turns)
        metrics.counter("changelog_bytes_total").inc(changelog_bytes)
        for event in folded.outputs:
            for counted in REGISTRY.counted(event):
                metrics.counter(counted.metric, **counted.labels).inc(counted.amount)
        self.count(partition, folded)

    def show(self) -> None:
        """Every partition's state."""
        for number, _ in self.owned_folds():
            table, label = self._table.partition(number), str(number)
            metrics.gauge("state_entries", partition=label).set(len(table.entities))
            metrics.gauge("state_bytes", partition=label).set(table.size_bytes)
            self.show_partition(number)

    async def _fold_one_by_one(
        self, partition: int, arrivals: Sequence[_Arrival], records: Sequence[ConsumerRecord]
    ) -> None:
        """Set the records aside that break the fold, and go on with the others."""
        by_offset = {record.offset: record for record in records}
        for arrival in arrivals:
            for error in (await self._fold({partition: [arrival]})).values():
                metrics.counter("fold_errors_total").inc()
                await self._publish({partition: [unfoldable(by_offset[arrival.position.offset], error)]})

    # --- writing

    async def _publish(self, events: Mapping[int, Sequence[OutputEvent]]) -> None:
        """Write events to their topics and await every acknowledgement.

        They go to the partition of their cause, but for what another role folds by another key. What a later one of
        the same key replaces for every reader is left out.
        """
        by_place: dict[tuple[str, int], list[Record]] = {}
        headers = self._headers if self.traces else headers_for
        for partition, caused in events.items():
            left_out = unread(caused)
            for event in caused:
                if event.id in left_out:
                    continue
                topic, key = self._topics[type(event)], key_of(event)
                place = partition
                if topic == self._commands and key is not None:
                    place = await self.producer.partition_of(topic, key)
                elif isinstance(event, Control):
                    place = event.source.partition  # where the session's turns stand, however their producer partitions
                by_place.setdefault((topic, place), []).append(Record(key, encode(event), headers(event)))
        if by_place:
            await self.write(self.producer, by_place)

    def _headers(self, event: OutputEvent) -> Headers:
        """The event's own, and the trace of the record that caused it."""
        return [*headers_for(event), *trace_headers(event, self.traces)]
