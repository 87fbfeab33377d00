"""Scaling: long sessions, many sessions, several workers."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from jobs.lab.bench.environment import Ground
from jobs.lab.bench.scale_length import LengthCost, measure_lengths
from jobs.lab.bench.scale_sessions import SessionsCost, measure_sessions
from jobs.lab.bench.scale_workers import PARTITIONS, WorkersRate, measure_workers


class Size(Struct, frozen=True):
    """How much is measured.

    Attributes:
        runs: Of each measurement, of which the median is taken.
        probes: Runs of words per position of a session.
        sessions: Numbers of open sessions.
        turns_each: Turns that each open session has had.
        passes: Measured micro-batches at each number of sessions.
        workers: Numbers of workers.
        backlog_turns: What the workers take.
    """

    runs: int
    probes: int
    sessions: tuple[int, ...]
    turns_each: int
    passes: int
    workers: tuple[int, ...]
    backlog_turns: int


FULL = Size(
    runs=3,
    probes=64,
    sessions=(1_000, 10_000, 100_000, 1_000_000),
    turns_each=2,
    passes=31,
    workers=(1, 2, 4),
    backlog_turns=30_000,
)
QUICK = Size(
    runs=1, probes=16, sessions=(1_000, 10_000), turns_each=2, passes=5, workers=(1, 2, 4), backlog_turns=8_000
)


class ScaleReport(Struct, frozen=True):
    """Every curve, point by point.

    Attributes:
        ratio_long_session: Cost of a turn at the longest session to that at the shortest.
        session_length: Cost by session length.
        sessions: Cost and memory by number of open sessions.
        workers: Throughput by number of workers.
        partitions: That the workers share.
        notes: What was left out, and why.
        runs: Medians are taken over so many.
        load_average_at_start: Over the last minute, before anything was started.
        cpus: More workers than these cannot be faster; the broker needs some of them too.
    """

    ratio_long_session: float
    session_length: list[LengthCost]
    sessions: list[SessionsCost]
    workers: list[WorkersRate]
    partitions: int
    notes: list[str]
    runs: int
    load_average_at_start: float
    cpus: int


async def measure(ground: Ground, size: Size, *, say: Callable[[str], None]) -> ScaleReport:
    """Run everything, one after the other.

    Args:
        ground: A broker without other work, and an empty folder.
        size: How much.
        say: Called with what is going on.

    Raises:
        BenchFailed: A process failed.
    """
    workers = await measure_workers(
        ground.bootstrap, ground.home, size.workers, runs=size.runs, turns=size.backlog_turns, say=say
    )
    lengths = measure_lengths(runs=size.runs, probes=size.probes, say=say)
    sessions, notes = measure_sessions(size.sessions, turns_each=size.turns_each, passes=size.passes, say=say)
    return ScaleReport(
        ratio_long_session=lengths[-1].ratio,
        session_length=lengths,
        sessions=sessions,
        workers=workers,
        partitions=PARTITIONS,
        notes=notes,
        runs=size.runs,
        load_average_at_start=ground.load_average,
        cpus=os.cpu_count() or 1,
    )
