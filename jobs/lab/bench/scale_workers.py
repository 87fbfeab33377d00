"""Throughput of one, two and more session workers on one backlog, on a real broker on the same machine.

All workers are ready and share the partitions before there is anything to do. While the backlog is written they are
stopped (SIGSTOP, for far less than a session time-out), so that they begin together, with all of it before them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx
from msgspec import Struct

from jobs.lab.bench.figures import BenchFailed, Timing, ratio
from jobs.lab.bench.sessions_role import scrape
from jobs.lab.bench.traffic import Traffic, send_all
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from models.events.topics import SESSION_STATE
from streams.kafka.client import read_to_end
from streams.settings import Settings, load_settings

PARTITIONS = 8
_SESSION_TIMEOUT = timedelta(seconds=30)
_POLL_S = 0.25
_WITHIN_S = 600.0
_READY_WITHIN_S = 120.0


class WorkersRate(Struct, frozen=True):
    """How fast a number of workers is.

    Attributes:
        workers: Processes of the sessions role in one group.
        turns_per_s: Of all of them together, from the first to the last.
        ratio: To one worker, in the same run.
    """

    workers: int
    turns_per_s: float
    ratio: float


async def measure_workers(
    bootstrap: str, home: Path, counts: Sequence[int], *, runs: int, turns: int, say: Callable[[str], None]
) -> list[WorkersRate]:
    """Throughput by number of workers.

    Args:
        bootstrap: A broker on this machine without other work.
        home: An empty folder.
        counts: Numbers of workers, each at most `PARTITIONS`; the first is the one that others are compared with.
        runs: How often each is measured; medians are taken.
        turns: Length of the backlog.
        say: Called with what is going on.

    Raises:
        BenchFailed: A worker failed or got no partition.
    """
    timings: dict[int, list[Timing]] = {count: [] for count in counts}
    for run in range(runs):
        say(f"workers, run {run + 1} of {runs}")
        for count in counts:
            timing = await _take_backlog(bootstrap, home, count, run, turns)
            timings[count].append(timing)
            say(f"  {count} workers: {timing.turns_per_s:,.0f} turns/s")
    first = timings[counts[0]]
    return [
        WorkersRate(count, median(timing.turns_per_s for timing in taken), ratio(taken, first))
        for count, taken in timings.items()
    ]


async def _take_backlog(bootstrap: str, home: Path, workers: int, seed: int, turns: int) -> Timing:
    settings = load_settings(
        kafka={"bootstrap": bootstrap, "partitions": PARTITIONS, "session_timeout": _SESSION_TIMEOUT},
        topic_prefix=f"bench-{uuid.uuid4().hex[:8]}",
        data_dir=home,
    )
    await apply_topics(settings)
    async with _ready(settings, workers) as roles, httpx.AsyncClient() as client, asyncio.timeout(_WITHIN_S):
        with _Held(roles):
            await send_all(settings, Traffic(seed).backlog(turns, ends_at=datetime.now(UTC)))
            woken_s = time.time()
        folded = [0.0]
        while sum(folded) < turns:
            await asyncio.sleep(_POLL_S)
            folded = [(await scrape(client, role))["turns_folded_total"] for role in roles]
    if not all(folded):
        raise BenchFailed(f"{folded.count(0.0)} of {workers} workers got no partition: run it again")
    return Timing(turns, await _last_written_s(settings) - woken_s)


@asynccontextmanager
async def _ready(settings: Settings, workers: int) -> AsyncIterator[list[RoleProcess]]:
    """Workers that are all ready at the same time: the last one's joining is over for the others too."""
    logs = settings.data_dir / "logs"
    roles = [
        RoleProcess("sessions", settings, log=logs / f"{settings.topic_prefix}-{number}.log")
        for number in range(workers)
    ]
    try:
        for role in roles:
            role.start()
        async with httpx.AsyncClient() as client, asyncio.timeout(_READY_WITHIN_S):
            await asyncio.gather(*(role.ready(_READY_WITHIN_S) for role in roles))
            await _all_ready(client, roles)
        yield roles
    finally:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(RoleProcess.stop, roles))


async def _all_ready(client: httpx.AsyncClient, roles: Sequence[RoleProcess]) -> None:
    while True:
        answers = await asyncio.gather(*(client.get(f"{role.url}/readyz") for role in roles))
        if all(answer.status_code == httpx.codes.OK for answer in answers):
            return
        await asyncio.sleep(_POLL_S)


class _Held:
    """Processes that do nothing inside the block."""

    def __init__(self, roles: Sequence[RoleProcess]) -> None:
        self._pids = [role.pid for role in roles]

    def __enter__(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)


async def _last_written_s(settings: Settings) -> float:
    """When the last state was written."""
    last_ms = 0
    async for record in read_to_end(settings.kafka, SESSION_STATE.full_name(settings.topic_prefix)):
        last_ms = max(last_ms, record.timestamp)
    return last_ms / 1000
