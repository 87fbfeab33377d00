"""A worker that is caught in a slow call (`tests/slow_role_child.py`), for tests that stop, kill or freeze it there."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobs.role_process import environment_of
from streams.settings import Settings
from tests import slow_role_child

_WITHIN_S = 60


@asynccontextmanager
async def in_slow_call(settings: Settings, role: str, slow: str) -> AsyncIterator[Process]:
    """The role's process, which has just entered the slow call; killed at the end if it still runs."""
    environment = {**os.environ, **environment_of(settings), f"TURNTIDE_HTTP__{role.upper()}_PORT": "0"}
    environment.pop("TURNTIDE_KAFKA", None)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", slow_role_child.__name__, role, slow, stdout=PIPE, stderr=STDOUT, env=environment
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(_WITHIN_S):
            while slow_role_child.ENTERED.encode() not in (line := await child.stdout.readline()):
                assert line, "it ended before the slow call"
                sys.stdout.write(line.decode())
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def ended(child: Process, within_s: float) -> tuple[int, str]:
    """Exit code, and what it said since it entered the slow call."""
    assert child.stdout is not None
    async with asyncio.timeout(within_s):
        said = (await child.stdout.read()).decode()
        sys.stdout.write(said)
        return await child.wait(), said
