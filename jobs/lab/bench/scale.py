"""Scaling: long sessions, many sessions, several workers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

import httpx
from msgspec import Struct

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, Say, Timing, ratio
from jobs.lab.bench.scale_folds import measure_lengths, measure_sessions
from jobs.lab.bench.sessions_role import folded_offsets, running, scrape
from jobs.lab.bench.traffic import TurnTraffic, send_all
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess

PARTITIONS = 8
_SESSION_TIMEOUT = timedelta(seconds=30)
_POLL_S = 0.25
_WITHIN_S = 600.0


class ScaleSize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        runs: Of each measurement, of which the median is taken.
        probes: Runs of words per position of a session.
        sessions: Numbers of open sessions.
        passes: Measured micro-batches at each number of sessions.
        backlog_turns: What the workers take.
        workers: Numbers of workers.
        turns_each: Turns that each open session has had.
    """

    runs: int
    probes: int
    sessions: tuple[int, ...]
    passes: int
    backlog_turns: int
    workers: tuple[int, ...] = (1, 2, 4)
    turns_each: int = 2


FULL = ScaleSize(runs=3, probes=64, sessions=(1_000, 10_000, 100_000, 1_000_000), passes=31, backlog_turns=30_000)
QUICK = ScaleSize(runs=1, probes=16, sessions=(1_000, 10_000), passes=5, backlog_turns=8_000)


async def measure(environment: BenchEnvironment, size: ScaleSize, *, say: Say) -> Figures:
    """Run everything, one after the other.

    Raises:
        BenchFailed: A process failed.
    """
    workers = await measure_workers(environment, size.workers, runs=size.runs, turns=size.backlog_turns, say=say)
    lengths = measure_lengths(runs=size.runs, probes=size.probes, say=say)
    sessions, notes = await measure_sessions(size.sessions, turns_each=size.turns_each, passes=size.passes, say=say)
    return {
        "ratio_long_session": lengths[-1]["ratio"],
        "session_length": lengths,
        "sessions": sessions,
        "workers": workers,
        "partitions": PARTITIONS,
        "notes": notes,
        "runs": size.runs,
    }


async def measure_workers(
    environment: BenchEnvironment, counts: Sequence[int], *, runs: int, turns: int, say: Say
) -> list[Figures]:
    """Throughput by number of workers.

    Raises:
        BenchFailed: A worker failed or got no partition.
    """
    timings: dict[int, list[Timing]] = {count: [] for count in counts}
    for run in range(runs):
        say(f"workers, run {run + 1} of {runs}")
        for count in counts:
            timings[count].append(await _take_backlog(environment, count, run, turns))
            say(f"  {count} workers: {timings[count][-1].turns_per_s:,.0f} turns/s")
    return [
        {
            "workers": count,
            "turns_per_s": median(timing.turns_per_s for timing in taken),
            "ratio": ratio(taken, timings[counts[0]]),
        }
        for count, taken in timings.items()
    ]


async def _take_backlog(environment: BenchEnvironment, workers: int, seed: int, turns: int) -> Timing:
    """The workers are stopped while the backlog is written, and begin together."""
    settings = environment.settings(partitions=PARTITIONS, session_timeout=_SESSION_TIMEOUT)
    await apply_topics(settings)
    async with (
        running(settings, *["sessions"] * workers) as roles,
        httpx.AsyncClient() as client,
        asyncio.timeout(_WITHIN_S),
    ):
        # The last one's joining is over for the others too.
        await _all_ready(client, roles)
        for role in roles:
            os.kill(role.pid, signal.SIGSTOP)
        try:
            await send_all(settings, TurnTraffic(seed).backlog(turns, ends_at=datetime.now(UTC)))
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


async def _all_ready(client: httpx.AsyncClient, roles: Sequence[RoleProcess]) -> None:
    while True:
        answers = [await client.get(f"{role.url}/readyz") for role in roles]
        if all(answer.status_code == httpx.codes.OK for answer in answers):
            return
        await asyncio.sleep(_POLL_S)
