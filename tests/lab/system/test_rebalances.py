"""F4: a rebalance storm: workers join and leave all the time under load, one to four of them."""

import asyncio
import random
from pathlib import Path

import pytest

from jobs.shared.role_process import RoleProcess
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, disorder, send

pytestmark = pytest.mark.fault("F4")

PARTITIONS = 4

CHANGES = 6
MOST = 4
TURNS = 2_000


async def test_workers_join_and_leave_under_load(settings: Settings, tmp_path: Path) -> None:
    """Every change stops all partitions and moves some; what is left equals the replay."""
    rng = random.Random(4)
    roles = [RoleProcess("sessions", settings, log=tmp_path / f"sessions-{n}.log") for n in range(MOST)]
    roles[0].start()
    await roles[0].ready()
    sending = asyncio.create_task(send(settings, disorder(4, TURNS), per_s=150))
    changes: list[str] = []
    try:
        while len(changes) < CHANGES or not sending.done():
            running = [role for role in roles if role.running()]
            if len(running) == 1 or (len(running) < MOST and rng.random() < 0.5):
                rng.choice([role for role in roles if not role.running()]).start()
                changes.append("join")
            else:
                leaver = rng.choice(running)
                await leaver.ready()  # one that has no partitions yet moves none
                await asyncio.to_thread(leaver.stop)
                changes.append("leave")
            await asyncio.sleep(rng.uniform(1.0, 4.0))  # the moment of the next change is the point
        await sending
        settled = await assert_equal_to_replay(settings)
        assert any(role.running() for role in roles)
    finally:
        for role in roles:
            if role.running():
                role.stop()

    assert {"join", "leave"} == set(changes)
    assert settled.oracle.turns >= TURNS
