"""A rolling restart under load: every worker of two per role is asked to stop and started again, one after another.

That is what an upgrade does. Nothing is harmed; what is left must equal a replay of the logs, as after any chaos, and
the longest pause of what each role writes says what its readers notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic

from msgspec.structs import asdict

from jobs.lab.chaos.driver import SETTLED_WITHIN_S, now_ms, send_load
from jobs.lab.chaos.result import Compared, compared
from jobs.lab.chaos.supervisor import ROLES, supervised
from jobs.lab.chaos.traffic import traffic
from jobs.replay.comparison import settle
from models.errors import ConfigurationError
from streams.oracle.comparison import TopicOutputs
from streams.oracle.replay import FOLDED
from streams.settings import Settings

WORKERS = 2
"""Of each role."""
_STEADY_S = 2.0
"""Load before the first worker and after the last one."""
_SPAN = timedelta(hours=100)
_MOST_TURNS = 1_000_000


class RollingResult(Compared, kw_only=True):
    """What a rolling restart did and found.

    Attributes:
        restarted: Workers in the order in which they were restarted.
        not_in_order: Those of them that did not stop by themselves in time.
        longest_pause_s: Folding role → longest time without an output of it, while turns were sent.
        restart_s: Longest time from asking a worker to stop until its successor was ready.
    """

    restarted: list[str]
    not_in_order: list[str]
    longest_pause_s: dict[str, float]
    restart_s: float

    @property
    def failed(self) -> bool:
        """Whether something differed, or a worker had to be ended."""
        return self.differences > 0 or bool(self.not_in_order)


def roles_of(names: str) -> tuple[str, ...]:
    """The roles that are named, comma separated, in the order in which they are restarted.

    Raises:
        ConfigurationError: One of them is none.

    >>> roles_of("memory,sessions")
    ('sessions', 'memory')
    """
    named = {name.strip() for name in names.split(",")}
    if unknown := sorted(named - set(ROLES)):
        raise ConfigurationError(f"--roles {names}: {unknown[0]} cannot be restarted. There are {', '.join(ROLES)}")
    return tuple(role for role in ROLES if role in named)


async def roll(
    settings: Settings, *, roles: Sequence[str], turns_per_s: float, seed: int, report: Callable[[str], None]
) -> RollingResult:
    """Start, send, restart, compare, on topics that are there; everything that was started is ended on the way out.

    Raises:
        TurntideError: A worker did not start, or the comparison could not be made.
    """
    began_s = monotonic()
    workers = [f"{role}-{number}" for role in roles for number in range(WORKERS)]
    async with supervised(settings, workers, vector_server="index" in roles) as supervisor:
        done, sent = asyncio.Event(), set[tuple[str, int]]()
        load = traffic(seed, turns=_MOST_TURNS, ends_at=datetime.now(UTC), span=_SPAN)
        producing = asyncio.create_task(send_load(settings, load, turns_per_s, sent.add, done))
        began_ms, longest_s, hard = now_ms(), 0.0, []
        try:
            await asyncio.sleep(_STEADY_S)
            for name in workers:
                asked_s = monotonic()
                if code := await supervisor.restart(name):
                    hard.append(f"{name}: exit code {code}")
                away_s = monotonic() - asked_s
                longest_s = max(longest_s, away_s)
                report(f"{name} is back after {away_s:.1f} s")
            await asyncio.sleep(_STEADY_S)
        finally:
            done.set()
            await producing
        ended_ms = now_ms()
        report("comparing with a replay")
        settled = await settle(settings, within_s=SETTLED_WITHIN_S, index_url=supervisor.index_url)
    return RollingResult(
        **asdict(compared(settled, sent, began_s)),
        restarted=workers,
        not_in_order=hard,
        longest_pause_s=_pauses(settled.outputs, roles, began_ms, ended_ms),
        restart_s=round(longest_s, 1),
    )


def _pauses(outputs: dict[str, TopicOutputs], roles: Collection[str], began_ms: int, ended_ms: int) -> dict[str, float]:
    """Of each folding role that ran, the longest time without an output between two times, ms since 1970."""
    return {
        folded.role: longest_pause_s(
            (ms for topic in folded.outputs for ms in outputs[topic.name].written_ms.values()), began_ms, ended_ms
        )
        for folded in FOLDED
        if folded.role in roles
    }


def longest_pause_s(times_ms: Iterable[int], began_ms: int, ended_ms: int) -> float:
    """Longest gap between two of the times, or between one and the ends, seconds.

    >>> longest_pause_s([1_500, 4_000, 90_000], 1_000, 5_000)
    2.5
    """
    within = sorted(ms for ms in times_ms if began_ms <= ms <= ended_ms)
    return max(after - before for before, after in pairwise([began_ms, *within, ended_ms])) / 1000
