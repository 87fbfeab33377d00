"""Memory of the sessions role: many sessions come and go through one partition, some stay open.

The pure fold and its table in this process, without Kafka: everything that grows with sessions is in these two. First
a number of open sessions of a stated length are filled in, to see what one takes; then short sessions stream by, each
two turns, spaced so that the time-out keeps the wanted number of them open.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import psutil
from msgspec import Struct

from jobs.lab.bench.apart import apart
from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import BenchFailed, Figures, Say
from models.partition.sessions import DecodedArrival
from models.policy import Policy

FILLED_TURNS = 12
"""Turns of each session that is filled in: its buffer is full, it has two segments and six vectors."""
LEVEL_RATIO = 1.05
"""Memory is level if the second half of the run needs at most this much more than its middle."""
_BATCH_TURNS = 1_000
_MILESTONES = 20
_REPLY_AFTER_SESSIONS = 7
"""The second turn of a session comes when so many others have begun."""
_WITHIN_S = 3_600.0
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
    filled: int = 10_000


QUICK = FootprintSize(sessions=40_000, open=2_000, filled=2_000)


def filling(sessions: int) -> Iterator[DecodedArrival]:
    """Open sessions of `FILLED_TURNS`, turn about, within the time-out."""
    prepared = Prepared(Policy())
    for offset in range(sessions * FILLED_TURNS):
        turn, session = divmod(offset, sessions)
        yield prepared.turn(session, turn, offset, timedelta(seconds=turn))


def streaming(sessions: int, spacing: timedelta) -> Iterator[DecodedArrival]:
    """Sessions of two turns, one beginning every `spacing` of event time."""
    prepared, offset = Prepared(Policy()), 0
    for n in range(sessions + _REPLY_AFTER_SESSIONS):
        for session, turn in ((n, 0), (n - _REPLY_AFTER_SESSIONS, 1)):
            if 0 <= session < sessions:
                yield prepared.turn(session, turn, offset, n * spacing)
                offset += 1


def take_turns(held: InMemory, arrivals: Iterator[DecodedArrival], turns: int) -> bool:
    """Fold up to so many turns in micro-batches; False if there are no more."""
    batch: list[DecodedArrival] = []
    for begun in range(0, turns, _BATCH_TURNS):
        batch = list(islice(arrivals, min(_BATCH_TURNS, turns - begun)))
        held.take(batch)
    return bool(batch)


def measure(size: FootprintSize, policy: Policy, *, say: Say) -> Figures:
    """Fill, then stream.

    Raises:
        BenchFailed: The process did not grow at all while it was filled.
    """
    say(f"filling {size.filled:,} sessions of {FILLED_TURNS} turns")
    # In a process of its own: what one phase frees would hide what the other takes.
    filled_mb, state_bytes = asyncio.run(
        apart("filling", _fill, size.filled, policy, within_s=_WITHIN_S, too_slow="end: fill fewer sessions")
    )
    if filled_mb <= 0:
        raise BenchFailed(f"{size.filled} sessions are too few to see in the process's memory: fill more")
    milestones = list(_stream(size, policy, say))
    rss = [milestone["rss_mb"] for milestone in milestones]
    middle = len(rss) // 2
    level = max(rss[middle:]) / rss[middle]
    return {
        "sessions": size.sessions,
        "mb_per_10000_sessions": filled_mb / size.filled * 10_000,
        "state_bytes_per_session": state_bytes / size.filled,
        "filled_turns": FILLED_TURNS,
        "level_ratio": level,
        "is_level": level <= LEVEL_RATIO,
        "most_open": max(milestone["open"] for milestone in milestones),
        "most_remembered": max(milestone["remembered"] for milestone in milestones),
        "milestones": milestones,
    }


def _fill(sessions: int, policy: Policy) -> tuple[float, int]:
    """Growth of the process in MB and bytes of state; a few sessions before load what the fold needs once."""
    take_turns(InMemory(policy), filling(200), 200 * FILLED_TURNS)
    arrivals, held = filling(sessions), InMemory(policy)
    first = [next(arrivals)]
    gc.collect()
    before_mb = _rss_mb()
    held.take(first)
    take_turns(held, arrivals, sessions * FILLED_TURNS)
    gc.collect()
    return _rss_mb() - before_mb, held.table.size_bytes


def _stream(size: FootprintSize, policy: Policy, say: Say) -> Iterator[Figures]:
    """What was held after so many sessions had begun; the memory is that of the whole process."""
    spacing = policy.session.timeout / max(1, size.open - 2 * _REPLY_AFTER_SESSIONS)
    arrivals, held = streaming(size.sessions, spacing), InMemory(policy)
    step, seen = size.sessions // _MILESTONES, 0
    while take_turns(held, arrivals, 2 * step):
        seen = min(seen + step, size.sessions)
        milestone = {
            "seen": seen,
            "open": held.fold.open_sessions,
            "remembered": held.fold.closed_sessions,
            "state_mb": held.table.size_bytes / _MB,
            "rss_mb": _rss_mb(),
        }
        say("{seen:,} seen, {open:,} open, {remembered:,} remembered: {rss_mb:.0f} MB".format(**milestone))
        yield milestone


def _rss_mb() -> float:
    return float(psutil.Process().memory_info().rss) / _MB
