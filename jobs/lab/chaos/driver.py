"""Fault injection against real processes under load, and comparison of what is left with a replay of the logs.

A rolling restart harms nothing: every worker of two per role is asked to stop and started again, one after another, as
an upgrade does. The longest pause of what each role writes says what its readers notice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from time import monotonic, time

from aiokafka.errors import KafkaError
from msgspec import Struct, field
from msgspec.structs import asdict

from jobs.lab.chaos.result import (
    OUTAGE_S,
    PLACES,
    Action,
    AlertTimes,
    ChaosResult,
    Compared,
    Fault,
    FaultKind,
    Outage,
    compared,
    delays,
    plan,
)
from jobs.lab.chaos.supervisor import ROLES, Supervisor, own_cluster, supervised
from jobs.lab.chaos.traffic import Sent, traffic
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.replay.comparison import settle
from jobs.shared.sending import turns_sender
from models.errors import ConfigurationError, StoreUnavailable
from models.events import AlertChanged, Position
from models.events.topics import ALERTS, TURNS
from models.wire.codec import decode_output
from streams.kafka.client import admin, read_to_end
from streams.kafka.topics import existing_topics, set_config
from streams.oracle.comparison import DifferenceKind, TopicOutputs
from streams.oracle.replay import FOLDED
from streams.settings import Settings

SESSION_TIMEOUT = timedelta(seconds=6)
"""After which a dead worker's partitions move, in every run."""
OWN_KAFKA = {"session_timeout": SESSION_TIMEOUT, "heartbeat_interval": timedelta(seconds=1)}
"""Settings of the cluster of every run."""
EVENT_TIME_PER_TIME = 60
"""A minute of load is an hour of conversation, so that silent sessions time out."""
SETTLED_WITHIN_S = 180.0
"""How long the roles may take to catch up."""
_LIMIT = "max.message.bytes"
_LIMIT_BYTES = 32
"""Less than an empty record batch has."""


class ChaosOptions(Struct, kw_only=True):
    """Options of one run; `acts`, in order of name, and `outage_s` as in `plan`."""

    seed: int
    minutes: float
    turns_per_s: float
    acts: list[FaultKind] = field(default_factory=lambda: sorted(FaultKind))
    outage_s: float = OUTAGE_S


async def run_chaos(options: ChaosOptions, folder: Path, report: Callable[[str], None]) -> ChaosResult:
    """Start a broker and the roles, inject faults, compare; all that was started is ended on the way out.

    Raises:
        TurntideError: Something did not start, or the comparison could not be made.
    """
    began_s, seconds, timeout_s = monotonic(), options.minutes * 60, SESSION_TIMEOUT.total_seconds()
    report("starting Apache Kafka and the roles")
    async with (
        own_cluster(folder, "chaos", **OWN_KAFKA) as (broker, settings),
        supervised(settings, PLACES, vector_server=FaultKind.VECTORS in options.acts) as supervisor,
    ):
        injector = FaultInjector(settings, supervisor, broker, report)
        acts = plan(
            options.seed, seconds=seconds, session_timeout_s=timeout_s, acts=options.acts, outage_s=options.outage_s
        )
        report(f"{len(acts)} acts of harm in {seconds:g} s, {options.turns_per_s:g} turns/s")
        load = traffic(
            options.seed,
            turns=max(1, int(options.turns_per_s * seconds)),
            ends_at=datetime.now(UTC),
            span=timedelta(seconds=seconds * EVENT_TIME_PER_TIME),
        )
        sent = set[tuple[str, int]]()
        watching = asyncio.create_task(supervisor.watch())
        producing = asyncio.create_task(send_load(settings, load, options.turns_per_s, sent.add))
        harming = asyncio.create_task(injector.do(acts))
        try:
            await asyncio.gather(producing, harming)
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
    settings: Settings,
    load: Iterable[Sent],
    rate_per_s: float,
    note: Callable[[tuple[str, int]], object],
    done: asyncio.Event | None = None,
) -> None:
    """Send records at a rate, to the end or until `done`, and note session and number of each good turn."""
    began_s = monotonic()
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
                note(sent.turn)
        await sender.finish()


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


class FaultInjector:
    """The acts of a plan on the processes of one run, each at its time; it counts them and notes when each ended."""

    def __init__(
        self, settings: Settings, supervisor: Supervisor, broker: LocalKafka, report: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._supervisor = supervisor
        self._broker = broker
        self._report = report
        self._rejecting: set[str] = set()
        self.done: list[Fault] = []
        self.acts: Counter[str] = Counter()

    async def do(self, plan: Sequence[Action]) -> None:
        """Do everything of the plan and wait until the last outage is over."""
        began_s = monotonic()
        beside: list[asyncio.Task[None]] = []
        try:
            for action in plan:
                await asyncio.sleep(max(0.0, began_s + action.at_s - monotonic()))
                self._report(f"{action.at_s:7.3f} s  {action.act} {action.place}")
                doing = asyncio.create_task(self._act(action))
                if action.act is FaultKind.BROKER:
                    await doing
                beside.append(doing)
            await asyncio.gather(*beside)
        finally:
            for task in beside:
                task.cancel()

    async def _act(self, action: Action) -> None:
        self.acts[action.act] += 1
        began_ms = now_ms()
        match action.act:
            case FaultKind.KILL:
                self._supervisor.kill(action.place)
            case FaultKind.FREEZE:
                await self._supervisor.freeze(action.place, action.lasts_s)
            case FaultKind.STOP:
                await self._supervisor.stop(action.place)
            case FaultKind.JOIN_OR_LEAVE:
                await self._supervisor.join_or_leave(action.place)
            case FaultKind.BROKER:
                await asyncio.to_thread(self._broker.kill)
                self._supervisor.kills += 1
                await asyncio.sleep(action.lasts_s)
                await asyncio.to_thread(self._broker.restart)
            case FaultKind.VECTORS:
                await self._supervisor.fail_vectors(Outage(action.place), action.lasts_s)
            case FaultKind.REJECT:
                await self._reject(action.place, action.lasts_s)
        ended_ms = began_ms if action.act is FaultKind.KILL else now_ms()
        self.done.append(Fault(action.act, action.place, began_ms, ended_ms))

    async def _reject(self, topic: str, seconds: float) -> None:
        """Let the broker refuse whatever is written to a topic; nothing if it does already."""
        name = f"{self._settings.topic_prefix}.{topic}"
        if name in self._rejecting:
            return
        self._rejecting.add(name)
        before: str | None = None
        try:
            async with admin(self._settings.kafka) as client:
                before = (await existing_topics(client, [name]))[name].config[_LIMIT]
                await set_config(client, {name: {_LIMIT: str(_LIMIT_BYTES)}})
            await asyncio.sleep(seconds)
        except (KafkaError, StoreUnavailable) as error:  # the broker was killed under it
            self._report(f"           reject {topic}: {type(error).__name__}")
        finally:
            if before is not None:
                await self._accept(name, before)
            self._rejecting.discard(name)

    async def _accept(self, name: str, limit: str) -> None:
        """Set the limit back, however long the broker is away."""
        while True:
            with suppress(KafkaError, StoreUnavailable):
                async with admin(self._settings.kafka) as client:
                    await set_config(client, {name: {_LIMIT: limit}})
                return
            await asyncio.sleep(0.5)  # a broker that is down


def now_ms() -> int:
    """Wall clock, ms since 1970."""
    return int(time() * 1000)


WORKERS = 2
"""Of each role."""
_STEADY_S = 2.0
"""Load before the first worker and after the last one."""
_SPAN = timedelta(hours=100)
_MOST_TURNS = 1_000_000


class RollingResult(Compared, kw_only=True):
    """What a rolling restart did and found.

    Attributes:
        restarted: Workers in the order in which they were restarted.
        not_in_order: Those of them that did not stop by themselves in time.
        longest_pause_s: Folding role → longest time without an output of it, while turns were sent.
        restart_s: Longest time from asking a worker to stop until its successor was ready.
    """

    restarted: list[str]
    not_in_order: list[str]
    longest_pause_s: dict[str, float]
    restart_s: float

    @property
    def failed(self) -> bool:
        """Whether something differed, or a worker had to be ended."""
        return self.differences > 0 or bool(self.not_in_order)


def roles_of(names: str) -> tuple[str, ...]:
    """The roles that are named, comma separated, in the order in which they are restarted.

    Raises:
        ConfigurationError: One of them is none.

    >>> roles_of("memory,sessions")
    ('sessions', 'memory')
    """
    named = {name.strip() for name in names.split(",")}
    if unknown := sorted(named - set(ROLES)):
        raise ConfigurationError(f"--roles {names}: {unknown[0]} cannot be restarted. There are {', '.join(ROLES)}")
    return tuple(role for role in ROLES if role in named)


async def roll(
    settings: Settings, *, roles: Sequence[str], turns_per_s: float, seed: int, report: Callable[[str], None]
) -> RollingResult:
    """Start, send, restart, compare, on topics that are there; everything that was started is ended on the way out.

    Raises:
        TurntideError: A worker did not start, or the comparison could not be made.
    """
    began_s = monotonic()
    workers = [f"{role}-{number}" for role in roles for number in range(WORKERS)]
    async with supervised(settings, workers, vector_server="index" in roles) as supervisor:
        done, sent = asyncio.Event(), set[tuple[str, int]]()
        load = traffic(seed, turns=_MOST_TURNS, ends_at=datetime.now(UTC), span=_SPAN)
        producing = asyncio.create_task(send_load(settings, load, turns_per_s, sent.add, done))
        began_ms, longest_s, hard = now_ms(), 0.0, []
        try:
            await asyncio.sleep(_STEADY_S)
            for name in workers:
                asked_s = monotonic()
                if code := await supervisor.restart(name):
                    hard.append(f"{name}: exit code {code}")
                away_s = monotonic() - asked_s
                longest_s = max(longest_s, away_s)
                report(f"{name} is back after {away_s:.1f} s")
            await asyncio.sleep(_STEADY_S)
        finally:
            done.set()
            await producing
        ended_ms = now_ms()
        report("comparing with a replay")
        settled = await settle(settings, within_s=SETTLED_WITHIN_S, index_url=supervisor.index_url)
    return RollingResult(
        **asdict(compared(settled, sent, began_s)),
        restarted=workers,
        not_in_order=hard,
        longest_pause_s=_pauses(settled.outputs, roles, began_ms, ended_ms),
        restart_s=round(longest_s, 1),
    )


def _pauses(outputs: dict[str, TopicOutputs], roles: Collection[str], began_ms: int, ended_ms: int) -> dict[str, float]:
    """Of each folding role that ran, the longest time without an output between two times, ms since 1970."""
    return {
        folded.role: longest_pause_s(
            (ms for topic in folded.outputs for ms in outputs[topic.name].written_ms.values()), began_ms, ended_ms
        )
        for folded in FOLDED
        if folded.role in roles
    }


def longest_pause_s(times_ms: Iterable[int], began_ms: int, ended_ms: int) -> float:
    """Longest gap between two of the times, or between one and the ends, seconds.

    >>> longest_pause_s([1_500, 4_000, 90_000], 1_000, 5_000)
    2.5
    """
    within = sorted(ms for ms in times_ms if began_ms <= ms <= ended_ms)
    return max(after - before for before, after in pairwise([began_ms, *within, ended_ms])) / 1000
