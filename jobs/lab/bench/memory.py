"""Memory of the sessions role: many sessions come and go through one partition, some stay open.

The pure fold and its table in this process, without Kafka: everything that grows with sessions is in these two. Open
sessions of a stated length show what one takes; then short sessions stream by, each two turns, spaced so that the
time-out keeps the wanted number of them open.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import psutil

from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import BenchFailed, Figures, say
from jobs.lab.bench.scale import cost_apart
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from streams.settings import load_settings
from streams.wiring import policy_of

FILLED_TURNS = 12
"""Turns of each session that is filled in: its buffer is full, it has two segments and six vectors."""
LEVEL_RATIO = 1.05
"""Memory is level if the second half of the run needs at most this much more than its middle."""
_BATCH_TURNS = 1_000
_MILESTONES = 20
_REPLY_AFTER_SESSIONS = 7
"""The second turn of a session comes when so many others have begun."""
_MB = 1_000_000
QUICK = {"sessions": 40_000, "open_at_once": 2_000, "filled": 2_000}


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


def measure(*, sessions: int = 1_000_000, open_at_once: int = 50_000, filled: int = 10_000) -> Figures:
    """Fill in sessions to see what one takes, then let sessions stream by, at most so many open at once."""
    say(f"filling {filled:,} sessions of {FILLED_TURNS} turns")
    cost = cost_apart(filled, FILLED_TURNS)
    if cost["memory_bytes"] <= 0:
        raise BenchFailed(f"{filled} sessions are too few to see in the process's memory: fill more")
    milestones = list(_stream(sessions, open_at_once, policy_of(load_settings())))
    rss = [milestone["rss_mb"] for milestone in milestones]
    middle = len(rss) // 2
    level = max(rss[middle:]) / rss[middle]
    return {
        "sessions": sessions,
        "mb_per_10000_sessions": cost["memory_bytes"] / _MB / filled * 10_000,
        "state_bytes_per_session": cost["state_bytes"] / filled,
        "filled_turns": FILLED_TURNS,
        "level_ratio": level,
        "is_level": level <= LEVEL_RATIO,
        "most_open": max(milestone["open"] for milestone in milestones),
        "most_remembered": max(milestone["remembered"] for milestone in milestones),
        "milestones": milestones,
    }


def _stream(sessions: int, open_at_once: int, policy: Policy) -> Iterator[Figures]:
    """Counts after so many sessions had begun; the memory is that of the whole process."""
    spacing = policy.session.timeout / max(1, open_at_once - 2 * _REPLY_AFTER_SESSIONS)
    arrivals, held = streaming(sessions, spacing), InMemory(policy)
    step, seen = sessions // _MILESTONES, 0
    while take_turns(held, arrivals, 2 * step):
        seen = min(seen + step, sessions)
        milestone = {
            "seen": seen,
            "open": held.fold.open_sessions,
            "remembered": held.fold.closed_sessions,
            "state_mb": held.table.size_bytes / _MB,
            "rss_mb": psutil.Process().memory_info().rss / _MB,
        }
        say("{seen:,} seen, {open:,} open, {remembered:,} remembered: {rss_mb:.0f} MB".format(**milestone))
        yield milestone
