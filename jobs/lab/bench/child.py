"""A contender's process: run to its end, and what it printed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from jobs.lab.bench.figures import BenchFailed

_LOG_TAIL_CHARS = 2_000


async def printed_by(
    name: str, command: Sequence[str], environment: Mapping[str, str], *, within_s: float, too_slow: str
) -> bytes:
    """What the process prints; it is killed if it does not end in time.

    Args:
        name: Whose it is, for messages.
        command: The command line.
        environment: Its variables.
        within_s: How long it may take.
        too_slow: What it did not do in that time, and what helps.

    Raises:
        BenchFailed: It ended badly or not in time; the message holds the end of its log.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within_s):
            printed, log = await child.communicate()
    except TimeoutError:
        raise BenchFailed(f"{name} did not {too_slow}") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise BenchFailed(f"{name} ended with code {child.returncode}:\n{log.decode()[-_LOG_TAIL_CHARS:]}")
    return printed
