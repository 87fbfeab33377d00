"""The durable contenders and the sessions role under the same kills, counted against the oracle.

Each gets a log of its own with the same turns: a burst, and for each kill a burst that wakes it and turns at a steady
rate, in the midst of which it is killed −9, at moments that follow from the seed, counted from the first output after
the burst: one that starts slowly is not killed before it works. It is started again at once, on the same disk. In the
end every session is ended, so that its closing profile says how many turns its state has seen. All use the same session
time-out, which is what a kill makes the survivors wait for. The oracle is a replay of the log through the same fold
(`streams.oracle.replay`); outputs are read `read_committed`, as exactly-once wants it.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from jobs.lab.bench.contender import DURABLE, ContenderProcess, missing_package
from jobs.lab.bench.folds import TurnTraffic, paced, producing, reading, send
from jobs.lab.bench.measuring import SESSIONS_ROLE, BenchEnvironment, BenchFailed, Figures, say, until
from jobs.shared.role_process import RoleProcess
from models.events import AlertChanged, OutputEvent, ProfileUpdated, SessionEnded, Turn
from models.events.topics import ALERTS, PROFILES
from models.wire.codec import decode_output
from streams.oracle.replay import SessionReplay, feed_log
from streams.settings import Settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

FIRST_BURST_TURNS = 600
"""Enough that profiles come: each session's first comes with its fifth turn."""
BURST_TURNS = 100
STEADY_TURNS = 400
TURNS_PER_S = 200.0
KILL_AFTER_S = (0.1, 1.9)
"""Within the two seconds of steady turns."""
_SPAN = timedelta(minutes=20)
"""Event time of a log: shorter than the sessions' time-out, which keyed contenders do not have."""
_SESSION_TIMEOUT = timedelta(seconds=6)
_HEARTBEAT = timedelta(seconds=2)
_WITHIN_S = 240.0
"""A busy machine is slow, and what an exactly-once writer left open is hidden for a minute."""
_QUIET_S = 5.0
"""So long nothing more comes before the outputs are taken as complete."""
_MAX_CRASHES = 20


def contenders() -> list[str]:
    """Those whose packages are installed, the sessions role first."""
    return [SESSIONS_ROLE, *(name for name in DURABLE if missing_package(name) is None)]


def kill_moments_s(seed: int, kills: int) -> list[float]:
    """Seconds after the first output of each life at which it ends."""
    rng = random.Random(f"kills {seed}")  # noqa: S311 - repeatable, not secret
    return [round(rng.uniform(*KILL_AFTER_S), 3) for _ in range(kills)]


async def measure(environment: BenchEnvironment, *, names: Sequence[str], kills: int = 10, seed: int = 1) -> Figures:
    """Kill each contender in turn, so often; turns and moments follow from the seed."""
    rows = []
    for name in names:
        say(f"{name}: {kills} kills")
        settings = await environment.fresh(
            "kills", home=environment.home / name, session_timeout=_SESSION_TIMEOUT, heartbeat_interval=_HEARTBEAT
        )
        async with reading(settings, PROFILES, ALERTS) as client:
            row = await _Run(name, settings, client, seed=seed, kills=kills).row()
        say("  lost {lost}, doubled {doubled}, alerts missing {alerts_missing} of {alerts}".format(**row))
        rows.append(row)
    return {"seed": seed, "rows": rows}


class _Run:
    """One contender from its first start to its row; the client reads profiles and alerts."""

    def __init__(self, name: str, settings: Settings, client: AIOKafkaConsumer, *, seed: int, kills: int) -> None:
        self._name, self._settings, self._client = name, settings, client
        self._topics = {topic.full_name(settings.topic_prefix): topic for topic in (PROFILES, ALERTS)}
        self._found = list[OutputEvent]()
        self._moments_s = kill_moments_s(seed, kills)
        kind, role = (RoleProcess, "sessions") if name == SESSIONS_ROLE else (ContenderProcess, name)
        self._process = kind(role, settings, log=settings.data_dir / f"{name}.log")
        self._crashes = 0
        count = FIRST_BURST_TURNS + kills * (BURST_TURNS + STEADY_TURNS)
        self._turns = list(TurnTraffic(seed).backlog(count, ends_at=datetime.now(UTC), spacing=_SPAN / count))

    async def row(self) -> Figures:
        """Run, kill, settle, count."""
        began_s = monotonic()
        self._process.start()
        keeping = asyncio.create_task(self._keep_running())
        try:
            async with producing(self._settings, enable_idempotence=True) as producer:
                kills = await self._kill_again_and_again(producer)
                sessions, now = {turn.session_id for turn in self._turns}, datetime.now(UTC)
                await self._send(producer, [SessionEnded(session_id=each, timestamp=now) for each in sorted(sessions)])
            settled = await until(partial(self._closes, sessions), within_s=_WITHIN_S)
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
            before = await self._written()
            await self._send(producer, [next(turns) for _ in range(BURST_TURNS)])
            if not await until(partial(self._beyond, before), within_s=_WITHIN_S):
                silence = f"{self._name} gave nothing for {_WITHIN_S:g} s:\n{self._process.log_tail()}"
                if not number:
                    raise BenchFailed(silence)
                say(silence)
                await self._send(producer, list(turns))
                return number
            async with asyncio.TaskGroup() as meanwhile:
                steady = [next(turns) for _ in range(STEADY_TURNS)]
                meanwhile.create_task(self._send(producer, steady, per_s=TURNS_PER_S))
                await asyncio.sleep(moment_s)
                self._process.kill()
                self._process.start()
                say(f"  kill {number + 1} after {moment_s:.3f} s")
        return len(self._moments_s)

    async def _written(self) -> int:
        """Outputs, those of aborted transactions among them: a sign of work."""
        return sum((await self._client.end_offsets(self._client.assignment())).values())

    async def _beyond(self, written: int) -> bool:
        return await self._written() > written

    async def _closes(self, sessions: set[str]) -> bool:
        """Read on until nothing more comes for a while; whether the closing profiles of these sessions have come."""
        while found := await self._client.getmany(timeout_ms=round(_QUIET_S * 1000)):
            for place, records in found.items():
                self._found += [decode_output(self._topics[place.topic], record.value) for record in records]
        return folded_turns(self._found).keys() >= sessions

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
        # Idempotent: no turn comes twice by itself.
        async for _, event in paced(events, per_s):
            await send(producer, self._settings, event)
        await producer.flush()

    async def _counted(self, kills: int, *, settled: bool, seconds: float) -> Figures:
        embedder = stream_embedder_of(self._settings)
        replay = SessionReplay(policy_of(self._settings), embedder, scorer_of(self._settings, embedder))
        oracle = await feed_log(self._settings, replay)
        expected, found = list(oracle.outputs.values()), self._found
        return {
            "contender": self._name,
            "kills": kills,
            "turns": len(oracle.turn_keys),
            **count_turns(expected, found),
            "alerts": sum(isinstance(event, AlertChanged) for event in expected),
            **count_alerts(expected, found),
            "crashes": self._crashes,
            "settled": settled,
            "seconds": round(seconds, 1),
        }


def count_turns(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> dict[str, int]:
    """Turns lost and doubled, session by session, so that one does not hide the other."""
    oracle, seen = folded_turns(expected), folded_turns(found)
    off = [seen.get(session_id, 0) - turns for session_id, turns in oracle.items()]
    return {"lost": -sum(n for n in off if n < 0), "doubled": sum(n for n in off if n > 0)}


def folded_turns(events: Iterable[OutputEvent]) -> dict[str, int]:
    """Session → turns that went into it, by its last closing profile: counted, recognised as duplicate, or late."""
    return {
        event.session_id: event.turn_count + event.duplicate_turns + event.late_turns
        for event in events
        if isinstance(event, ProfileUpdated) and not event.open
    }


def count_alerts(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> dict[str, int]:
    """Alerts by session, turn and cause, which a session has once; repeats by whether the id is the same."""
    oracle, seen = _ids_by_alert(expected), _ids_by_alert(found)
    return {
        "alerts_missing": len(oracle.keys() - seen.keys()),
        "alerts_false": sum(len(ids) for said, ids in seen.items() if said not in oracle),
        "repeats_same_id": sum(len(ids) - len(set(ids)) for ids in seen.values()),
        "repeats_other_id": sum(len(set(ids)) - 1 for said, ids in seen.items() if said in oracle),
    }


def _ids_by_alert(events: Iterable[OutputEvent]) -> dict[tuple[str, int, str], list[str]]:
    ids: dict[tuple[str, int, str], list[str]] = {}
    for event in events:
        if isinstance(event, AlertChanged):
            ids.setdefault((event.session_id, event.turn, event.cause), []).append(event.id)
    return ids
