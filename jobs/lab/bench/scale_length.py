"""Cost of a turn early and late in a session: one session, the pure fold, a turn at a time.

At each position the same words are said, after a history of other ones: what differs is only how long the session is.
A turn is a micro-batch of its own, so that each one reads its session's state and writes it: the dearest case.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median

from msgspec import Struct

from jobs.lab.bench.prepared import InMemory, Prepared
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


def measure_lengths(*, runs: int, probes: int, say: Callable[[str], None]) -> list[LengthCost]:
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
