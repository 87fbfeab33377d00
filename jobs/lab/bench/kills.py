"""The durable contenders and the sessions role under the same kills, counted against the oracle.

Each gets a log of its own with the same turns: a burst to begin with, and for each kill a burst that wakes it and turns
at a steady rate, in the midst of which it is killed −9. The moments are a function of the seed, counted from the first
output after the burst, so that a contender that starts slowly is not killed before it works. It is started again at
once, on the same disk. In the end every session is ended, so that its closing profile says how many turns its state has
seen, whatever the contender keeps its state in. All use the same session time-out, which is what a kill makes the
survivors wait for.

The oracle is a replay of the log through the same fold (`streams.oracle.replay`). Outputs are read `read_committed`, as
exactly-once wants it.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

from aiokafka import AIOKafkaProducer
from msgspec import Struct

from jobs.lab.bench.contender import DURABLE, missing_package
from jobs.lab.bench.environment import Ground
from jobs.lab.bench.figures import SESSIONS_ROLE, BenchFailed
from jobs.lab.bench.kills_count import Row, count_alerts, count_turns
from jobs.lab.bench.kills_process import Process, process_of
from jobs.lab.bench.kills_watch import Watch
from jobs.lab.bench.traffic import Traffic
from jobs.operate.topics import apply_topics
from models.events import AlertChanged, SessionEnded, Turn
from models.events.topics import TURNS
from models.wire.codec import encode
from streams.kafka.client import client_options
from streams.oracle.replay import Replay, feed_log
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

FIRST_BURST_TURNS = 600
"""Enough that profiles come: each session's first comes with its fifth turn."""
BURST_TURNS = 100
STEADY_TURNS = 400
TURNS_PER_S = 200.0
KILL_AFTER_S = (0.1, 1.9)
"""Within the two seconds of steady turns."""
PARTITIONS = 4
MAX_KILLS = 30
_SPAN = timedelta(minutes=20)
"""Event time of a log: shorter than the sessions' time-out, which keyed contenders do not have."""
_SESSION_TIMEOUT = timedelta(seconds=6)
_HEARTBEAT = timedelta(seconds=2)
_WORKS_WITHIN_S = 240.0
_SETTLED_WITHIN_S = 240.0
"""A busy machine is slow, and what an exactly-once writer left open is hidden for a minute."""
_QUIET_S = 5.0
"""So long nothing more comes before the outputs are taken as complete."""
_MAX_CRASHES = 20

Say = Callable[[str], None]


class Report(Struct, frozen=True):
    """All contenders after the same kills; a row's fields are described at `jobs.lab.bench.kills_count.Row`."""

    seed: int
    rows: list[Row]


def contenders() -> list[str]:
    """Those whose packages are installed, the sessions role first."""
    return [SESSIONS_ROLE, *(name for name in DURABLE if missing_package(name) is None)]


def kill_moments_s(seed: int, kills: int) -> list[float]:
    """Seconds after the first output of each life at which it ends.

    >>> kill_moments_s(1, 2) == kill_moments_s(1, 3)[:2]
    True
    """
    rng = random.Random(f"kills {seed}")  # noqa: S311 - repeatable, not secret
    return [round(rng.uniform(*KILL_AFTER_S), 3) for _ in range(kills)]


async def measure(ground: Ground, *, names: Sequence[str], kills: int, seed: int, say: Say) -> Report:
    """Kill each contender in turn.

    Args:
        ground: A broker without other work, and an empty folder.
        names: Of `contenders()`.
        kills: How often each is killed, at most `MAX_KILLS`.
        seed: Of the traffic and the moments.
        say: Called with what is going on.

    Raises:
        BenchFailed: A contender does no work at all.
    """
    rows = []
    for name in names:
        say(f"{name}: {kills} kills")
        settings = load_settings(
            kafka={
                "bootstrap": ground.bootstrap,
                "partitions": PARTITIONS,
                "session_timeout": _SESSION_TIMEOUT,
                "heartbeat_interval": _HEARTBEAT,
            },
            topic_prefix=f"kills-{uuid.uuid4().hex[:8]}",
            data_dir=ground.home / name,
        )
        await apply_topics(settings)
        row = await _Run(name, settings, kills, seed, say).row()
        say(f"  lost {row.lost}, doubled {row.doubled}, alerts missing {row.alerts_missing} of {row.alerts}")
        rows.append(row)
    return Report(seed=seed, rows=rows)


class _Run:
    """One contender from its first start to its row."""

    def __init__(self, name: str, settings: Settings, kills: int, seed: int, say: Say) -> None:
        self._name = name
        self._settings = settings
        self._moments_s = kill_moments_s(seed, kills)
        self._say = say
        self._process: Process = process_of(name, settings, settings.data_dir / f"{name}.log")
        self._watch = Watch(settings)
        self._crashes = 0
        count = FIRST_BURST_TURNS + kills * (BURST_TURNS + STEADY_TURNS)
        self._turns = list(Traffic(seed).backlog(count, ends_at=datetime.now(UTC), spacing=_SPAN / count))

    async def row(self) -> Row:
        """Run, kill, settle, count."""
        began_s = monotonic()
        self._process.start()
        keeping = asyncio.create_task(self._keep_running())
        try:
            async with self._watch.reading(), _producing(self._settings) as producer:
                kills = await self._kill_again_and_again(producer)
                sessions = {turn.session_id for turn in self._turns}
                await self._send(producer, [_ended(session_id) for session_id in sorted(sessions)])
                settled = await self._watch.until(lambda: self._watch.closed >= sessions, _SETTLED_WITHIN_S)
                await self._watch.until(lambda: self._watch.silent_s > _QUIET_S, _SETTLED_WITHIN_S)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            if self._process.running():
                self._process.kill()
        return await self._counted(kills, settled=settled, seconds=monotonic() - began_s)

    async def _kill_again_and_again(self, producer: AIOKafkaProducer) -> int:
        """Send all turns, killing on the way; how often. One that does no work any more is not killed again."""
        turns = iter(self._turns)
        await self._send(producer, [next(turns) for _ in range(FIRST_BURST_TURNS)])
        for number, moment_s in enumerate(self._moments_s):
            before = self._watch.seen
            await self._send(producer, [next(turns) for _ in range(BURST_TURNS)])
            if not await self._watch.until(partial(self._watch.beyond, before), _WORKS_WITHIN_S):
                silence = f"{self._name} gave nothing for {_WORKS_WITHIN_S:g} s:\n{self._process.log_tail()}"
                if not number:
                    raise BenchFailed(silence)
                self._say(silence)
                await self._send(producer, list(turns))
                return number
            async with asyncio.TaskGroup() as meanwhile:
                steady = [next(turns) for _ in range(STEADY_TURNS)]
                meanwhile.create_task(self._send(producer, steady, per_s=TURNS_PER_S))
                await asyncio.sleep(moment_s)
                self._process.kill()
                self._process.start()
                self._say(f"  kill {number + 1} after {moment_s:.3f} s")
        return len(self._moments_s)

    async def _keep_running(self) -> None:
        """Start it again when it ends by itself, as whoever operates it would."""
        while self._crashes < _MAX_CRASHES:
            await asyncio.sleep(1.0)
            if not self._process.running():
                self._crashes += 1
                self._process.start()

    async def _send(
        self, producer: AIOKafkaProducer, events: Sequence[Turn | SessionEnded], per_s: float | None = None
    ) -> None:
        topic, began_s = TURNS.full_name(self._settings.topic_prefix), monotonic()
        for n, event in enumerate(events):
            ahead_s = 0.0 if per_s is None else began_s + n / per_s - monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            await producer.send(topic, encode(event), key=event.session_id.encode())
        await producer.flush()

    async def _counted(self, kills: int, *, settled: bool, seconds: float) -> Row:
        embedder = stream_embedder_of(self._settings)
        replay = Replay(policy_of(self._settings), embedder, scorer_of(self._settings, embedder))
        oracle = await feed_log(self._settings, replay)
        expected, found = list(oracle.outputs.values()), self._watch.events
        turns, alerts = count_turns(expected, found), count_alerts(expected, found)
        return Row(
            contender=self._name,
            kills=kills,
            turns=len(oracle.turn_keys),
            lost=turns.lost,
            doubled=turns.doubled,
            alerts=sum(isinstance(event, AlertChanged) for event in expected),
            alerts_missing=alerts.missing,
            alerts_false=alerts.false,
            repeats_same_id=alerts.repeats_same_id,
            repeats_other_id=alerts.repeats_other_id,
            crashes=self._crashes,
            settled=settled,
            seconds=round(seconds, 1),
        )


@asynccontextmanager
async def _producing(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    """An idempotent producer: no turn comes twice by itself."""
    producer = AIOKafkaProducer(**client_options(settings.kafka), enable_idempotence=True)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


def _ended(session_id: str) -> SessionEnded:
    return SessionEnded(session_id=session_id, timestamp=datetime.now(UTC))
