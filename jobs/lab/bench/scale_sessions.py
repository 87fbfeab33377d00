"""Cost of a turn, and memory, with many open sessions: fold and table in a process of their own.

`python -m jobs.lab.bench.scale_sessions SESSIONS TURNS_EACH PASSES` prints its figures as JSON. Every session is
filled by the fold itself; nothing is copied, so that memory is what the role would need for them.
"""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median

import msgspec
import psutil
from msgspec import Struct

from jobs.lab.bench.figures import BenchFailed
from jobs.lab.bench.prepared import InMemory, Prepared
from models.policy import Policy
from streams.settings import load_settings
from streams.state.memory import MemoryTable
from streams.wiring import policy_of

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
_LOG_TAIL_CHARS = 2_000


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
        if (still := self.memory.open_sessions) != self._sessions:
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
            batch.append(self._prepared.turn(session, self._next_turn, self.memory.next_offset + place, self._after))
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


def measure_sessions(
    counts: Sequence[int], *, turns_each: int, passes: int, say: Callable[[str], None]
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
        costs.append(_in_child(sessions, turns_each, passes))
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


def _in_child(sessions: int, turns_each: int, passes: int) -> SessionsCost:
    arguments = [str(number) for number in (sessions, turns_each, passes)]
    command = [sys.executable, "-m", "jobs.lab.bench.scale_sessions", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_WITHIN_S)  # noqa: S603 - our own
    except subprocess.CalledProcessError as error:
        tail = error.stderr.decode(errors="replace")[-_LOG_TAIL_CHARS:]
        raise BenchFailed(f"{sessions:,} sessions: ended with code {error.returncode}:\n{tail}") from error
    except subprocess.TimeoutExpired as error:
        raise BenchFailed(f"{sessions:,} sessions: not done within {_WITHIN_S:g} s; run with --quick") from error
    return msgspec.json.decode(done.stdout, type=SessionsCost)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(cost_of(*map(int, sys.argv[1:]))).decode())
