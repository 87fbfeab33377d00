"""Common parts of the benchmarks: figures of time and processes, work in a process apart, a broker, the envelope.

`python -m jobs.lab.bench.measuring` reads a function and its arguments from standard input, pickled, and answers
likewise.
"""

import asyncio
import os
import pickle
import re
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import psutil
from msgspec import Struct

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.role_process import own_command
from models.errors import TurntideError
from streams.settings import Settings, load_settings

SESSIONS_ROLE = "sessions_role"
Figures = dict[str, Any]
"""Figures of a benchmark, as JSON has them; `sections.toml` says what its keys mean."""


_T = TypeVar("_T")


def say(text: str) -> None:
    """Tell whoever watches what is going on."""
    Printer(OutputFormat.TABLE).message(text)


class BenchFailed(TurntideError):  # noqa: N818 - it says what happened
    """A run gave nothing that can be measured: a process failed, or the size is too small. Every bench may raise it."""


class Timing(Struct, frozen=True):
    """Turns taken in a time, start-up left out."""

    turns: int
    seconds: float

    @property
    def turns_per_s(self) -> float:
        """Throughput.

        Raises:
            BenchFailed: Too few turns for a time to be seen.
        """
        if self.turns <= 0 or self.seconds <= 0:
            raise BenchFailed(f"{self.turns} turns in {self.seconds:g} s is no measurement: run with more turns")
        return self.turns / self.seconds


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median by name, over the rows that have it.

    >>> medians([{"a": 1.0}, {"a": 3.0, "b": 5.0}])
    {'a': 2.0, 'b': 5.0}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: median(row[name] for row in rows if name in row) for name in names}


async def until(true: Callable[[], Awaitable[bool]], *, within_s: float, every_s: float = 0.02) -> bool:
    """Wait until something is true; False if it is not in time."""
    deadline_s = monotonic() + within_s
    while not await true():
        if monotonic() > deadline_s:
            return False
        await asyncio.sleep(every_s)
    return True


async def asked_ms(what: str, ask: Callable[[_T], Awaitable[object]], things: Sequence[_T]) -> list[float]:
    """Milliseconds that pass for each question, one after the other; half of them are asked before to warm up.

    Raises:
        BenchFailed: An answer has nothing in it.
    """
    taken_ms = []
    for thing in (*things[: len(things) // 2], *things):
        began_s = perf_counter()
        answer = await ask(thing)
        taken_ms.append((perf_counter() - began_s) * 1_000)
        if not answer:
            raise BenchFailed(f"{what}: {thing} was not answered as it should")
    return taken_ms[-len(things) :]


WARM_UP_TURNS = 500
"""Not timed: connections, caches, first allocations. Of a short run, a quarter."""


class Stopwatch:
    """Counts turns and times those after the warm-up.

    Args:
        turns: How many are taken, the warm-up among them; none: without end (`endless`).
    """

    def __init__(self, turns: int | None) -> None:
        self._turns, self.endless = turns, turns is None
        self._warm_up = min(WARM_UP_TURNS, (turns or 0) // 4)
        self._taken = 0
        self._began_s = self._ended_s = perf_counter()

    def took_one(self) -> bool:
        """Count a turn; whether it was the last."""
        self._taken += 1
        if self._taken == self._warm_up:
            self._began_s = perf_counter()
        if done := self._taken == self._turns:
            self._ended_s = perf_counter()
        return done

    def timing(self) -> Timing:
        """From the end of the warm-up to the last turn."""
        return Timing(self._taken - self._warm_up, self._ended_s - self._began_s)


def spread_ms(times_ms: Sequence[float]) -> dict[str, float]:
    """Median, and the slowest of twenty and of a hundred, milliseconds (`numpy.percentile`, linear).

    >>> spread_ms([1.0, 2.0, 3.0])["p50_ms"]
    2.0
    """
    return dict(zip(("p50_ms", "p95_ms", "p99_ms"), np.percentile(times_ms, (50, 95, 99)).tolist(), strict=True))


def times(what: str, values_ms: Sequence[float]) -> Figures:
    """Percentiles of something."""
    return {"what": what, **spread_ms(values_ms), "count": len(values_ms)}


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, user and system, over all threads."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def peak_mb() -> float:
    """Most memory of this process so far, megabytes (10⁶); 0 where the system does not tell.

    `wait4` cannot say: a process that was started by a large one counts that one's memory as its own.
    """
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.MULTILINE) if status.exists() else None
    return int(found[1]) * 1_024 / 1_000_000 if found else 0.0


_LOG_TAIL_CHARS = 2_000
_Result = TypeVar("_Result")


def apart(
    what: str,
    work: Callable[..., _Result],
    *arguments: Any,
    within_s: float,
    too_slow: str,
    environment: Mapping[str, str] | None = None,
) -> _Result:
    """Result of a function of a module in a process of its own, which is killed if it does not end in time.

    Args:
        what: Whose work it is, for messages.
        work: Called there.
        arguments: Its arguments.
        within_s: How long it may take, start-up included.
        too_slow: What it did not do in that time, and what helps.
        environment: Variables of the process, beside those of this one.

    Raises:
        BenchFailed: It ended badly or not in time; the message holds the end of its log.
    """
    try:
        child = subprocess.run(  # noqa: S603 - our own command
            own_command(__spec__.name),
            env={**os.environ, **(environment or {})},
            input=pickle.dumps((work, arguments)),
            capture_output=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BenchFailed(f"{what} did not {too_slow}") from None
    if child.returncode:
        raise BenchFailed(f"{what} ended with code {child.returncode}:\n{child.stderr.decode()[-_LOG_TAIL_CHARS:]}")
    result: _Result = pickle.loads(child.stdout)  # noqa: S301 - our own
    return result


class BenchEnvironment(NamedTuple):
    """A place to measure: address of the broker, an empty folder, and the broker's process and log where it is ours."""

    bootstrap: str
    home: Path
    broker_pid: int | None = None
    log: Path | None = None

    async def fresh(
        self, name: str = "bench", *, partitions: int = 4, home: Path | None = None, **kafka: Any
    ) -> Settings:
        """Settings with topics that were just made and a policy as it comes; nothing of the user's but the cluster.

        Args:
            name: Begins the topics' names.
            partitions: Of each topic.
            home: Where local state and logs are kept; none: the ground's folder.
            kafka: Other settings of the cluster.
        """
        settings = load_settings(
            kafka={"bootstrap": self.bootstrap, "partitions": partitions, **kafka},
            topic_prefix=f"{name}-{uuid.uuid4().hex[:8]}",
            data_dir=home or self.home,
        )
        await apply_topics(settings)
        return settings


@contextmanager
def own_environment() -> Iterator[BenchEnvironment]:
    """A Kafka of its own in a temporary folder.

    Raises:
        BrokerError: It does not start.
    """
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        with LocalKafka(home) as broker:
            record = broker.running()
            yield BenchEnvironment(broker.bootstrap, home, record.pid if record else None, broker.home / "log")


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # what the work itself prints is no answer
        asked, given = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
        pickle.dump(asked(*given), answer)
