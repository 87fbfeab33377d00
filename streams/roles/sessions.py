"""Role sessions: turns in; profiles, alerts, compactions, episodes, windows and dead letters out.

Decode, embed and score in batches, fold, write the outputs, write the state, move on. What is decided is decided in
`models`; start reading at `models/session.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from aiokafka.structs import ConsumerRecord

from models.codec import encode
from models.envelope import headers_for
from models.errors import DeliveryFailed, Fenced, InvalidRecord
from models.events import AlertChanged, ClockTicked, DeadLetter, Output, OutputEvent, ProfileUpdated
from models.flood import FloodGauge
from models.partition import Arrival, PartitionFold, PartitionFolded
from models.policy import Policy
from models.topics import SESSION_STATE, TOPIC_OF, TURNS
from streams.intake import Decoded, Intake, dead_letter
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.tables import StateTable
from streams.ports import Embedder, TurnScorer
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.telemetry import metrics, stage

log = structlog.get_logger(__name__)

IDLE_BEFORE_TICK = timedelta(seconds=30)
"""A partition without records for this long, on which something is due, gets a clock tick."""


class SessionsRole(BatchRole):
    """Folds every session of the partitions that this worker owns."""

    name = "sessions"
    source = TURNS

    def __init__(self, settings: Settings, policy: Policy, embedder: Embedder, scorer: TurnScorer) -> None:
        super().__init__(settings, http_port=settings.http.sessions_port)
        self._policy = policy
        self._intake = Intake(policy, embedder, scorer)
        self._producer = Producer(settings)
        self._table = StateTable(settings, SESSION_STATE.full_name(settings.topic_prefix), self._producer)
        self._folds: dict[int, PartitionFold] = {}
        self._last_record_s: dict[int, float] = {}
        self._flood = FloodGauge(policy.intake)

    async def open(self) -> None:
        """Connect the producer."""
        await self._producer.start()

    async def close(self) -> None:
        """Disconnect it."""
        await self._producer.stop()

    async def on_assigned(self, partitions: list[int]) -> None:
        """Bring the state of these partitions up to the end of its changelog."""
        await self._table.recover(partitions)
        self._folds = {number: self._new_fold(number) for number in partitions}
        self._last_record_s = dict.fromkeys(partitions, monotonic())

    def _new_fold(self, number: int) -> PartitionFold:
        return PartitionFold(self._table.partition(number).entities, self._policy)

    # --- a batch

    async def on_records(self, partition: int, records: list[ConsumerRecord]) -> None:
        """Fold the records; on return outputs and state are acknowledged."""
        self._last_record_s[partition] = monotonic()
        decoded = self._intake.take(records, above=self._folds[partition].offset)
        self._watch_flood(decoded)
        await self._publish(partition, decoded.dead)
        for letter in decoded.dead:
            metrics.counter("dead_letters_total", reason=letter.reason).inc()
        try:
            await self._fold(partition, decoded.arrivals)
        except (DeliveryFailed, Fenced):
            raise
        except Exception as error:
            log.exception("fold_failed", partition=partition, error=type(error).__name__)
            await self._fold_one_by_one(partition, decoded.arrivals, {record.offset: record for record in records})

    async def _fold(self, partition: int, arrivals: Sequence[Arrival]) -> None:
        results = self._folds[partition].fold(arrivals)
        while True:
            with stage("fold"):
                folded = next(results, None)
            if folded is None:
                return
            await self._make_durable(partition, folded)

    async def _make_durable(self, partition: int, folded: PartitionFolded) -> None:
        """Outputs before state: a state that is durable before its alert would hide the alert on replay."""
        with stage("outputs"):
            await self._publish(partition, folded.outputs)
        await self.fence()
        with stage("state"):
            written = await self._table.write(partition, folded.offset, folded.changed)
        self._count(partition, folded, written)

    def _count(self, partition: int, folded: PartitionFolded, changelog_bytes: int) -> None:
        table, label = self._table.partition(partition), str(partition)
        metrics.counter("turns_folded_total").inc(folded.turns)
        metrics.counter("changelog_bytes_total").inc(changelog_bytes)
        metrics.gauge("state_entries", partition=label).set(len(table.entities))
        metrics.gauge("state_bytes", partition=label).set(table.bytes)
        lag = datetime.now(UTC) - self._folds[partition].watermark
        metrics.gauge("event_time_lag_seconds", partition=label).set(lag.total_seconds())
        for event in folded.outputs:
            if isinstance(event, AlertChanged):
                metrics.counter("alerts_total", severity=event.severity.value, cause=event.cause).inc()
            elif isinstance(event, ProfileUpdated):
                for change in event.mode_transitions[-1:]:
                    if change.turn == event.last_turn:
                        metrics.counter("mode_transitions_total", mode=change.mode.value).inc()

    async def _fold_one_by_one(
        self, partition: int, arrivals: Sequence[Arrival], records: dict[int, ConsumerRecord]
    ) -> None:
        """Set the record aside that breaks the fold, and go on with the others."""
        for arrival in arrivals:
            self._folds[partition] = self._new_fold(partition)
            try:
                await self._fold(partition, [arrival])
            except (DeliveryFailed, Fenced):
                raise
            except Exception as error:  # noqa: BLE001 - as above
                reason = InvalidRecord("fold_failed", f"{type(error).__name__} in the fold; replay after an upgrade")
                metrics.counter("fold_errors_total").inc()
                record = records[arrival.position.offset]
                await self._publish(partition, [dead_letter(record, "fold", reason)])
        self._folds[partition] = self._new_fold(partition)

    def _watch_flood(self, decoded: Decoded) -> None:
        """Stop on a flood of bad input, before anything of the batch is diverted."""
        bad = {letter.offset: letter for letter in decoded.dead}
        for offset in sorted([*bad, *(arrival.position.offset for arrival in decoded.arrivals)]):
            letter = bad.get(offset)
            if letter is None:
                self._flood.good()
            else:
                self._flood.bad(letter)

    # --- writing

    async def _publish(self, partition: int, events: Sequence[OutputEvent]) -> None:
        """Write events to their topics, on the partition of their cause, and await every acknowledgement."""
        await self.fence()
        by_topic: dict[str, list[Record]] = {}
        for event in events:
            topic = TOPIC_OF[type(event)].full_name(self.settings.topic_prefix)
            by_topic.setdefault(topic, []).append(Record(_key(event), encode(event), headers_for(event)))
        pending = []
        for topic, records in by_topic.items():
            pending += await self._producer.write(topic, partition, records)
        await acknowledged(pending)

    async def on_idle(self) -> None:
        """Move the clock of partitions where nothing arrives but something is due."""
        now = datetime.now(UTC)
        for number, fold in self._folds.items():
            deadline = fold.next_deadline()
            silent_s = monotonic() - self._last_record_s[number]
            if deadline is None or deadline > now or silent_s < IDLE_BEFORE_TICK.total_seconds():
                continue
            tick = ClockTicked(session_id=f"clock-{number}", timestamp=now)
            record = Record(tick.session_id.encode(), encode(tick), headers_for(tick))
            await acknowledged(
                await self._producer.write(self.source.full_name(self.settings.topic_prefix), number, [record])
            )


def _key(event: OutputEvent) -> bytes | None:
    if isinstance(event, DeadLetter):
        return event.key
    return (event.session_id or event.app_id).encode() if isinstance(event, Output) else None
