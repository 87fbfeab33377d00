"""Work in a process of its own, so that nothing of this one is measured with it.

`python -m jobs.lab.bench.apart` reads a function and its arguments from standard input, pickled, and answers likewise.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jobs.lab.bench.measuring import BenchFailed

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
            [sys.executable, "-m", __spec__.name],
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


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # what the work itself prints is no answer
        asked, given = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
        pickle.dump(asked(*given), answer)
