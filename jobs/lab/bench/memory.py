"""Memory of the sessions role: many sessions come and go through one partition, some stay open.

The pure fold and its table in this process, without Kafka: everything that grows with sessions is in these two. First
a number of open sessions of a stated length are filled in, to see what one takes; then short sessions stream by, each
two turns, spaced so that the time-out keeps the wanted number of them open.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from itertools import islice
from multiprocessing import get_context

import psutil
from msgspec import Struct

from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import BenchFailed, Figures, Say
from models.partition.sessions import DecodedArrival
from models.policy import Policy

FILLED_SESSIONS = 10_000
FILLED_TURNS = 12
"""Turns of each session that is filled in: its buffer is full, it has two segments and six vectors."""
LEVEL_RATIO = 1.05
"""Memory is level if the second half of the run needs at most this much more than its middle."""
_BATCH_TURNS = 1_000
_MILESTONES = 20
_REPLY_AFTER_SESSIONS = 7
"""The second turn of a session comes when so many others have begun."""
_MB = 1_000_000


class FootprintSize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        sessions: Sessions that stream by.
        open: Of them open at any time, at most.
        filled: Sessions filled in to see what one takes.
    """

    sessions: int
    open: int
    filled: int = FILLED_SESSIONS


FULL = FootprintSize(sessions=1_000_000, open=50_000)
QUICK = FootprintSize(sessions=40_000, open=2_000, filled=2_000)


class Milestone(Struct, frozen=True):
    """What was held after so many sessions.

    Attributes:
        seen: Sessions that have begun.
        open: Of them open.
        remembered: Closed and still remembered.
        state_mb: Encoded state.
        rss_mb: The whole process, interpreter and libraries included.
    """

    seen: int
    open: int
    remembered: int
    state_mb: float
    rss_mb: float


class HeldPartition(InMemory):
    """A partition's state under the fold, as the role holds it."""

    def take_turns(self, arrivals: Iterator[DecodedArrival], turns: int) -> bool:
        """Fold up to so many turns in micro-batches; False if there are no more."""
        batch: list[DecodedArrival] = []
        for begun in range(0, turns, _BATCH_TURNS):
            batch = list(islice(arrivals, min(_BATCH_TURNS, turns - begun)))
            self.take(batch)
        return bool(batch)


class DemoTraffic:
    """Makes turns: the demo's conversations, scored and embedded beforehand."""

    def __init__(self) -> None:
        self._prepared, self._offset = Prepared(Policy()), -1

    def filled(self, sessions: int, turns: int) -> Iterator[DecodedArrival]:
        """Open sessions of so many turns, turn about, within the time-out."""
        for turn in range(turns):
            for n in range(sessions):
                yield self._arrival(n, turn, timedelta(seconds=turn))

    def streaming(self, sessions: int, spacing: timedelta) -> Iterator[DecodedArrival]:
        """Sessions of two turns, one beginning every `spacing` of event time."""
        for n in range(sessions + _REPLY_AFTER_SESSIONS):
            if n < sessions:
                yield self._arrival(n, 0, n * spacing)
            if n >= _REPLY_AFTER_SESSIONS:
                yield self._arrival(n - _REPLY_AFTER_SESSIONS, 1, n * spacing)

    def _arrival(self, session: int, turn: int, after: timedelta) -> DecodedArrival:
        self._offset += 1
        return self._prepared.turn(session, turn, self._offset, after)


def measure(size: FootprintSize, policy: Policy, *, say: Say) -> Figures:
    """Fill, then stream.

    Raises:
        BenchFailed: The process did not grow at all while it was filled.
    """
    say(f"filling {size.filled:,} sessions of {FILLED_TURNS} turns")
    # In a process of its own: what one phase frees would hide what the other takes.
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as apart:
        filled_mb, state_bytes = apart.submit(_fill, size.filled, policy).result()
    if filled_mb <= 0:
        raise BenchFailed(f"{size.filled} sessions are too few to see in the process's memory: fill more")
    milestones = list(_stream(size, policy, say))
    rss = [milestone.rss_mb for milestone in milestones]
    middle = len(rss) // 2
    level = max(rss[middle:]) / rss[middle]
    return {
        "sessions": size.sessions,
        "mb_per_10000_sessions": filled_mb / size.filled * 10_000,
        "state_bytes_per_session": state_bytes / size.filled,
        "filled_turns": FILLED_TURNS,
        "level_ratio": level,
        "is_level": level <= LEVEL_RATIO,
        "most_open": max(milestone.open for milestone in milestones),
        "most_remembered": max(milestone.remembered for milestone in milestones),
        "milestones": milestones,
    }


def _fill(sessions: int, policy: Policy) -> tuple[float, int]:
    """Growth of the process in MB and bytes of state; a few sessions before load what the fold needs once."""
    source = DemoTraffic()
    HeldPartition(policy).take_turns(source.filled(200, FILLED_TURNS), 200 * FILLED_TURNS)
    gc.collect()
    before_mb = _rss_mb()
    held = HeldPartition(policy)
    held.take_turns(source.filled(sessions, FILLED_TURNS), sessions * FILLED_TURNS)
    gc.collect()
    return _rss_mb() - before_mb, held.table.size_bytes


def _stream(size: FootprintSize, policy: Policy, say: Say) -> Iterator[Milestone]:
    spacing = policy.session.timeout / max(1, size.open - 2 * _REPLY_AFTER_SESSIONS)
    arrivals = DemoTraffic().streaming(size.sessions, spacing)
    held = HeldPartition(policy)
    step = size.sessions // _MILESTONES
    seen = 0
    while held.take_turns(arrivals, 2 * step):
        seen = min(seen + step, size.sessions)
        state_mb = held.table.size_bytes / _MB
        milestone = Milestone(seen, held.fold.open_sessions, held.fold.closed_sessions, state_mb, _rss_mb())
        say(
            f"{seen:,} sessions seen, {milestone.open:,} open, {milestone.remembered:,} remembered: "
            f"{milestone.rss_mb:.0f} MB, state {state_mb:.0f} MB"
        )
        yield milestone


def _rss_mb() -> float:
    return float(psutil.Process().memory_info().rss) / _MB
