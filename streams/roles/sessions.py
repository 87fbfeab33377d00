"""Role sessions: turns in; profiles, alerts, compactions, episodes, windows and dead letters out.

Decode, embed and score in batches, fold, write the outputs, write the state, move on. What is decided is decided in
`models`; start reading at `models/session.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from time import monotonic

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.codec import encode
from models.envelope import headers_for
from models.events import AlertChanged, ClockTicked, DeadLetter, Output, OutputEvent, ProfileUpdated, TopicChanged
from models.flood import FloodGauge
from models.partition import Arrival, PartitionFold, PartitionFolded, folded_offset
from models.policy import Policy
from models.topics import SESSION_STATE, TOPIC_OF, TURNS
from streams.intake import Decoded, Intake, unfoldable
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.state_loss import committed_offsets, require_whole
from streams.ports import Embedder, TurnScorer
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.state.table import StateTable
from streams.telemetry import metrics, stage

log = structlog.get_logger(__name__)

IDLE_BEFORE_TICK = timedelta(seconds=30)
"""A partition without records for this long, on which something is due, gets a clock tick."""
TICKS_WHEN_BEHIND = 10
"""Clock ticks a second while closings are overdue: with a hundred each, 50,000 sessions close within a minute."""


class SessionsRole(BatchRole):
    """Folds every session of the partitions that this worker owns."""

    name = "sessions"
    sources = (TURNS,)

    def __init__(self, settings: Settings, policy: Policy, embedder: Embedder, scorer: TurnScorer) -> None:
        super().__init__(settings, http_port=settings.http.sessions_port)
        self._policy = policy
        self._intake = Intake(policy, embedder, scorer)
        self._producer = Producer(settings)
        self._topics = {kind: topic.full_name(settings.topic_prefix) for kind, topic in TOPIC_OF.items()}
        self._table = StateTable(settings, SESSION_STATE.full_name(settings.topic_prefix), self._producer)
        self._folds: dict[int, PartitionFold] = {}
        self._last_record_s: dict[int, float] = {}
        self._flood = FloodGauge(policy.intake)

    async def open(self) -> None:
        """Connect the producer."""
        await self._producer.start()

    async def close(self) -> None:
        """Disconnect it and let go of the state."""
        await self._producer.stop()
        self._table.close()

    def ready(self) -> tuple[bool, str]:
        """As every role, and while state is recovered, how far that is."""
        is_ready, reason = super().ready()
        return is_ready, reason if is_ready else self._table.recovering or reason

    async def on_assigned(self, partitions: list[int]) -> None:
        """Bring the state of these partitions up to the end of its changelog."""
        committed = await committed_offsets(self.settings, partitions)
        await self._table.recover(partitions)
        await require_whole(
            self.settings,
            self._policy.intake,
            committed=committed,
            folded=lambda number: folded_offset(self._table.partition(number).entities),
        )
        self._folds = {number: self._new_fold(number) for number in partitions}
        self._last_record_s = dict.fromkeys(partitions, monotonic())

    def _new_fold(self, number: int) -> PartitionFold:
        return PartitionFold(self._table.partition(number).entities, self._policy)

    # --- a batch

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Fold the records; on return outputs and state are acknowledged."""
        await self._take_in({tp.partition: records for tp, records in batches.items()})

    async def _take_in(self, batches: Mapping[int, list[ConsumerRecord]]) -> None:
        self._last_record_s.update(dict.fromkeys(batches, monotonic()))
        decoded = self._intake.take_each(batches, above={number: self._folds[number].offset for number in batches})
        self._watch_flood(decoded.values())
        await self._publish({number: each.dead for number, each in decoded.items()})
        for letter in chain.from_iterable(each.dead for each in decoded.values()):
            metrics.counter("dead_letters_total", reason=letter.reason).inc()
        for number in await self._fold({number: each.arrivals for number, each in decoded.items()}):
            await self._fold_one_by_one(number, decoded[number].arrivals, batches[number])

    async def _fold(self, arrivals: Mapping[int, Sequence[Arrival]]) -> dict[int, Exception]:
        """Fold what arrived and make it durable, chunk by chunk; returns what broke the fold of which partition."""
        results = {number: self._folds[number].fold(batch) for number, batch in arrivals.items()}
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
            log.exception("fold_failed", partition=partition, error=type(error).__name__)
            self._folds[partition] = self._new_fold(partition)
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
                *[self._table.write(number, chunk.offset, chunk.changed) for number, chunk in folded.items()]
            )
        for (number, chunk), changelog_bytes in zip(folded.items(), written, strict=True):
            self._count(number, chunk, changelog_bytes)

    def _count(self, partition: int, folded: PartitionFolded, changelog_bytes: int) -> None:
        table, label = self._table.partition(partition), str(partition)
        metrics.counter("turns_folded_total").inc(folded.turns)
        metrics.counter("changelog_bytes_total").inc(changelog_bytes)
        metrics.gauge("state_entries", partition=label).set(len(table.entities))
        metrics.gauge("state_bytes", partition=label).set(table.size_bytes)
        lag = datetime.now(UTC) - self._folds[partition].watermark
        metrics.gauge("event_time_lag_seconds", partition=label).set(lag.total_seconds())
        for event in folded.outputs:
            if isinstance(event, AlertChanged):
                metrics.counter("alerts_total", severity=event.severity.value, cause=event.cause).inc()
            elif isinstance(event, ProfileUpdated):
                for change in event.mode_transitions[-1:]:
                    if change.turn == event.last_turn:
                        metrics.counter("mode_transitions_total", mode=change.mode.value).inc()
            elif isinstance(event, TopicChanged):
                metrics.counter("topic_changes_total", cause=event.cause).inc()
                if event.compaction is not None:
                    metrics.counter("topic_history_bytes_total").inc(event.compaction.bytes_before)
                    metrics.counter("topic_packed_bytes_total").inc(event.compaction.bytes_after)
            elif isinstance(event, DeadLetter):
                metrics.counter("dead_letters_total", reason=event.reason).inc()

    async def _fold_one_by_one(
        self, partition: int, arrivals: Sequence[Arrival], records: Sequence[ConsumerRecord]
    ) -> None:
        """Set the records aside that break the fold, and go on with the others."""
        by_offset = {record.offset: record for record in records}
        for arrival in arrivals:
            for error in (await self._fold({partition: [arrival]})).values():
                metrics.counter("fold_errors_total").inc()
                await self._publish({partition: [unfoldable(by_offset[arrival.position.offset], error)]})

    def _watch_flood(self, decoded: Iterable[Decoded]) -> None:
        """Stop on a flood of bad input, before anything of the batch is diverted."""
        for each in decoded:
            bad = {letter.offset: letter for letter in each.dead}
            for offset in sorted([*bad, *(arrival.position.offset for arrival in each.arrivals)]):
                letter = bad.get(offset)
                if letter is None:
                    self._flood.good()
                else:
                    self._flood.bad(letter)

    # --- writing

    async def _publish(self, events: Mapping[int, Sequence[OutputEvent]]) -> None:
        """Write events to their topics, on the partition of their cause, and await every acknowledgement."""
        by_place: dict[tuple[str, int], list[Record]] = {}
        for partition, caused in events.items():
            for event in caused:
                topic = self._topics[type(event)]
                record = Record(_key(event), encode(event), headers_for(event))
                by_place.setdefault((topic, partition), []).append(record)
        if not by_place:
            return
        await self.fence()
        pending = []
        for (topic, partition), records in by_place.items():
            pending += await self._producer.write(topic, partition, records)
        await acknowledged(pending)

    async def on_idle(self) -> None:
        """Move the clock of partitions where nothing arrives but something is due."""
        now = datetime.now(UTC)
        for number, fold in self._folds.items():
            deadline = fold.next_deadline()
            silent_s = monotonic() - self._last_record_s[number]
            # After a jump of the clock more is due than one record closes: the rest need not wait for each other.
            behind = deadline is not None and deadline <= fold.watermark
            if deadline is None or deadline > now or silent_s < (0 if behind else IDLE_BEFORE_TICK.total_seconds()):
                continue
            tick = ClockTicked(session_id=f"clock-{number}", timestamp=now)
            record = Record(tick.session_id.encode(), encode(tick), headers_for(tick))
            await acknowledged(
                await self._producer.write(
                    TURNS.full_name(self.settings.topic_prefix),
                    number,
                    [record] * (TICKS_WHEN_BEHIND if behind else 1),
                )
            )


def _key(event: OutputEvent) -> bytes | None:
    if isinstance(event, DeadLetter):
        return event.key
    return (event.session_id or event.app_id).encode() if isinstance(event, Output) else None
