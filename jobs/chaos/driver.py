"""Runs a plan of harm against real processes under load, and compares what is left with a replay of the log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from msgspec import Struct

from jobs.broker.local_kafka import LocalKafka
from jobs.chaos.actions import Act, Action, plan
from jobs.chaos.supervisor import Supervisor
from jobs.chaos.traffic import traffic
from jobs.compare import Settled, settle
from jobs.sending import Pace, turns_sender
from jobs.topics import apply_topics
from models.codec import decode_output
from models.events import AlertChanged, Position
from models.topics import ALERTS, TURNS
from streams.comparison import ARCHIVE_TURNS, INDEX, Difference, Kind, TopicOutputs, turn_counts
from streams.kafka.client import read_to_end
from streams.settings import ArchiveSettings, KafkaSettings, Settings, VectorSettings, load_settings

_SESSION_TIMEOUT = timedelta(seconds=6)
_PARTITIONS = 4
_EVENT_TIME_PER_TIME = 60
"""A minute of chaos is an hour of conversation, so that silent sessions time out."""
_SETTLED_WITHIN_S = 180.0
LOG = "log"
"""Where a turn that the broker acknowledged, but no longer has, is missing."""


class Options(Struct, frozen=True, kw_only=True):
    """What the command was asked for; `data_dir` is empty or new."""

    seed: int
    minutes: float
    turns_per_s: float
    data_dir: Path


class Result(Struct, kw_only=True):
    """What a run did and found.

    Attributes:
        kills: Kill −9 of roles and broker.
        acts: How often each act was done.
        restarts: Roles that were started again, for whatever reason.
        turns: Distinct turns sent and acknowledged by the broker.
        lost: Turns missing from log, archive or a session's count.
        doubled: Turns twice in the archive, or counted twice by a session.
        worst_alert_delay_s: From the broker's time of a turn to that of the alert it raised, outages included.
        repeats: Outputs that came again with the same id; allowed.
        differences: All differences from the replay.
        counts: Where and of which kind they are.
        examples: The first of each kind.
        seconds: Length of the whole run.
    """

    seed: int
    kills: int
    acts: dict[str, int]
    restarts: int
    turns: int
    lost: int
    doubled: int
    alerts: int
    alerts_missing: int
    alerts_false: int
    worst_alert_delay_s: float
    repeats: int
    differences: int
    counts: dict[str, int]
    checked: dict[str, int]
    examples: list[Difference]
    seconds: float


class Run:
    """One run, from starting a broker to the result."""

    def __init__(self, options: Options, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell
        self._acts: Counter[str] = Counter()
        self._sent: set[tuple[str, int]] = set()

    async def run(self) -> Result:
        """Start, harm, compare; everything that was started is ended on the way out.

        Raises:
            TurntideError: Something did not start, or the comparison could not be made.
        """
        began_s = monotonic()
        with ExitStack() as running:
            self._tell("starting Apache Kafka and the roles")
            broker = running.enter_context(LocalKafka(self._options.data_dir))
            settings = self._settings(broker)
            await apply_topics(settings)
            supervisor = Supervisor(settings, self._options.data_dir / "logs")
            running.callback(supervisor.end_all)
            await supervisor.start()
            settled = await self._harm_and_settle(settings, supervisor, broker)
            delay_s = await worst_alert_delay_s(settings, settled.outputs[ALERTS.name])
        return self._result(settled, supervisor, delay_s, monotonic() - began_s)

    def _settings(self, broker: LocalKafka) -> Settings:
        kafka = KafkaSettings(
            bootstrap=broker.bootstrap,
            partitions=_PARTITIONS,
            session_timeout=_SESSION_TIMEOUT,
            heartbeat_interval=timedelta(seconds=1),
        )
        mine = {"kafka": kafka, "topic_prefix": "chaos", "data_dir": self._options.data_dir}
        # Whatever cluster, archive or vector store the environment names: chaos is for its own ones only.
        return load_settings().model_copy(
            update={**mine, "archive": ArchiveSettings(), "vectors": VectorSettings(), "policy_file": None}
        )

    async def _harm_and_settle(self, settings: Settings, supervisor: Supervisor, broker: LocalKafka) -> Settled:
        seconds = self._options.minutes * 60
        acts = plan(self._options.seed, seconds=seconds, session_timeout_s=_SESSION_TIMEOUT.total_seconds())
        self._tell(f"{len(acts)} acts of harm in {seconds:g} s, {self._options.turns_per_s:g} turns/s")
        watching = asyncio.create_task(supervisor.watch())
        together = [
            asyncio.create_task(self._produce(settings, seconds)),
            asyncio.create_task(self._harm(acts, supervisor, broker)),
        ]
        try:
            await asyncio.gather(*together)
            self._tell("waiting until the roles have caught up, then comparing")
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

    # --- harm

    async def _harm(self, acts: list[Action], supervisor: Supervisor, broker: LocalKafka) -> None:
        began_s = monotonic()
        beside: list[asyncio.Task[None]] = []
        try:
            for action in acts:
                await asyncio.sleep(max(0.0, began_s + action.at_s - monotonic()))
                self._tell(f"{action.at_s:7.3f} s  {action.act} {action.place}")
                self._acts[action.act] += 1
                doing = asyncio.create_task(_do(action, supervisor, broker))
                if action.act is Act.BROKER:
                    await doing
                beside.append(doing)
            await asyncio.gather(*beside)
        finally:
            for task in beside:
                task.cancel()

    def _result(self, settled: Settled, supervisor: Supervisor, delay_s: float, seconds: float) -> Result:
        found = settled.comparison
        found.ids(
            LOG, {f"{s}, turn {t}" for s, t in self._sent}, {f"{s}, turn {t}" for s, t in settled.oracle.turn_keys}
        )
        expected, counted = turn_counts(settled.oracle.entities), turn_counts(settled.state)
        off = [counted.get(name, 0) - expected.get(name, 0) for name in expected.keys() | counted.keys()]
        return Result(
            seed=self._options.seed,
            kills=supervisor.kills + self._acts[Act.BROKER],
            acts=dict(self._acts),
            restarts=supervisor.restarts,
            turns=len(self._sent),
            lost=found.count(LOG, Kind.MISSING)
            + found.count(ARCHIVE_TURNS, Kind.MISSING)
            - sum(n for n in off if n < 0),
            doubled=found.count(ARCHIVE_TURNS, Kind.DOUBLED)
            + found.count(INDEX, Kind.FALSE)
            + sum(n for n in off if n > 0),
            alerts=found.checked[ALERTS.name],
            alerts_missing=found.count(ALERTS.name, Kind.MISSING),
            alerts_false=found.count(ALERTS.name, Kind.FALSE, Kind.CHANGED),
            worst_alert_delay_s=round(delay_s, 3),
            repeats=found.repeats,
            differences=found.differences,
            counts=found.counts,
            checked=found.checked,
            examples=found.examples,
            seconds=round(seconds, 1),
        )


async def _do(action: Action, supervisor: Supervisor, broker: LocalKafka) -> None:
    match action.act:
        case Act.KILL:
            supervisor.kill(action.place)
        case Act.FREEZE:
            await supervisor.freeze(action.place, action.lasts_s)
        case Act.STOP:
            await supervisor.stop(action.place)
        case Act.JOIN_OR_LEAVE:
            await supervisor.join_or_leave(action.place)
        case Act.BROKER:
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(action.lasts_s)
            await asyncio.to_thread(broker.restart)


async def worst_alert_delay_s(settings: Settings, alerts: TopicOutputs) -> float:
    """Longest time between the broker's receipt of a turn and the alert it raised or made worse; 0 without any."""
    raised = {}
    for event_id, values in alerts.values.items():
        event = decode_output(ALERTS, values[0])
        if isinstance(event, AlertChanged) and event.cause in {"raised", "worsened"}:
            raised[event.source] = alerts.written_ms[event_id]
    worst_ms = 0
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        written_ms = raised.get(Position(record.topic, record.partition, record.offset))
        if written_ms is not None:
            worst_ms = max(worst_ms, written_ms - record.timestamp)
    return worst_ms / 1000
