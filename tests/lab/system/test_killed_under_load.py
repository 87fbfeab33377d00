"""Workers and the broker killed −9 again and again under load: state and outputs equal those of an undisturbed run."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from streams.settings import Settings, StateSettings, load_settings
from tests.support.fault_driver import assert_equal_to_replay, disorder, send, started

PARTITIONS = 4
TURNS = 2_400
TURNS_PER_S = 150.0
"""A pace that the kills can fall into."""
MIN_KILLS = 5


@asynccontextmanager
async def workers(settings: Settings, folder: Path, count: int = 2) -> AsyncIterator[list[RoleProcess]]:
    """Ready session workers, static members of their group, stopped at the end."""
    roles = [
        RoleProcess("sessions", settings, log=folder / f"sessions-{n}.log", worker_id=f"w{n}") for n in range(count)
    ]
    async with started(*roles):
        yield roles


@pytest.mark.fault("F1")
async def test_sessions_role_killed_under_load(settings: Settings, tmp_path: Path) -> None:
    """F1: two workers, killed at random while turns arrive; what is left equals the oracle's fold of the log."""
    rng = random.Random(11)
    settings = settings.model_copy(update={"state": StateSettings(store="rocksdb")})
    async with workers(settings, tmp_path) as running:
        producing = asyncio.create_task(send(settings, disorder(11, TURNS), per_s=TURNS_PER_S))
        kills = 0
        while not producing.done() or kills < MIN_KILLS:
            victim = rng.choice(running)
            if kills % 3:
                await victim.ready()  # else it may be recovering from the kill before
            await asyncio.sleep(rng.uniform(0.1, 1.0))  # the moment of the kill is the point
            victim.kill()
            kills += 1
            victim.start()
        await producing
        assert len((await assert_equal_to_replay(settings)).oracle.turn_keys) == TURNS


@pytest.mark.fault("F3")
async def test_broker_killed_under_load(tmp_path: Path, topic_prefix: str) -> None:
    """F3: the only broker is killed and comes back after seconds; producers and workers wait it out."""
    with LocalKafka(tmp_path / "broker") as broker:
        settings = load_settings(
            kafka={"bootstrap": broker.bootstrap, "partitions": 4},
            topic_prefix=topic_prefix,
            data_dir=tmp_path / "data",
        )
        await apply_topics(settings)
        async with workers(settings, tmp_path) as running:
            producing = asyncio.create_task(send(settings, disorder(3, TURNS), per_s=TURNS_PER_S))
            await asyncio.sleep(2)  # in the middle of producing
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(5)  # an outage
            await asyncio.to_thread(broker.restart)
            await producing
            for worker in running:
                if not worker.running():
                    worker.start()
            assert len((await assert_equal_to_replay(settings)).oracle.turn_keys) == TURNS
