"""Cost of a turn early and late in a session: one session, the pure fold, a turn at a time.

At each position the same words are said, after a history of other ones: what differs is only how long the session is.
A turn is a micro-batch of its own, so that each one reads its session's state and writes it: the dearest case.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Sequence
from datetime import timedelta
from statistics import median

import psutil
from msgspec import Struct

from jobs.lab.bench.apart import apart
from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import BenchFailed, Say
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


class LengthCost(Struct, frozen=True):
    """What a turn costs at one length of its session.

    Attributes:
        turn: Number of the turn.
        us_per_turn: Microseconds of CPU time of the fold, reading and writing the state in memory included.
        ratio: To the first position, taken over the same words in the same run.
        state_bytes: Of the session there.
    """

    turn: int
    us_per_turn: float
    ratio: float
    state_bytes: int


class _History:
    """A session as it stands before a position, to be gone on from any number of times."""

    def __init__(self, stood: InMemory, turn: int) -> None:
        self.turn = turn
        self.state_bytes = stood.table.size_bytes
        self._entities = {name: dict(parts) for name, parts in stood.table.entities.items()}

    def go_on(self, policy: Policy) -> InMemory:
        table = MemoryTable()
        for name, parts in self._entities.items():
            table.put(name, parts)
        return InMemory(policy, table)


def measure_lengths(*, runs: int, probes: int, say: Say) -> list[LengthCost]:
    """Cost at each of `POSITIONS`.

    Args:
        runs: Histories that begin at another line; medians are taken over them.
        probes: Runs of words said at every position, per history.
        say: Called with what is going on.
    """
    policy = policy_of(load_settings())
    prepared = Prepared(policy)
    costs: list[list[list[float]]] = []
    sizes: list[list[int]] = []
    for run in range(runs):
        say(f"session length, run {run + 1} of {runs}")
        histories = _histories(prepared, policy, first_line=run * len(prepared.lines) // runs)
        sizes.append([history.state_bytes for history in histories])
        costs.append(_probe(prepared, policy, histories, probes))
    return summarise_lengths(costs, sizes)


def _histories(prepared: Prepared, policy: Policy, *, first_line: int) -> list[_History]:
    session, found = InMemory(policy), []
    starts = {position - REACH_TURNS for position in POSITIONS}
    for turn in range(max(starts) + 1):
        if turn in starts:
            found.append(_History(session, turn))
        session.take([prepared.line(first_line + turn, _SESSION, turn, turn, turn * _SPACING)])
    return found


def _probe(prepared: Prepared, policy: Policy, histories: Sequence[_History], probes: int) -> list[list[float]]:
    """CPU seconds per turn, by position and probe. A probe goes round all positions before the next one begins."""
    gc.collect()
    found: list[list[float]] = [[] for _ in histories]
    for probe in range(probes):
        for place, history in enumerate(histories):
            session = history.go_on(policy)
            turns = range(history.turn, history.turn + 2 * REACH_TURNS)
            said = [
                prepared.line(probe * len(turns) + n, _SESSION, turn, turn, turn * _SPACING)
                for n, turn in enumerate(turns)
            ]
            found[place].append(sum(session.take([arrival]) for arrival in said) / len(said))
    return found


def summarise_lengths(costs: Sequence[Sequence[Sequence[float]]], sizes: Sequence[Sequence[int]]) -> list[LengthCost]:
    """Medians over probes, then over runs.

    Args:
        costs: CPU seconds per turn by run, position and probe.
        sizes: Bytes of state by run and position.
    """
    found = []
    for place, turn in enumerate(POSITIONS):
        by_run = [median(run[place]) for run in costs]
        ratios = [median(here / first for here, first in zip(run[place], run[0], strict=True)) for run in costs]
        state_bytes = round(median(size[place] for size in sizes))
        found.append(LengthCost(turn, median(by_run) * 1e6, median(ratios), state_bytes))
    return found


REFERENCE_SESSIONS = 1_000
"""So many sessions stand beside, in the same process: the ratio is taken to them, turn about."""
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


class SessionsCost(Struct, frozen=True):
    """What a turn costs, and memory, at a number of open sessions.

    Attributes:
        sessions: Open ones.
        turns_each: Turns that each of them had before.
        us_per_turn: Microseconds of CPU time of fold and table, in micro-batches of other sessions' turns.
        ratio: To `REFERENCE_SESSIONS`, measured turn about in the same process.
        memory_bytes: Growth of the process, from no session to all of them.
        state_bytes: Encoded state, which is what the changelog holds at least.
    """

    sessions: int
    turns_each: int
    us_per_turn: float
    ratio: float
    memory_bytes: int
    state_bytes: int

    @property
    def memory_bytes_per_session(self) -> float:
        """Growth of the process per session."""
        return self.memory_bytes / self.sessions


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
        self._prepared = prepared
        self._sessions = sessions
        self._next_turn = turns_each
        self._after = _FILLED_WITHIN
        self.memory = InMemory(policy, MemoryTable())
        self._fill(turns_each)

    def _fill(self, turns_each: int) -> None:
        spacing, offset = _FILLED_WITHIN / (self._sessions * turns_each), 0
        for turn in range(turns_each):
            for first in range(0, self._sessions, BATCH_TURNS):
                batch = []
                for session in range(first, min(first + BATCH_TURNS, self._sessions)):
                    batch.append(self._prepared.turn(session, turn, offset, offset * spacing))
                    offset += 1
                self.memory.take(batch)
        if (still := self.memory.fold.open_sessions) != self._sessions:
            raise BenchFailed(f"{still:,} of {self._sessions:,} sessions are open: look at `partition.open_sessions`")

    def probe(self, rng: random.Random) -> float:
        """Say one turn in each of `BATCH_TURNS` sessions, then put their state back as it was.

        Returns:
            CPU seconds per turn.
        """
        chosen = rng.sample(range(self._sessions), min(BATCH_TURNS, self._sessions))
        batch, table = [], self.memory.table
        for place, session in enumerate(chosen):
            self._after += _PROBE_SPACING
            batch.append(
                self._prepared.turn(session, self._next_turn, self.memory.fold.offset + 1 + place, self._after)
            )
        before = {arrival.event.session_id: dict(table.entities[arrival.event.session_id]) for arrival in batch}
        seconds = self.memory.take(batch)
        for session_id, parts in before.items():
            added = table.entities[session_id].keys() - parts.keys()
            table.put(session_id, {**dict.fromkeys(added), **parts})
        return seconds / len(batch)


def cost_of(sessions: int, turns_each: int, passes: int) -> SessionsCost:
    """Fill and measure in this process.

    Args:
        sessions: How many are open.
        turns_each: Turns that each of them has before the measured one.
        passes: Measured micro-batches, each beside one of `REFERENCE_SESSIONS`; medians are taken.
    """
    gc.set_threshold(_COLLECT_AFTER)
    policy, rng = policy_of(load_settings()), random.Random(sessions)  # noqa: S311 - repeatable, not secret
    prepared = Prepared(policy)
    reference = Population(policy, prepared, REFERENCE_SESSIONS, turns_each)
    gc.collect()
    gc.freeze()
    process = psutil.Process()
    before_bytes = process.memory_info().rss
    population = Population(policy, prepared, sessions, turns_each)
    memory_bytes = process.memory_info().rss - before_bytes
    pairs = [(population.probe(rng), reference.probe(rng)) for _ in range(passes)]
    return SessionsCost(
        sessions=sessions,
        turns_each=turns_each,
        us_per_turn=median(here for here, _ in pairs) * 1e6,
        ratio=median(here / beside for here, beside in pairs),
        memory_bytes=memory_bytes,
        state_bytes=population.memory.table.size_bytes,
    )


async def measure_sessions(
    counts: Sequence[int], *, turns_each: int, passes: int, say: Say
) -> tuple[list[SessionsCost], list[str]]:
    """Measure each count in a process of its own, the smallest first.

    Returns:
        Costs, and what had to be left out: a count whose state would not fit into the memory that is free.

    Raises:
        BenchFailed: A process ended badly; the message holds the end of its log.
    """
    costs: list[SessionsCost] = []
    for sessions in sorted(counts):
        each = costs[-1].memory_bytes_per_session if costs else _FIRST_GUESS_BYTES
        free_bytes = psutil.virtual_memory().available
        note = does_not_fit(sessions, bytes_each=each, free_bytes=free_bytes)
        if note:
            say(note)
            return costs, [note]
        say(f"{sessions:,} open sessions")
        cost = await apart(
            f"{sessions:,} sessions", cost_of, sessions, turns_each, passes, within_s=_WITHIN_S, too_slow=_TOO_SLOW
        )
        costs.append(cost)
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
