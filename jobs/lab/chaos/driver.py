"""Fault injection against real processes under load, and compares what is left with a replay of the logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
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
from jobs.lab.chaos.traffic import Sent, traffic
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.replay.comparison import settle
from jobs.shared.sending import turns_sender
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
SETTLED_WITHIN_S = 180.0
"""How long the roles may take to catch up."""


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


async def run_chaos(options: ChaosOptions, report: Callable[[str], None]) -> ChaosResult:
    """Start a broker and the roles, inject faults, compare; all that was started is ended on the way out.

    Raises:
        TurntideError: Something did not start, or the comparison could not be made.
    """
    began_s, seconds, timeout_s = monotonic(), options.minutes * 60, SESSION_TIMEOUT.total_seconds()
    with ExitStack() as running:
        report("starting Apache Kafka and the roles")
        broker = running.enter_context(LocalKafka(options.data_dir))
        settings = settings_of(broker.bootstrap, options.data_dir)
        await apply_topics(settings)
        supervisor = Supervisor(settings, vector_server=FaultKind.VECTORS in options.acts)
        running.callback(supervisor.end_all)
        await supervisor.start()
        injector = FaultInjector(settings, supervisor, broker, report)
        acts = plan(
            options.seed, seconds=seconds, session_timeout_s=timeout_s, acts=options.acts, outage_s=options.outage_s
        )
        report(f"{len(acts)} acts of harm in {seconds:g} s, {options.turns_per_s:g} turns/s")
        load = traffic(
            options.seed,
            turns=max(1, int(options.turns_per_s * seconds)),
            ends_at=datetime.now(UTC),
            span=timedelta(seconds=seconds * _EVENT_TIME_PER_TIME),
        )
        watching = asyncio.create_task(supervisor.watch())
        producing = asyncio.create_task(send_load(settings, load, options.turns_per_s))
        harming = asyncio.create_task(injector.do(acts))
        try:
            sent, _ = await asyncio.gather(producing, harming)
            report("waiting until the roles have caught up, then comparing")
            settled = await settle(settings, within_s=SETTLED_WITHIN_S, index_url=supervisor.index_url)
        finally:
            for task in (watching, producing, harming):
                task.cancel()
            await asyncio.gather(watching, producing, harming, return_exceptions=True)
        raised = await _raised(settings, settled.outputs[ALERTS.name])
    found, late = settled.comparison, delays(raised, injector.done, session_timeout_s=timeout_s)
    return ChaosResult(
        **asdict(compared(settled, sent, began_s)),
        seed=options.seed,
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


async def send_load(
    settings: Settings, load: Iterable[Sent], rate_per_s: float, done: asyncio.Event | None = None
) -> set[tuple[str, int]]:
    """Send records at a rate, to the end or until `done`; gives session and number of the good turns."""
    began_s, turns = monotonic(), set[tuple[str, int]]()
    async with turns_sender(settings) as sender:
        for number, sent in enumerate(load):
            ahead_s = began_s + number / rate_per_s - monotonic()
            if ahead_s > 0:
                await sender.flush()
                await asyncio.sleep(ahead_s)
            if done is not None and done.is_set():
                break
            await sender.add(sent.record)
            if sent.turn is not None:
                turns.add(sent.turn)
        await sender.finish()
    return turns


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
