"""Role sessions: turns in; profiles, alerts, compactions, episodes, windows and dead letters out.

Decode, embed and score in batches, fold, write the outputs, write the state, move on. What is decided is decided in
`models`; start reading at `models/session/fold.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import structlog
from aiokafka.structs import ConsumerRecord

from models.events import AlertChanged, ClockTicked, Position, ProfileUpdated
from models.events.topics import PROFILES, SESSION_STATE, TURNS
from models.partition import sessions_v1
from models.partition.log_fold import PartitionFolded, Parts, folded_offset
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.policy.digest import policy_digest
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.inference.intake import Decoded, Intake, decode
from streams.kafka.producer import Record, acknowledged
from streams.kafka.records import cause_of, events_on
from streams.observe.telemetry import metrics
from streams.ports import Embedder, TurnScorer
from streams.roles.folding_role import FoldingRole
from streams.settings import Settings
from streams.state import policy_versions as versions

log = structlog.get_logger(__name__)

IDLE_BEFORE_TICK = timedelta(seconds=30)
"""A partition without records for this long, on which something is due, gets a clock tick."""
TICKS_WHEN_BEHIND = 10
"""Clock ticks a second while closings are overdue: with a hundred each, 50,000 sessions close within a minute."""


class SessionsRole(FoldingRole[DecodedArrival, PartitionFold]):
    """Folds every session of the partitions that this worker owns."""

    name = "sessions"
    sources = (TURNS,)
    changelog = SESSION_STATE

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        embedder: Embedder,
        scorer: TurnScorer,
        *,
        scorer_file: bytes | None = None,
    ) -> None:
        super().__init__(settings, policy, http_port=settings.http.sessions_port)
        self._intake = Intake(policy, embedder, scorer)
        self._scorer_name, self._embedder_name = scorer.name, embedder.name
        self.scorer_file = scorer_file

    def version(self) -> versions.Version:
        """The scorer and the embedder decide beside the policy."""
        return versions.Version(policy_digest(self.policy), self._scorer_name, self._embedder_name)

    async def migrate(self, partitions: list[int]) -> None:
        """Sessions of releases that kept them by their id alone get their keys by app and id."""
        unbound = {number: names for number in partitions if (names := sessions_v1.unbound(self._entities(number)))}
        if not unbound:
            return
        profiles = events_on(self.settings, PROFILES, ProfileUpdated)
        apps = {each.session_id: each.app_id async for each in profiles}  # of the last one
        for number, names in unbound.items():
            changes = sessions_v1.bound(self._entities(number), names, apps)
            await self._table.write(number, folded_offset(self._entities(number)), changes)
            log.info("sessions_migrated", partition=number, sessions=len(names))

    def decode(self, batches: Mapping[int, list[ConsumerRecord]]) -> dict[int, Decoded[DecodedArrival]]:
        """Decoded, scored and embedded, all partitions together."""
        above = {number: self.folds[number].offset for number in batches}
        return self._intake.take_each(batches, above=above, floods=self.floods)

    def new_fold(self, entities: Mapping[str, Parts]) -> PartitionFold:
        """Sessions of one partition."""
        return PartitionFold(entities, self.policy)

    def usable(self, records: list[ConsumerRecord]) -> list[Position]:
        """What can be decoded."""
        return [arrival.position for arrival in decode(records, self.policy).arrivals]

    def count(self, number: int, folded: PartitionFolded) -> None:  # noqa: ARG002 - of whichever partition
        """Alerts that a trace leads to are told in the log."""
        for alert in folded.outputs:
            if isinstance(alert, AlertChanged) and (trace := cause_of(alert, self.traces)) is not None:
                log.info(
                    "alert_changed",
                    alert=alert.alert_id,
                    cause=alert.cause,
                    severity=alert.severity.value,
                    partition=alert.source.partition,
                    offset=alert.source.offset,
                    trace_id=trace.trace_id,
                )

    def show_partition(self, number: int) -> None:
        """Open sessions by mode."""
        for mode, sessions in self.folds[number].open_by_mode.items():
            metrics.gauge("open_sessions", mode=mode.value, partition=str(number)).set(sessions)

    def event_time(self, partition: int, last: ConsumerRecord) -> datetime:  # noqa: ARG002 - the fold knows it
        """The watermark: a turn that comes late is no lag."""
        return self.folds[partition].watermark

    async def on_idle(self) -> None:
        """Move the clock of partitions where nothing arrives but something is due; batches and a stop wait for it."""
        now, pending = datetime.now(UTC), []
        for number, fold in self.owned_folds():
            deadline = fold.next_deadline()
            silent_s = self.silent_s(number)
            # After a jump of the clock more is due than one record closes: the rest need not wait for each other.
            behind = deadline is not None and deadline <= fold.watermark
            if deadline is None or deadline > now or silent_s < (0 if behind else IDLE_BEFORE_TICK.total_seconds()):
                continue
            tick = ClockTicked(session_id=f"clock-{number}", timestamp=now)
            record = Record(tick.session_id.encode(), encode(tick), headers_for(tick))
            ticks = [record] * (TICKS_WHEN_BEHIND if behind else 1)
            pending += await self.producer.write(TURNS.full_name(self.settings.topic_prefix), number, ticks)
        await acknowledged(pending)
