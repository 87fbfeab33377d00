"""All contenders over the same logs, in rounds: the sessions role and whom it is compared with; and alert latency.

Each round has topics of its own. Its contenders run one after the other, beginning with another one each round, so
that whatever slows the machine for a while slows them all; ratios are taken within a round, throughput after a warm-up.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter

from aiokafka import AIOKafkaConsumer
from msgspec import Struct

from jobs.lab.bench.contender import CONTENDERS, missing_package, run_contender
from jobs.lab.bench.folds import TurnTraffic, paced, producing, reading, send, send_backlog
from jobs.lab.bench.measuring import (
    SESSIONS_ROLE,
    BenchEnvironment,
    BenchFailed,
    Figures,
    Timing,
    medians,
    say,
    spread_ms,
)
from jobs.lab.bench.roles import Backlog, running, take_backlog
from models.events import AlertChanged
from models.events.topics import ALERTS
from models.wire.codec import decode_output
from streams.settings import Settings

TURNS_PER_S = 500
"""Rate at which the alert latency is measured."""
_WARM_UP_TURNS = 2 * TURNS_PER_S
"""Sent first and not measured: connections and caches are made with the first batches."""
_ALERT_WITHIN_S = 30.0
_TICK_S = 0.01
_PER_EVENT = ("per_event_faust", "quix")
QUICK = {"runs": 1, "turns": 5_000, "per_event_turns": 1_000, "latency_seconds": 2.0}


class Round(Struct, frozen=True):
    """One run of each contender over the same log, one after the other; one that is not installed is missing.

    Latencies run from the moment a turn was due to be sent to the receipt of its alert; `turn_bytes` is the mean size
    of a turn's record value.
    """

    timings: dict[str, Timing]
    latencies_ms: list[float]
    backlog: Backlog
    turn_bytes: float

    def figures(self) -> dict[str, float]:
        """Under the keys that `rounds` of the report has."""
        if not self.latencies_ms:
            raise BenchFailed("no alert arrived in a run: look at the policy's `alerts.single_turn_risk`")
        rates = {name: timing.turns_per_s for name, timing in self.timings.items()}
        alerts = spread_ms(self.latencies_ms)
        return {
            "turns_per_s": rates[SESSIONS_ROLE],
            **{f"ratio_{name}": rates[SESSIONS_ROLE] / rates[name] for name in CONTENDERS if name in rates},
            "alert_latency_ms_p50": alerts["p50_ms"],
            "alert_latency_ms_p99": alerts["p99_ms"],
            "changelog_bytes_per_turn": self.backlog.changelog_bytes_per_turn,
            "mb_per_10000_sessions": self.backlog.mb_per_10000_sessions,
            **{f"{name}_turns_per_s": rate for name, rate in rates.items()},
        }


def summarise(rounds: Sequence[Round], *, turns: int) -> Figures:
    """The report of all rounds: medians, of alerts those of each round's percentiles."""
    by_round = [each.figures() for each in rounds]
    middle = medians(by_round)
    latency = {key: middle[f"alert_latency_ms_{key}"] for key in ("p50", "p99")}
    return {
        **{key: middle[key] for key in ("turns_per_s", "changelog_bytes_per_turn", "mb_per_10000_sessions")},
        **{f"ratio_{name}": middle.get(f"ratio_{name}") for name in CONTENDERS},
        "alert_latency_ms": {**latency, "alerts": sum(len(each.latencies_ms) for each in rounds)},
        "turn_bytes": median(each.turn_bytes for each in rounds),
        "absolute_turns_per_s": medians([{n: t.turns_per_s for n, t in each.timings.items()} for each in rounds]),
        "stage_us_per_turn": medians([each.backlog.stage_us_per_turn for each in rounds]),
        "rounds": by_round,
        "spread": {key: [most(row[key] for row in by_round if key in row) for most in (min, max)] for key in middle},
        "runs": len(rounds),
        "turns": turns,
    }


async def measure(
    environment: BenchEnvironment,
    *,
    runs: int = 3,
    turns: int = 20_000,
    per_event_turns: int = 4_000,
    latency_seconds: float = 10.0,
) -> Figures:
    """Run everything, in rounds; contenders that work per event stop after `per_event_turns` of a round's log.

    For the alert latency turns are sent for so many seconds, after a warm-up.
    """
    rounds = []
    for run in range(runs):
        say(f"run {run + 1} of {runs}")
        settings, timings = await environment.fresh(), dict[str, Timing]()
        turn_bytes = await send_backlog(settings, run, turns)
        for name in order(run):
            if name == SESSIONS_ROLE:
                backlog = await take_backlog(settings, turns)
                timings[name] = backlog.timing
            else:
                timings[name] = run_contender(name, settings, per_event_turns if name in _PER_EVENT else turns)
            say(f"  {name}: {timings[name].turns_per_s:,.0f} turns/s")
        latencies_ms = await alert_latencies_ms(await environment.fresh(), latency_seconds)
        rounds.append(Round(timings, latencies_ms, backlog, turn_bytes))
    return summarise(rounds, turns=turns)


def order(number: int) -> list[str]:
    """The sessions role and contenders that are installed, in the order of a round: each begins with the next."""
    names = [SESSIONS_ROLE, *(name for name in CONTENDERS if missing_package(name) is None)]
    first = number % len(names)
    return names[first:] + names[:first]


async def alert_latencies_ms(settings: Settings, seconds: float) -> list[float]:
    """Send turns at `TURNS_PER_S`; milliseconds from when one was due to the receipt of the alert that it raises.

    Every tenth turn raises one. That a sender falls behind hides nothing.
    """
    async with running(settings, "sessions") as (role,), reading(settings, ALERTS) as client:
        traffic, turns = TurnTraffic(), _WARM_UP_TURNS + round(seconds * TURNS_PER_S)
        due_s: dict[tuple[str, int], float] = {}
        sending = asyncio.create_task(_send(settings, traffic, turns, due_s))
        try:
            return await _receive(client, due_s, sending, sum(map(traffic.alarms, range(_WARM_UP_TURNS, turns))))
        except TimeoutError:
            raise BenchFailed(f"no alert for {_ALERT_WITHIN_S:g} s:\n{role.log_tail()}") from None
        finally:
            sending.cancel()


async def _send(settings: Settings, traffic: TurnTraffic, turns: int, due_s: dict[tuple[str, int], float]) -> None:
    """Warm up, then note when each alarming turn is due; send all of them on time."""
    began_s, began = perf_counter(), datetime.now(UTC)
    async with producing(settings) as producer:
        async for due, n in paced(range(turns), TURNS_PER_S, tick_s=_TICK_S):
            turn = traffic.alarming(n, began + timedelta(seconds=due - began_s))
            if n >= _WARM_UP_TURNS and traffic.alarms(n):
                due_s[turn.session_id, turn.turn] = due
            await send(producer, settings, turn)
        await producer.flush()


async def _receive(
    client: AIOKafkaConsumer, due_s: dict[tuple[str, int], float], sending: asyncio.Task[None], alerts: int
) -> list[float]:
    latencies_ms: dict[tuple[str, int], float] = {}
    while len(latencies_ms) < alerts:
        if sending.done():
            sending.result()
        async with asyncio.timeout(_ALERT_WITHIN_S):
            record = await client.getone()
        received_s = perf_counter()
        alert = decode_output(ALERTS, record.value)
        if isinstance(alert, AlertChanged) and (alert.session_id, alert.turn) in due_s:
            cause = alert.session_id, alert.turn
            latencies_ms.setdefault(cause, (received_s - due_s[cause]) * 1000)
    await sending
    return list(latencies_ms.values())
