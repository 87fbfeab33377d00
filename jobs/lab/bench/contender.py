"""One contender in a process of its own: `python -m jobs.lab.bench.contender NAME [TURNS]`.

With a number of turns it prints its time as JSON; without, it works until it is killed or its standard input closes.
Settings come from the environment, as a role's do. Each contender reads `turns.v1` from its start, alone on the
topic's partitions.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec

import msgspec

from jobs.lab.bench.measuring import Timing, printed_by
from jobs.shared.role_process import environment_of
from streams.settings import Settings, load_settings

_WITHIN_S = 600.0


CONTENDERS = ("raw_read", "plain_fold", "per_event_faust", "quix", "bytewax")
"""Whom the sessions role is compared with in speed."""
DURABLE = ("per_event_faust", "per_event_faust_guarded", "quix_at_least_once", "quix_exactly_once", "bytewax")
"""Whom it is compared with under kills."""
_PACKAGES = {"quix": "quixstreams", "bytewax": "bytewax"}


def missing_package(contender: str) -> str | None:
    """The package that this contender needs and that is not installed, if any."""
    package = _PACKAGES.get(contender.partition("_")[0])
    return package if package is not None and find_spec(package) is None else None


def missing_packages() -> list[str]:
    """Packages of contenders that are left out."""
    return [package for package in _PACKAGES.values() if find_spec(package) is None]


def command_of(name: str, turns: int | None = None) -> list[str]:
    """The command line of a contender."""
    return [sys.executable, "-m", "jobs.lab.bench.contender", name, *([] if turns is None else [str(turns)])]


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
    printed = await printed_by(
        name,
        command_of(name, turns),
        {**environment, **environment_of(settings)},
        within_s=_WITHIN_S,
        too_slow=f"take {turns} turns in {_WITHIN_S:g} s: run with fewer turns",
    )
    return msgspec.json.decode(printed, type=Timing)


def _end_with_parent() -> None:
    """The parent holds the other end of standard input: its end means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


def _main(name: str, *turns: str) -> None:
    from jobs.lab.bench.contender_folds import FOLDS

    settings = load_settings()
    if turns:
        timing = FOLDS[name](settings, int(turns[0]))
        sys.stdout.write(msgspec.json.encode(timing).decode())
    else:
        threading.Thread(target=_end_with_parent, daemon=True).start()
        FOLDS[name](settings, None)


if __name__ == "__main__":
    _main(*sys.argv[1:])
