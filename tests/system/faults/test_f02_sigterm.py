"""F2: SIGTERM in a slow call. The batch ends or is dropped whole, the worker is gone in time, nothing is lost."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jobs.shared.role_process import RoleProcess
from models.events import Turn
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, recorded, said, send, sessions_role, started
from tests.support.slow_role import in_slow_call

pytestmark = pytest.mark.fault("F2")

GONE_WITHIN_S = 15.0
"""What `turntide worker all` and Kubernetes grant."""


def turns(first: int, last: int) -> list[Turn]:
    """Turns of eight sessions."""
    return [said(n, session_id=f"s-{k}") for n in range(first, last) for k in range(8)]


async def stopped_in_the_slow_call(settings: Settings, folder: Path, role: str, slow: str) -> int:
    """Start the role, ask it to stop once it is in the slow call, and give its exit code."""
    async with in_slow_call(settings, folder, role, slow) as child:
        os.kill(child.pid, signal.SIGTERM)
        return await asyncio.to_thread(child.wait, GONE_WITHIN_S)


@pytest.mark.parametrize("slow", ["score", pytest.param("sink", marks=pytest.mark.slow)])
async def test_sessions_stopped_in_a_slow_call(settings: Settings, tmp_path: Path, slow: str) -> None:
    """Before the fold and between outputs and state; the next worker leaves what the oracle has."""
    await send(settings, [recorded(turn) for turn in turns(0, 10)])
    code = await stopped_in_the_slow_call(settings, tmp_path, "sessions", slow)
    await send(settings, [recorded(turn) for turn in turns(10, 20)])
    async with sessions_role(settings):
        settled = await assert_equal_to_replay(settings)

    assert code == 0
    assert settled.oracle.turns == 160


@pytest.mark.slow
async def test_index_stopped_in_a_slow_upsert(settings: Settings, tmp_path: Path) -> None:
    """The store answers after seconds; the next worker has one point for each turn."""
    await send(settings, [recorded(turn) for turn in turns(0, 10)])
    code = await stopped_in_the_slow_call(settings, tmp_path, "index", "store")
    index = RoleProcess("index", settings, log=tmp_path / "index.log")
    async with started(index), sessions_role(settings):
        settled = await assert_equal_to_replay(settings, index.url)

    assert code == 0
    assert settled.comparison.checked["index"] == 80
