"""Scaling: long sessions and many sessions through the pure fold in CPU time, several workers on one backlog.

At each length the same words are said, after a history of other ones: what differs is only how long the session is.
A turn is a micro-batch of its own, so that each one reads its session's state and writes it: the dearest case. Numbers
of open sessions are measured in processes of their own, in micro-batches of turns of other sessions each.
"""

import asyncio
import gc
import os
import random
import signal
import time
from collections.abc import Sequence
from copy import deepcopy
from datetime import timedelta
from statistics import median

import httpx
import numpy as np
import psutil

from jobs.lab.bench.folds import InMemory, Prepared, send_backlog
from jobs.lab.bench.measuring import BenchEnvironment, BenchFailed, Figures, Timing, apart, say
from jobs.lab.bench.roles import folded_offsets, running, scrape
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from streams.settings import load_settings
from streams.state.memory import MemoryTable
from streams.wiring import policy_of

PARTITIONS = 8
POSITIONS = (10, 100, 1_000, 10_000)
"""Numbers of the turns whose cost is measured; the first is the one that others are compared with."""
REACH_TURNS = 5
"""A position is measured over the five turns up to it and the five after it."""
BATCH_TURNS = 1_000
"""As the sessions role polls by default; each of these turns is another session's."""
_SPACING = timedelta(seconds=20)
_FILLED_WITHIN = timedelta(minutes=15)
"""Event time of the filling: no session falls silent for long enough to time out."""
_PROBE_SPACING = timedelta(milliseconds=1)
_COLLECT_AFTER = 50_000
"""As `turntide worker` has it."""
_WARM_UP_SESSIONS = 200
"""Load what the fold needs once."""
_SESSION_TIMEOUT = timedelta(seconds=30)
_POLL_S = 0.25
_WITHIN_S = 600.0
_COSTED_WITHIN_S = 3_600.0
QUICK = {"runs": 1, "probes": 16, "sessions": (1_000, 10_000), "passes": 5, "backlog_turns": 8_000}


async def measure(
    environment: BenchEnvironment,
    *,
    runs: int = 3,
    probes: int = 64,
    sessions: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    turns_each: int = 2,
    passes: int = 31,
    workers: Sequence[int] = (1, 2, 4),
    backlog_turns: int = 30_000,
) -> Figures:
    """Run everything, one after the other; of `runs` of a measurement the median is taken.

    Args:
        environment: Where.
        runs: Of each measurement.
        probes: Runs of words per position of a session.
        sessions: Numbers of open sessions.
        turns_each: Turns that each open session has had.
        passes: Measured micro-batches at each number of sessions.
        workers: Numbers of workers.
        backlog_turns: Turns that the workers take.
    """
    by_workers = await measure_workers(environment, workers, runs=runs, turns=backlog_turns)
    lengths = measure_lengths(runs=runs, probes=probes)
    return {
        "ratio_long_session": lengths[-1]["ratio"],
        "session_length": lengths,
        "sessions": measure_sessions(sessions, turns_each=turns_each, passes=passes),
        "workers": by_workers,
        "partitions": PARTITIONS,
        "runs": runs,
    }


async def measure_workers(
    environment: BenchEnvironment, counts: Sequence[int], *, runs: int, turns: int
) -> list[Figures]:
    """Throughput by number of workers."""
    timings: dict[int, list[Timing]] = {count: [] for count in counts}
    for run in range(runs):
        say(f"workers, run {run + 1} of {runs}")
        for count, taken in timings.items():
            taken.append(await _take_backlog(environment, count, run, turns))
            say(f"  {count} workers: {taken[-1].turns_per_s:,.0f} turns/s")
    return [
        {
            "workers": count,
            "turns_per_s": median(timing.turns_per_s for timing in taken),
            "ratio": median(a.turns_per_s / b.turns_per_s for a, b in zip(taken, timings[counts[0]], strict=True)),
        }
        for count, taken in timings.items()
    ]


async def _take_backlog(environment: BenchEnvironment, workers: int, seed: int, turns: int) -> Timing:
    """The workers are stopped while the backlog is written, and begin together."""
    settings = await environment.fresh(partitions=PARTITIONS, session_timeout=_SESSION_TIMEOUT)
    async with (
        running(settings, *["sessions"] * workers) as roles,
        httpx.AsyncClient() as client,
        asyncio.timeout(_WITHIN_S),
    ):
        # The last one's joining is over for the others too.
        for role in roles:
            await role.ready()
        for role in roles:
            os.kill(role.pid, signal.SIGSTOP)
        try:
            await send_backlog(settings, seed, turns)
        finally:
            woken_s = time.time()
            for role in roles:
                os.kill(role.pid, signal.SIGCONT)
        folded = [0.0]
        while sum(folded) < turns:
            await asyncio.sleep(_POLL_S)
            folded = [(await scrape(client, role))["turns_folded_total"] for role in roles]
    if not all(folded):
        raise BenchFailed(f"{folded.count(0.0)} of {workers} workers got no partition: run it again")
    return Timing(turns, max(written_ms for written_ms, _, _ in await folded_offsets(settings)) / 1000 - woken_s)


def measure_lengths(*, runs: int, probes: int) -> list[Figures]:
    """Cost at each of `POSITIONS`: medians over probes, then over runs; ratios are taken within a probe.

    Each run's history begins at another line; a probe is a run of words that is said at every position.
    """
    policy = policy_of(load_settings())
    prepared, costs, sizes = Prepared(policy), list[list[list[float]]](), list[list[int]]()
    for run in range(runs):
        say(f"session length, run {run + 1} of {runs}")
        session, histories = InMemory(policy), list[MemoryTable]()
        for turn in range(POSITIONS[-1] - REACH_TURNS + 1):
            if turn + REACH_TURNS in POSITIONS:
                histories.append(deepcopy(session.table))
            session.take([_said(prepared, run * len(prepared.lines) // runs + turn, turn)])
        sizes.append([history.size_bytes for history in histories])
        gc.collect()
        # A probe goes round all positions before the next one begins.
        places = range(len(POSITIONS))
        costs.append([[_go_on(prepared, policy, histories, place, n) for place in places] for n in range(probes)])
    return summarise_lengths(costs, sizes)


def _said(prepared: Prepared, line: int, turn: int) -> DecodedArrival:
    return prepared.line(line, "bench-long", turn, turn, turn * _SPACING)


def _go_on(prepared: Prepared, policy: Policy, histories: Sequence[MemoryTable], place: int, probe: int) -> float:
    """CPU seconds per turn of a session that goes on from its history, around a position."""
    session, turns = InMemory(policy, deepcopy(histories[place])), range(2 * REACH_TURNS)
    said = [_said(prepared, probe * len(turns) + n, POSITIONS[place] - REACH_TURNS + n) for n in turns]
    return sum(session.take([arrival]) for arrival in said) / len(said)


def summarise_lengths(costs: Sequence[Sequence[Sequence[float]]], sizes: Sequence[Sequence[int]]) -> list[Figures]:
    """Medians over probes, then over runs.

    Args:
        costs: CPU seconds per turn, `(n_runs, n_probes, n_positions)`.
        sizes: Bytes of state, `(n_runs, n_positions)`.
    """
    measured = np.array(costs)
    s_per_turn, ratios = (np.median(np.median(each, 1), 0) for each in (measured, measured / measured[..., :1]))
    columns = zip(POSITIONS, s_per_turn.tolist(), ratios.tolist(), np.median(sizes, 0).tolist(), strict=True)
    return [
        {"turn": turn, "us_per_turn": s * 1e6, "ratio": ratio, "state_bytes": round(size)}
        for turn, s, ratio, size in columns
    ]


class Population:
    """Open sessions that had so many turns each, and turns that any of them says next."""

    def __init__(self, policy: Policy, prepared: Prepared, sessions: int, turns_each: int) -> None:
        self._prepared, self._sessions = prepared, sessions
        self._after, spacing = timedelta(0), _FILLED_WITHIN / (sessions * turns_each)
        self._said = dict.fromkeys(range(sessions), 0)
        self.memory = InMemory(policy)
        for _ in range(turns_each):
            for first in range(0, sessions, BATCH_TURNS):
                self._say(range(first, min(first + BATCH_TURNS, sessions)), spacing)
        if (still := self.memory.fold.open_sessions) != sessions:
            raise BenchFailed(f"{still:,} of {sessions:,} sessions are open: look at `partition.open_sessions`")

    def probe(self, rng: random.Random) -> float:
        """Say one turn in each of `BATCH_TURNS` sessions; CPU seconds per turn."""
        return self._say(rng.sample(range(self._sessions), min(BATCH_TURNS, self._sessions)), _PROBE_SPACING)

    def _say(self, sessions: Sequence[int], spacing: timedelta) -> float:
        batch = []
        for offset, session in enumerate(sessions, self.memory.fold.offset + 1):
            batch.append(self._prepared.turn(session, self._said[session], offset, self._after))
            self._said[session] += 1
            self._after += spacing
        return self.memory.take(batch) / len(batch)


def cost_of(sessions: int, turns_each: int, passes: int = 1) -> Figures:
    """Fill and measure in this process: CPU time of a turn (median of passes), growth of the process, encoded state."""
    gc.set_threshold(_COLLECT_AFTER)
    policy, rng = policy_of(load_settings()), random.Random(sessions)  # noqa: S311 - repeatable, not secret
    prepared, process = Prepared(policy), psutil.Process()
    Population(policy, prepared, _WARM_UP_SESSIONS, turns_each)
    gc.collect()
    gc.freeze()
    before_bytes = process.memory_info().rss
    population = Population(policy, prepared, sessions, turns_each)
    memory_bytes, state_bytes = process.memory_info().rss - before_bytes, population.memory.table.size_bytes
    return {
        "sessions": sessions,
        "turns_each": turns_each,
        "us_per_turn": median(population.probe(rng) for _ in range(passes)) * 1e6,
        "memory_bytes": memory_bytes,
        "state_bytes": state_bytes,
    }


def cost_apart(sessions: int, turns_each: int, passes: int = 1) -> Figures:
    """The same in a process of its own, so that nothing of this one is measured with it."""
    what, too_slow = f"{sessions:,} sessions", f"end within {_COSTED_WITHIN_S:g} s: run with --quick"
    return apart(what, cost_of, sessions, turns_each, passes, within_s=_COSTED_WITHIN_S, too_slow=too_slow)


def measure_sessions(counts: Sequence[int], *, turns_each: int, passes: int) -> list[Figures]:
    """Costs of each count, the smallest first, to which the others are compared."""
    costs: list[Figures] = []
    for sessions in sorted(counts):
        say(f"{sessions:,} open sessions")
        cost = cost_apart(sessions, turns_each, passes)
        costs.append({**cost, "ratio": cost["us_per_turn"] / (costs or [cost])[0]["us_per_turn"]})
    return costs
