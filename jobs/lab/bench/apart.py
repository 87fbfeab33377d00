"""Work in a process of its own, so that nothing of this one is measured with it.

`python -m jobs.lab.bench.apart` reads a function and its arguments from standard input, pickled, and answers likewise.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jobs.lab.bench.measuring import BenchFailed

_LOG_TAIL_CHARS = 2_000
_Result = TypeVar("_Result")


async def apart(
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
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jobs.lab.bench.apart"),
        env={**os.environ, **(environment or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within_s):
            printed, log = await child.communicate(pickle.dumps((work, arguments)))
    except TimeoutError:
        raise BenchFailed(f"{what} did not {too_slow}") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise BenchFailed(f"{what} ended with code {child.returncode}:\n{log.decode()[-_LOG_TAIL_CHARS:]}")
    result: _Result = pickle.loads(printed)  # noqa: S301 - our own
    return result


def _answer() -> None:
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # what the work itself prints is no answer
        work, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
        pickle.dump(work(*arguments), answer)


if __name__ == "__main__":
    _answer()
