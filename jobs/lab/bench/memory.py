"""Memory of the sessions role: many sessions come and go through one partition, some stay open.

The pure fold and its table in this process, without Kafka: everything that grows with sessions is in these two. First
a number of open sessions of a stated length are filled in, to see what one takes; then short sessions stream by, each
two turns, spaced so that the time-out keeps the wanted number of them open.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from multiprocessing import get_context

import numpy as np
import psutil
from msgspec import Struct
from numpy.typing import NDArray

from jobs.demo.conversations import load_conversations
from jobs.lab.bench.figures import BenchFailed
from models.events import Position, Role, Turn
from models.partition.sessions import Arrival, PartitionFold
from models.policy import Policy
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable

Say = Callable[[str], None]

FILLED_SESSIONS = 10_000
FILLED_TURNS = 12
"""Turns of each session that is filled in: its buffer is full, it has two segments and six vectors."""
LEVEL_RATIO = 1.05
"""Memory is level if the second half of the run needs at most this much more than its middle."""
_BATCH_TURNS = 1_000
_MILESTONES = 20
_REPLY_AFTER_SESSIONS = 7
"""The second turn of a session comes when so many others have begun."""
_START = datetime(2026, 1, 5, tzinfo=UTC)
_MB = 1_000_000


class Size(Struct, frozen=True):
    """How much is measured.

    Attributes:
        sessions: Sessions that stream by.
        open: Of them open at any time, at most.
        filled: Sessions filled in to see what one takes.
    """

    sessions: int
    open: int
    filled: int = FILLED_SESSIONS


FULL = Size(sessions=1_000_000, open=50_000)
QUICK = Size(sessions=40_000, open=2_000, filled=2_000)


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


class Report(Struct, frozen=True):
    """Figures of one run.

    Attributes:
        mb_per_10000_sessions: Growth of the process per 10,000 open sessions of `filled_turns` turns.
        state_bytes_per_session: Encoded state of one of them.
        level_ratio: Most memory of the second half over that in the middle.
        is_level: Whether that is at most 1.05.
        most_open: Sessions open at the most.
        most_remembered: Closed ones remembered at the most.
    """

    sessions: int
    mb_per_10000_sessions: float
    state_bytes_per_session: float
    filled_turns: int
    level_ratio: float
    is_level: bool
    most_open: int
    most_remembered: int
    milestones: list[Milestone]


class Held:
    """A partition's state under the fold, as the role holds it.

    Args:
        policy: Rules, of which the bounds of `partition` matter here.
    """

    def __init__(self, policy: Policy) -> None:
        self.table = MemoryTable()
        self.fold = PartitionFold(self.table.entities, policy)
        self.applied = 0

    def take(self, arrivals: Iterator[Arrival], *, turns: int) -> bool:
        """Fold up to so many turns in micro-batches; False if there are no more."""
        batch: list[Arrival] = []
        for begun in range(0, turns, _BATCH_TURNS):
            batch = list(islice(arrivals, min(_BATCH_TURNS, turns - begun)))
            for folded in self.fold.fold(batch):
                parts = keyed(folded.changed)
                self.applied += len(parts)
                self.table.apply(parts, offset=folded.offset, applied=self.applied, tail=None, now_ms=0)
        return bool(batch)

    @property
    def entries(self) -> int:
        """Entities in the table, the partition's own included."""
        return len(self.table.entities)

    @property
    def deadline_entries(self) -> int:
        """Entries with which the fold watches deadlines."""
        return self.fold.deadline_entries


class Sessions:
    """Makes turns: contents of the demo's conversations, vectors of a small pool.

    Args:
        seed: Of risks and vectors.
    """

    def __init__(self, seed: int = 0) -> None:
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._contents = [text for talk in load_conversations() for turn in talk.turns for text in turn.values()]
        self._vectors: list[NDArray[np.float32]] = list(
            np.random.default_rng(seed).standard_normal((256, 256)).astype(np.float32)
        )
        self._risks = [rng.random() * 0.3 for _ in range(997)]
        self._offset = -1

    def filled(self, sessions: int, turns: int) -> Iterator[Arrival]:
        """Open sessions of so many turns, turn about, within the time-out."""
        for turn in range(turns):
            for n in range(sessions):
                yield self._arrival(f"filled-{n:08d}", turn, _START + timedelta(seconds=turn))

    def streaming(self, sessions: int, spacing: timedelta) -> Iterator[Arrival]:
        """Sessions of two turns, one beginning every `spacing` of event time."""
        for n in range(sessions + _REPLY_AFTER_SESSIONS):
            now = _START + n * spacing
            if n < sessions:
                yield self._arrival(f"short-{n:08d}", 0, now)
            if n >= _REPLY_AFTER_SESSIONS:
                yield self._arrival(f"short-{n - _REPLY_AFTER_SESSIONS:08d}", 1, now)

    def _arrival(self, session_id: str, number: int, now: datetime) -> Arrival:
        self._offset += 1
        said_by_user = number % 2 == 0
        turn = Turn(
            session_id=session_id,
            user_id=f"user-of-{session_id}",
            app_id="helpdesk",
            turn=number,
            role=Role.USER if said_by_user else Role.ASSISTANT,
            content=self._contents[self._offset % len(self._contents)],
            timestamp=now,
        )
        vector = self._vectors[self._offset % len(self._vectors)] if said_by_user else None
        risk = self._risks[self._offset % len(self._risks)]
        return Arrival(turn, Position("turns", 0, self._offset), now, risk, vector)


def measure(size: Size, policy: Policy, *, say: Say) -> Report:
    """Fill, then stream.

    Args:
        size: How much.
        policy: The rules; its time-out sets the pace.
        say: Called with what is going on.

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
    return Report(
        sessions=size.sessions,
        mb_per_10000_sessions=filled_mb / size.filled * 10_000,
        state_bytes_per_session=state_bytes / size.filled,
        filled_turns=FILLED_TURNS,
        level_ratio=level,
        is_level=level <= LEVEL_RATIO,
        most_open=max(milestone.open for milestone in milestones),
        most_remembered=max(milestone.remembered for milestone in milestones),
        milestones=milestones,
    )


def _fill(sessions: int, policy: Policy) -> tuple[float, int]:
    """Growth of the process in MB and bytes of state; a few sessions before load what the fold needs once."""
    source = Sessions()
    Held(policy).take(source.filled(200, FILLED_TURNS), turns=200 * FILLED_TURNS)
    gc.collect()
    before_mb = _rss_mb()
    held = Held(policy)
    held.take(source.filled(sessions, FILLED_TURNS), turns=sessions * FILLED_TURNS)
    gc.collect()
    return _rss_mb() - before_mb, held.table.size_bytes


def _stream(size: Size, policy: Policy, say: Say) -> Iterator[Milestone]:
    spacing = policy.session.timeout / max(1, size.open - 2 * _REPLY_AFTER_SESSIONS)
    arrivals = Sessions().streaming(size.sessions, spacing)
    held = Held(policy)
    step = size.sessions // _MILESTONES
    seen = 0
    while held.take(arrivals, turns=2 * step):
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
