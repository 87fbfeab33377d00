"""Fault injection against real processes under load, and compares what is left with a replay of the logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import asdict

from jobs.lab.chaos.actions import OUTAGE_S, FaultKind, plan
from jobs.lab.chaos.delays import AlertTimes, delays
from jobs.lab.chaos.fault_injection import FaultInjector
from jobs.lab.chaos.result import ChaosResult, compared
from jobs.lab.chaos.supervisor import Supervisor
from jobs.lab.chaos.traffic import traffic
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.replay.comparison import Settled, settle
from jobs.shared.sending import Pace, turns_sender
from models.events import AlertChanged, Position
from models.events.topics import ALERTS, TURNS
from models.wire.codec import decode_output
from streams.kafka.client import read_to_end
from streams.oracle.comparison import DifferenceKind, TopicOutputs
from streams.settings import KafkaSettings, Settings, VectorSettings, load_settings
from streams.settings.archive import ArchiveSettings

SESSION_TIMEOUT = timedelta(seconds=6)
"""After which a dead worker's partitions move, in every run."""
_PARTITIONS = 4
_EVENT_TIME_PER_TIME = 60
"""A minute of chaos is an hour of conversation, so that silent sessions time out."""
_SETTLED_WITHIN_S = 180.0


class ChaosOptions(Struct, frozen=True, kw_only=True):
    """What the command was asked for; `data_dir` is empty or new, `acts` and `outage_s` as in `plan`."""

    seed: int
    minutes: float
    turns_per_s: float
    data_dir: Path
    acts: frozenset[FaultKind] = frozenset(FaultKind)
    outage_s: float = OUTAGE_S


def settings_of(bootstrap: str, data_dir: Path) -> Settings:
    """A run's own: whatever cluster, archive or vector store the environment names is left alone."""
    kafka = KafkaSettings(
        bootstrap=bootstrap,
        partitions=_PARTITIONS,
        session_timeout=SESSION_TIMEOUT,
        heartbeat_interval=timedelta(seconds=1),
    )
    mine = {"kafka": kafka, "topic_prefix": "chaos", "data_dir": data_dir}
    return load_settings().model_copy(
        update={**mine, "archive": ArchiveSettings(), "vectors": VectorSettings(), "policy_file": None}
    )


class ChaosRun:
    """One run, from starting a broker to the result."""

    def __init__(self, options: ChaosOptions, report: Callable[[str], None]) -> None:
        self._options = options
        self._report = report
        self._sent: set[tuple[str, int]] = set()

    async def run(self) -> ChaosResult:
        """Start, inject faults, compare; everything that was started is ended on the way out.

        Raises:
            TurntideError: Something did not start, or the comparison could not be made.
        """
        began_s = monotonic()
        with ExitStack() as running:
            self._report("starting Apache Kafka and the roles")
            broker = running.enter_context(LocalKafka(self._options.data_dir))
            settings = settings_of(broker.bootstrap, self._options.data_dir)
            await apply_topics(settings)
            with_vectors = FaultKind.VECTORS in self._options.acts
            supervisor = Supervisor(settings, self._options.data_dir / "logs", vector_server=with_vectors)
            running.callback(supervisor.end_all)
            await supervisor.start()
            injector = FaultInjector(settings, supervisor, broker, self._report)
            settled = await self._inject_and_settle(settings, supervisor, injector)
            raised = await _raised(settings, settled.outputs[ALERTS.name])
        return self._result(settled, supervisor, injector, raised, began_s)

    async def _inject_and_settle(self, settings: Settings, supervisor: Supervisor, injector: FaultInjector) -> Settled:
        seconds, timeout_s = self._options.minutes * 60, SESSION_TIMEOUT.total_seconds()
        acts = plan(
            self._options.seed,
            seconds=seconds,
            session_timeout_s=timeout_s,
            acts=self._options.acts,
            outage_s=self._options.outage_s,
        )
        self._report(f"{len(acts)} acts of harm in {seconds:g} s, {self._options.turns_per_s:g} turns/s")
        watching = asyncio.create_task(supervisor.watch())
        together = [
            asyncio.create_task(self._produce(settings, seconds)),
            asyncio.create_task(injector.do(acts)),
        ]
        try:
            await asyncio.gather(*together)
            self._report("waiting until the roles have caught up, then comparing")
            settled = await settle(settings, within_s=_SETTLED_WITHIN_S, index_url=supervisor.index_url)
        finally:
            for task in (watching, *together):
                task.cancel()
            await asyncio.gather(watching, *together, return_exceptions=True)
        return settled

    async def _produce(self, settings: Settings, seconds: float) -> None:
        rate_per_s = self._options.turns_per_s
        turns = max(1, int(rate_per_s * seconds))
        pace, began_s = Pace(rate_per_s=rate_per_s), monotonic()
        ends_at = datetime.now(UTC)
        span = timedelta(seconds=seconds * _EVENT_TIME_PER_TIME)
        async with turns_sender(settings) as sender:
            for sent in traffic(self._options.seed, turns=turns, ends_at=ends_at, span=span):
                ahead_s = began_s + pace.due(ends_at) - monotonic()
                if ahead_s > 0:
                    await sender.flush()
                    await asyncio.sleep(ahead_s)
                await sender.add(sent.record)
                if sent.turn is not None:
                    self._sent.add(sent.turn)
            await sender.finish()

    def _result(
        self,
        settled: Settled,
        supervisor: Supervisor,
        injector: FaultInjector,
        raised: list[AlertTimes],
        began_s: float,
    ) -> ChaosResult:
        found = settled.comparison
        late = delays(raised, injector.done, session_timeout_s=SESSION_TIMEOUT.total_seconds())
        return ChaosResult(
            **asdict(compared(settled, self._sent, began_s)),
            seed=self._options.seed,
            kills=supervisor.kills,
            acts=dict(injector.acts),
            restarts=supervisor.restarts,
            alerts=found.checked[ALERTS.name],
            alerts_missing=found.count(ALERTS.name, DifferenceKind.MISSING),
            alerts_false=found.count(ALERTS.name, DifferenceKind.FALSE, DifferenceKind.CHANGED),
            worst_alert_delay_s=late.worst_s,
            worst_alert_delay_after_kill_s=late.worst_after_kill_s,
            alerts_after_kill=late.after_kill,
        )


async def _raised(settings: Settings, alerts: TopicOutputs) -> list[AlertTimes]:
    """Alerts that were raised or became worse, with the broker's times of them and of their turns."""
    written = {}
    for event_id, values in alerts.values.items():
        event = decode_output(ALERTS, values[0])
        if isinstance(event, AlertChanged) and event.cause in {"raised", "worsened"}:
            written[event.source] = alerts.written_ms[event_id]
    raised = []
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        alert_ms = written.get(Position(record.topic, record.partition, record.offset))
        if alert_ms is not None:
            raised.append(AlertTimes(record.timestamp, alert_ms))
    return raised
