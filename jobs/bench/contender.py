"""One contender in a process of its own: `python -m jobs.bench.contender NAME TURNS` prints its time as JSON.

Settings come from the environment, as a role's do. Each contender reads `turns.v1` from its start, alone on the
topic's four partitions, and times itself from its first turn to its last.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec

import msgspec

from jobs.bench.figures import BenchFailed, Timing
from jobs.role_process import environment_of
from streams.settings import Settings, load_settings

_LOG_TAIL_CHARS = 2_000
_WITHIN_S = 600.0


def _plain_fold(settings: Settings, turns: int) -> Timing:
    from jobs.bench.plain_loops import fold

    return fold(settings, turns)


def _raw_read(settings: Settings, turns: int) -> Timing:
    from jobs.bench.plain_loops import read

    return read(settings, turns)


def _per_event_faust(settings: Settings, turns: int) -> Timing:
    from jobs.bench.per_event_faust import fold

    return fold(settings, turns)


def _quix(settings: Settings, turns: int) -> Timing:
    from jobs.bench.quix import fold

    return fold(settings, turns)


CONTENDERS: Mapping[str, Callable[[Settings, int], Timing]] = {
    "raw_read": _raw_read,
    "plain_fold": _plain_fold,
    "per_event_faust": _per_event_faust,
    "quix": _quix,
}
"""Whom the sessions role is compared with."""


def quix_is_installed() -> bool:
    """Whether the dependency group `bench` is there."""
    return find_spec("quixstreams") is not None


async def run_contender(name: str, settings: Settings, turns: int, environment: Mapping[str, str]) -> Timing:
    """Run a contender on the first `turns` turns of the log.

    Args:
        name: One of `CONTENDERS`.
        settings: Whose cluster and prefix.
        turns: After how many it stops.
        environment: Variables of this process.

    Raises:
        BenchFailed: It ended badly or not in time; the message holds the end of its log.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jobs.bench.contender", name, str(turns),
        env={**environment, **environment_of(settings)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_WITHIN_S):
            printed, log = await child.communicate()
    except TimeoutError:
        raise BenchFailed(f"{name} did not take {turns} turns in {_WITHIN_S:g} s: run with fewer turns") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise BenchFailed(f"{name} ended with code {child.returncode}:\n{log.decode()[-_LOG_TAIL_CHARS:]}")
    return msgspec.json.decode(printed, type=Timing)


if __name__ == "__main__":
    contender, count = sys.argv[1:]
    timing = CONTENDERS[contender](load_settings(), int(count))
    sys.stdout.write(msgspec.json.encode(timing).decode())
