"""A rolling restart under load: every worker of two per role is asked to stop and started again, one after another.

That is what an upgrade does. Nothing is harmed; what is left must equal a replay of the logs, as after any chaos, and
the longest pause of what each role writes says what its readers notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from time import monotonic, time

from msgspec.structs import asdict

from jobs.lab.chaos.result import Compared, compared
from jobs.lab.chaos.supervisor import VectorServerProcess
from jobs.lab.chaos.traffic import traffic
from jobs.replay.comparison import settle
from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import turns_sender
from models.errors import ConfigurationError
from streams.oracle.comparison import TopicOutputs
from streams.oracle.folded import FOLDED
from streams.settings import Settings

ROLES = ("sessions", "memory", "enrich", "index", "archive")
WORKERS = 2
"""Of each role."""
_STEADY_S = 2.0
"""Load before the first worker and after the last one."""
_SPAN = timedelta(hours=1)
_MOST_TURNS = 1_000_000
_SETTLED_WITHIN_S = 180.0


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


class Rolling:
    """One rolling restart, on topics that are there.

    Args:
        settings: Cluster, prefix and data directory, of this run alone.
        roles: Which are run and restarted.
        turns_per_s: Load.
        seed: Of the conversations.
        report: Told what is done.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        roles: Sequence[str],
        turns_per_s: float,
        seed: int,
        report: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._turns_per_s = turns_per_s
        self._seed = seed
        self._report = report
        self._sent: set[tuple[str, int]] = set()
        logs = settings.data_dir / "logs"
        self._vectors = VectorServerProcess(settings, log=logs / "vectors.log") if "index" in roles else None
        own = {"TURNTIDE_ARCHIVE__CATALOG": "", "TURNTIDE_ARCHIVE__DATA_PATH": ""}
        own["TURNTIDE_VECTORS__URL"] = self._vectors.url if self._vectors else ""
        self._workers = {name: _worker(name, settings, logs, own) for name in names_of(roles)}

    async def run(self) -> RollingResult:
        """Start, send, restart, compare; everything that was started is ended on the way out.

        Raises:
            TurntideError: A worker did not start, or the comparison could not be made.
        """
        began_s = monotonic()
        with ExitStack() as running:
            for role in (*([self._vectors] if self._vectors else []), *self._workers.values()):
                running.callback(role.stop)
                role.start()
            await asyncio.gather(*(worker.ready(120.0) for worker in self._workers.values()))
            done = asyncio.Event()
            producing = asyncio.create_task(self._produce(done))
            began_ms = _now_ms()
            try:
                await asyncio.sleep(_STEADY_S)
                took_s, hard = await self._restart_all()
                await asyncio.sleep(_STEADY_S)
            finally:
                done.set()
                await producing
            ended_ms = _now_ms()
            self._report("comparing with a replay")
            index = next((worker for name, worker in self._workers.items() if name.startswith("index")), None)
            settled = await settle(
                self._settings, within_s=_SETTLED_WITHIN_S, index_url=index.url if index is not None else None
            )
        return RollingResult(
            **asdict(compared(settled, self._sent, began_s)),
            restarted=[*self._workers],
            not_in_order=hard,
            longest_pause_s=pauses(settled.outputs, self._workers, began_ms, ended_ms),
            restart_s=took_s,
        )

    async def _restart_all(self) -> tuple[float, list[str]]:
        """Longest time that a worker was away, and who did not stop in order."""
        longest_s, hard = 0.0, []
        for name, worker in self._workers.items():
            began_s = monotonic()
            code = await asyncio.to_thread(worker.stop)
            if code:
                hard.append(f"{name}: exit code {code}")
            worker.start()
            await worker.ready(120.0)
            away_s = monotonic() - began_s
            longest_s = max(longest_s, away_s)
            self._report(f"{name} is back after {away_s:.1f} s")
        return round(longest_s, 1), hard

    async def _produce(self, done: asyncio.Event) -> None:
        """Send conversations until the last worker is back."""
        began_s, number = monotonic(), 0
        span = _SPAN * (_MOST_TURNS / 10_000)
        async with turns_sender(self._settings) as sender:
            for sent in traffic(self._seed, turns=_MOST_TURNS, ends_at=datetime.now(UTC), span=span):
                if done.is_set():
                    break
                await sender.add(sent.record)
                if sent.turn is not None:
                    self._sent.add(sent.turn)
                    number += 1
                ahead_s = began_s + number / self._turns_per_s - monotonic()
                if ahead_s > 0:
                    await sender.flush()
                    await asyncio.sleep(ahead_s)
            await sender.finish()


def names_of(roles: Iterable[str]) -> list[str]:
    """Names of the workers, in the order in which they are restarted.

    >>> names_of(["sessions"])
    ['sessions-0', 'sessions-1']
    """
    return [f"{role}-{number}" for role in roles for number in range(WORKERS)]


def _worker(name: str, settings: Settings, logs: Path, own: dict[str, str]) -> RoleProcess:
    role = name.partition("-")[0]
    return RoleProcess(role, settings, log=logs / f"{name}.log", worker_id=name, extra_environment=own)


def pauses(
    outputs: dict[str, TopicOutputs], workers: Collection[str], began_ms: int, ended_ms: int
) -> dict[str, float]:
    """Of each folding role that ran, the longest time without an output between two times, ms since 1970."""
    ran = {name.partition("-")[0] for name in workers}
    return {
        folded.role: longest_pause_s(
            (ms for topic in folded.outputs for ms in outputs[topic.name].written_ms.values()), began_ms, ended_ms
        )
        for folded in FOLDED
        if folded.role in ran
    }


def longest_pause_s(times_ms: Iterable[int], began_ms: int, ended_ms: int) -> float:
    """Longest gap between two of the times, or between one and the ends, seconds.

    >>> longest_pause_s([1_500, 4_000, 90_000], 1_000, 5_000)
    2.5
    """
    within = sorted(ms for ms in times_ms if began_ms <= ms <= ended_ms)
    return max(after - before for before, after in pairwise([began_ms, *within, ended_ms])) / 1000


def _now_ms() -> int:
    return int(time() * 1000)
