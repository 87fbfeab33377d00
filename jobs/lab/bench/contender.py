"""One contender in a process of its own, for a number of turns or without end.

`python -m jobs.lab.bench.contender NAME` works until it is killed or its standard input closes. Settings come from the
environment, as a role's do. Each contender reads `turns.v1` from its start, alone on the topic's partitions.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib.util import find_spec

from jobs.lab.bench.apart import apart
from jobs.lab.bench.measuring import Timing
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


def command_of(name: str) -> list[str]:
    """The command line of a contender that works without end."""
    return [sys.executable, "-m", "jobs.lab.bench.contender", name]


async def run_contender(name: str, settings: Settings, turns: int) -> Timing:
    """Run one of `CONTENDERS` on the first `turns` turns of the log.

    Raises:
        BenchFailed: It ended badly or not in time; the message holds the end of its log.
    """
    too_slow, environment = f"take {turns} turns in {_WITHIN_S:g} s: run with fewer turns", environment_of(settings)
    return await apart(
        name, _fold, name, turns, within_s=_WITHIN_S, too_slow=too_slow, environment={**os.environ, **environment}
    )


def _fold(name: str, turns: int | None) -> Timing:
    from jobs.lab.bench.contender_folds import FOLDS

    return FOLDS[name](load_settings(), turns)


def _end_with_parent() -> None:
    """The parent holds the other end of standard input: its end means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _fold(sys.argv[1], None)
