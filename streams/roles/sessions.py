"""Role sessions: turns in; profiles, alerts, compactions, episodes, windows and dead letters out.

Decode, embed and score in batches, fold, write the outputs, write the state, move on. What is decided is decided in
`models`; start reading at `models/session.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from aiokafka.structs import ConsumerRecord

from models.codec import decode_input, encode
from models.envelope import headers_for
from models.errors import DeliveryFailed, Fenced, InvalidRecord
from models.events import AlertChanged, ClockTicked, DeadLetter, Output, OutputEvent, Position, Role, Turn
from models.flood import FloodGauge
from models.ids import event_id
from models.partition import Arrival, PartitionFold, PartitionFolded
from models.policy import Policy
from models.topics import DEAD_LETTERS, SESSION_STATE, TOPIC_OF, TURNS
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.tables import StateTable
from streams.ports import Embedder, TurnScorer
from streams.roles.batch_role import BatchRole, stage
from streams.settings import Settings
from streams.telemetry import metric

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
        self._embedder = embedder
        self._scorer = scorer
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
        with stage("decode"):
            arrivals, dead = self._decode(partition, records)
        arrivals = self._enrich(arrivals)
        await self._publish(partition, dead)
        try:
            await self._fold(partition, arrivals)
        except (DeliveryFailed, Fenced):
            raise
        except Exception as error:  # noqa: BLE001 - one record that breaks the fold must not stop the rest
            log.exception("fold_failed", partition=partition, error=type(error).__name__)
            await self._fold_one_by_one(partition, arrivals, {record.offset: record for record in records})

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
        with stage("state"):
            written = await self._table.write(partition, folded.offset, folded.changed)
        table = self._table.partition(partition)
        metric("turns_folded_total").inc(folded.turns)
        metric("changelog_bytes_total").inc(written)
        metric("state_entries").labels(partition=str(partition)).set(len(table.entities))
        metric("state_bytes").labels(partition=str(partition)).set(table.bytes)
        for event in folded.outputs:
            if isinstance(event, AlertChanged):
                metric("alerts_total").labels(severity=event.severity.value, cause=event.cause).inc()

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
                metric("fold_errors_total").inc()
                record = records[arrival.position.offset]
                await self._publish(partition, [_dead_letter(record, arrival.position, reason)])
        self._folds[partition] = self._new_fold(partition)

    # --- stages

    def _decode(self, partition: int, records: Iterable[ConsumerRecord]) -> tuple[list[Arrival], list[OutputEvent]]:
        topic, folded = self.source.full_name(self.settings.topic_prefix), self._folds[partition].offset
        arrivals: list[Arrival] = []
        dead: list[OutputEvent] = []
        for record in records:
            if record.offset <= folded:
                continue
            position = Position(topic, partition, record.offset)
            appended_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
            try:
                event = decode_input(record.value, record.key, appended_at, self._policy.intake)
            except InvalidRecord as reason:
                dead.append(_dead_letter(record, position, reason))
                metric("dead_letters_total").labels(reason=reason.reason).inc()
                self._flood.bad(position, reason)
            else:
                arrivals.append(Arrival(event, position, appended_at))
                self._flood.good()
        return arrivals, dead

    def _enrich(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Add the scorer's risk and the embedding, for the whole batch at once."""
        asked = [n for n, a in enumerate(arrivals) if isinstance(a.event, Turn) and a.event.role is Role.USER]
        if not asked:
            return arrivals
        turns = [arrivals[n].event for n in asked]
        with stage("score"):
            risks = self._scorer.score(turns)
        with stage("embed"):
            vectors = self._embedder.embed([turn.content for turn in turns])
        for row, n in enumerate(asked):
            arrival = arrivals[n]
            vector = vectors[row] if turns[row].content else None
            arrivals[n] = Arrival(arrival.event, arrival.position, arrival.appended_at, risks[row], vector)
        return arrivals

    # --- writing

    async def _publish(self, partition: int, events: Sequence[OutputEvent]) -> None:
        """Write events to their topics, on the partition of their cause, and await every acknowledgement."""
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


def _dead_letter(record: ConsumerRecord, position: Position, reason: InvalidRecord) -> DeadLetter:
    return DeadLetter(
        id=event_id("dead_letter", DEAD_LETTERS.name, position),
        topic=position.topic,
        partition=position.partition,
        offset=position.offset,
        stage="fold" if reason.reason == "fold_failed" else "decode",
        reason=reason.reason,
        detail=reason.detail,
        key=record.key,
        value=record.value,
        headers=list(record.headers),
        appended_at=datetime.fromtimestamp(record.timestamp / 1000, UTC),
    )
