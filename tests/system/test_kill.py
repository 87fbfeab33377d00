"""Kill −9 any time: state, outputs and archive equal those of an undisturbed run over the same log."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from jobs.replay.comparison import Settled
from jobs.shared.role_process import RoleProcess
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, disorder, send, sessions_role, started
from tests.support.slow_role import in_slow_call

PARTITIONS = 4

TURNS = 1_800
TURNS_PER_S = 150.0
"""A pace that the kills can fall into."""
FEW_TURNS = 400
ROLES = ("sessions", "memory", "enrich", "index", "archive")


async def produce(settings: Settings, seed: int) -> None:
    """Chaos's traffic by seed: interleaved sessions, some of it twice, late, out of order or poison."""
    await send(settings, disorder(seed, TURNS), per_s=TURNS_PER_S)


async def assert_nothing_differs(settings: Settings, index_url: str | None = None) -> Settled:
    """As the oracle has it; every turn was folded there."""
    settled = await assert_equal_to_replay(settings, index_url)

    assert len(settled.oracle.turn_keys) == TURNS
    return settled


@pytest.mark.slow
@pytest.mark.fault("F5")
async def test_a_worker_that_slept_writes_nothing(settings: Settings, tmp_path: Path) -> None:
    """F5: stopped amid a batch, beyond the session time-out; another one takes over, then it wakes, and ends."""
    await send(settings, disorder(5, FEW_TURNS))
    async with in_slow_call(settings, tmp_path, "sessions", "score") as sleeper:
        os.kill(sleeper.pid, signal.SIGSTOP)
        async with started(RoleProcess("sessions", settings, log=tmp_path / "sessions.log", worker_id="w0")):
            before = await assert_equal_to_replay(settings)
            os.kill(sleeper.pid, signal.SIGCONT)
            code = await asyncio.to_thread(sleeper.wait, 60)
            after = await assert_equal_to_replay(settings)

    assert code != 0
    assert "nothing more is written" in sleeper.log.read_text()
    assert len(after.oracle.turn_keys) == FEW_TURNS
    assert (before.comparison.repeats, after.comparison.repeats) == (0, 0)


@pytest.mark.fault("F1")
@pytest.mark.parametrize(("slow", "again"), [pytest.param("score", False, marks=pytest.mark.slow), ("sink", True)])
async def test_killed_amid_a_batch(settings: Settings, tmp_path: Path, slow: str, *, again: bool) -> None:
    """F1: before the fold nothing is out yet; between outputs and state the same ids come again."""
    await send(settings, disorder(6, FEW_TURNS))
    async with in_slow_call(settings, tmp_path, "sessions", slow) as victim:
        victim.kill()
    async with sessions_role(settings):
        settled = await assert_equal_to_replay(settings)

    assert len(settled.oracle.turn_keys) == FEW_TURNS
    assert (settled.comparison.repeats > 0) == again


@pytest.mark.behaviour("user-02")
@pytest.mark.fault("F1")
async def test_every_role_killed_under_load(settings: Settings, tmp_path: Path) -> None:
    """F1: each in turn, memory twice; every turn is once in the archive, the index and its user."""
    rng = random.Random(12)
    roles = {name: RoleProcess(name, settings, log=tmp_path / f"{name}.log") for name in ROLES}
    async with started(*roles.values()):
        producing = asyncio.create_task(produce(settings, seed=12))
        for victim in (*ROLES, "memory"):
            await roles[victim].ready()
            await asyncio.sleep(rng.uniform(0.1, 1.0))  # the moment of the kill is the point
            roles[victim].kill()
            roles[victim].start()
        await producing
        settled = await assert_nothing_differs(settings, roles["index"].url)

    checked = settled.comparison.checked
    assert {"archive turns": TURNS, "index": TURNS}.items() <= checked.items()
    assert TURNS >= checked["users' turns"] > 0.95 * TURNS  # late ones are in no memory
    assert min(checked[name] for name in ("users' state", "answers", "index of users", "archive facts.v1")) > 0
    assert settled.comparison.not_checked == {}
