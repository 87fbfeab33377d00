"""Cost of a turn by the length of its session, and by the number of open sessions: the pure fold, in CPU time.

At each length the same words are said, after a history of other ones: what differs is only how long the session is.
A turn is a micro-batch of its own, so that each one reads its session's state and writes it: the dearest case. Numbers
of open sessions are measured in processes of their own, in micro-batches of turns of other sessions each.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Sequence
from datetime import timedelta
from statistics import median

import psutil

from jobs.lab.bench.apart import apart
from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import BenchFailed, Figures, Say
from models.policy import Policy
from streams.settings import load_settings
from streams.state.memory import MemoryTable
from streams.wiring import policy_of

POSITIONS = (10, 100, 1_000, 10_000)
"""Numbers of the turns whose cost is measured; the first is the one that others are compared with."""
REACH_TURNS = 5
"""A position is measured over the five turns up to it and the five after it."""
_SESSION = "bench-long"
_SPACING = timedelta(seconds=20)
BATCH_TURNS = 1_000
"""As the sessions role polls by default; each of these turns is another session's."""
_COLLECT_AFTER = 50_000
"""As `turntide worker` has it."""
_FILLED_WITHIN = timedelta(minutes=15)
"""Event time of the filling: no session falls silent for long enough to time out."""
_PROBE_SPACING = timedelta(milliseconds=1)
_RESERVE = 1.3
"""Memory asked for is the estimate times this."""
_FIRST_GUESS_BYTES = 8_192
_WITHIN_S = 3_600.0
_TOO_SLOW = f"end within {_WITHIN_S:g} s: run with --quick"


def measure_lengths(*, runs: int, probes: int, say: Say) -> list[Figures]:
    """Cost at each of `POSITIONS`: medians over probes, then over runs; ratios are taken within a probe.

    Args:
        runs: Histories that begin at another line.
        probes: Runs of words said at every position, per history.
        say: Called with what is going on.
    """
    policy = policy_of(load_settings())
    prepared, by_run, sizes = Prepared(policy), list[list[list[float]]](), list[list[int]]()
    for run in range(runs):
        say(f"session length, run {run + 1} of {runs}")
        histories = _histories(prepared, policy, first_line=run * len(prepared.lines) // runs)
        sizes.append([history.size_bytes for history in histories])
        gc.collect()
        # A probe goes round all positions before the next one begins.
        of_probes = [
            [_go_on(prepared, policy, table, turn, probe) for table, turn in zip(histories, POSITIONS, strict=True)]
            for probe in range(probes)
        ]
        by_run.append([list(position) for position in zip(*of_probes, strict=True)])
    return summarise_lengths(by_run, sizes)


def _histories(prepared: Prepared, policy: Policy, *, first_line: int) -> list[MemoryTable]:
    """A session's state as it stands before each position."""
    session, found = InMemory(policy), []
    starts = {position - REACH_TURNS for position in POSITIONS}
    for turn in range(max(starts) + 1):
        if turn in starts:
            found.append(_copy(session.table))
        session.take([prepared.line(first_line + turn, _SESSION, turn, turn, turn * _SPACING)])
    return found


def _copy(table: MemoryTable) -> MemoryTable:
    copied = MemoryTable()
    for name, parts in table.entities.items():
        copied.put(name, dict(parts))
    return copied


def _go_on(prepared: Prepared, policy: Policy, table: MemoryTable, position: int, probe: int) -> float:
    """CPU seconds per turn of a session that goes on from this state, around a position."""
    session, first = InMemory(policy, _copy(table)), position - REACH_TURNS
    said = [
        prepared.line(probe * 2 * REACH_TURNS + n, _SESSION, first + n, first + n, (first + n) * _SPACING)
        for n in range(2 * REACH_TURNS)
    ]
    return sum(session.take([arrival]) for arrival in said) / len(said)


def summarise_lengths(costs: Sequence[Sequence[Sequence[float]]], sizes: Sequence[Sequence[int]]) -> list[Figures]:
    """Medians over probes, then over runs.

    Args:
        costs: CPU seconds per turn by run, position and probe.
        sizes: Bytes of state by run and position.
    """
    found = []
    for place, turn in enumerate(POSITIONS):
        ratios = [median(here / first for here, first in zip(run[place], run[0], strict=True)) for run in costs]
        found.append(
            {
                "turn": turn,
                "us_per_turn": median(median(run[place]) for run in costs) * 1e6,
                "ratio": median(ratios),
                "state_bytes": round(median(size[place] for size in sizes)),
            }
        )
    return found


class Population:
    """Open sessions, and turns that any of them says next.

    Args:
        policy: The fold's.
        prepared: What is said.
        sessions: How many are open.
        turns_each: Turns that each of them has had.

    Raises:
        BenchFailed: The policy does not let as many be open.
    """

    def __init__(self, policy: Policy, prepared: Prepared, sessions: int, turns_each: int) -> None:
        self._prepared, self._sessions = prepared, sessions
        self._after, spacing = timedelta(0), _FILLED_WITHIN / (sessions * turns_each)
        self._said = dict.fromkeys(range(sessions), 0)
        self.memory = InMemory(policy, MemoryTable())
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
        for place, session in enumerate(sessions):
            offset = self.memory.fold.offset + 1 + place
            batch.append(self._prepared.turn(session, self._said[session], offset, self._after))
            self._said[session] += 1
            self._after += spacing
        return self.memory.take(batch) / len(batch)


def cost_of(sessions: int, turns_each: int, passes: int) -> Figures:
    """Fill and measure in this process.

    Args:
        sessions: How many are open.
        turns_each: Turns that each of them has before the measured ones.
        passes: Measured micro-batches, of which the median is taken.
    """
    gc.set_threshold(_COLLECT_AFTER)
    policy, rng = policy_of(load_settings()), random.Random(sessions)  # noqa: S311 - repeatable, not secret
    prepared, process = Prepared(policy), psutil.Process()
    Population(policy, prepared, BATCH_TURNS, turns_each)  # what the fold needs once
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


async def measure_sessions(
    counts: Sequence[int], *, turns_each: int, passes: int, say: Say
) -> tuple[list[Figures], list[str]]:
    """Measure each count in a process of its own, the smallest first, to which the others are compared.

    Returns:
        Costs, and what had to be left out: a count whose state would not fit into the memory that is free.

    Raises:
        BenchFailed: A process ended badly; the message holds the end of its log.
    """
    costs: list[Figures] = []
    for sessions in sorted(counts):
        each = costs[-1]["memory_bytes"] / costs[-1]["sessions"] if costs else _FIRST_GUESS_BYTES
        note = does_not_fit(sessions, bytes_each=each, free_bytes=psutil.virtual_memory().available)
        if note:
            say(note)
            return costs, [note]
        say(f"{sessions:,} open sessions")
        cost = await apart(
            f"{sessions:,} sessions", cost_of, sessions, turns_each, passes, within_s=_WITHIN_S, too_slow=_TOO_SLOW
        )
        costs.append({**cost, "ratio": cost["us_per_turn"] / (costs or [cost])[0]["us_per_turn"]})
    return costs, []


def does_not_fit(sessions: int, *, bytes_each: float, free_bytes: int) -> str | None:
    """Why so many sessions are left out, or None when there is room for them.

    >>> does_not_fit(1_000_000, bytes_each=4_096, free_bytes=2 * 2**30)
    '1,000,000 sessions are left out: they need about 5.0 GiB, 2.0 GiB are free'
    >>> does_not_fit(1_000, bytes_each=4_096, free_bytes=2 * 2**30)
    """
    needed_bytes = sessions * bytes_each * _RESERVE
    if needed_bytes <= free_bytes:
        return None
    needed, free = (f"{size / 2**30:.1f} GiB" for size in (needed_bytes, free_bytes))
    return f"{sessions:,} sessions are left out: they need about {needed}, {free} are free"
