"""Apps' memories in the memory role, on the real broker: work that waits goes on by itself (seed 003)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jobs.operate.topics import apply_topics
from models.entities import entity_key
from models.events import AppMemoriesChanged, AppMemoryChanged
from models.events.topics import COMMANDS, MEMORIES
from models.policy import Policy
from models.policy.app import AppPolicy, EnergyPolicy
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for
from streams.kafka.client import read_to_end
from streams.kafka.producer import Producer, Record, acknowledged
from streams.observe.telemetry import metrics
from streams.roles.memory import MemoryRole
from streams.settings import Settings, load_settings
from tests.app_driver import Space

pytestmark = pytest.mark.kafka

ENERGY = EnergyPolicy(capacity_units=12.0, refill_units_per_hour=5 * 3_600.0)
"""For one memory, then none; after a second for the next."""
POLICY = Policy(apps=AppPolicy(most=2, most_pinned=0, redundant_similarity=1.0, energy=ENERGY))


@pytest.fixture
async def settings(kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Own topics, HTTP on a free port."""
    settings = load_settings(
        kafka={"bootstrap": kafka, "partitions": 2},
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
        http={"memory_port": 0},
    )
    await apply_topics(settings)
    return settings


async def end(settings: Settings, *spaces: Space) -> None:
    """Three conversations of each space end at once, one more than may be kept."""
    producer, topic = Producer(settings), COMMANDS.full_name(settings.topic_prefix)
    await producer.start()
    for space in spaces:
        events = [space.ended() for _ in range(3)]
        records = [Record(entity_key(event).encode(), encode(event), headers_for(event)) for event in events]
        place = await producer.partition_of(topic, records[0].key or b"")
        await acknowledged(await producer.write(topic, place, records))
    await producer.stop()


async def told(settings: Settings) -> list[Any]:
    """Everything on the topic of memories."""
    found = read_to_end(settings.kafka, MEMORIES.full_name(settings.topic_prefix))
    return [decode_output(MEMORIES, record.value or b"") async for record in found]


def spent() -> float:
    """Energy of compactions so far, by the metric."""
    return metrics.registry.get_sample_value("turntide_app_memory_energy_units_total", {"cause": "compaction"}) or 0.0


async def test_work_that_waits_for_energy_goes_on_by_itself(settings: Settings) -> None:
    """Nothing arrives but what the role tells itself; no conversation is lost, and there is never one too many."""
    apps = ("shop", "bank/ü")
    stop, before = asyncio.Event(), spent()
    await end(settings, *[Space(app=app) for app in apps])
    task = asyncio.ensure_future(MemoryRole(settings, POLICY).run(stop))
    last: dict[str, AppMemoriesChanged] = {}
    async with asyncio.timeout(60):
        while len(last) < 2 or any(standing.waiting for standing in last.values()):
            assert not task.done()
            await asyncio.sleep(0.3)  # poll the topic
            events = await told(settings)
            last = {event.app_id: event for event in events if isinstance(event, AppMemoriesChanged)}
    stop.set()
    await task

    for app in apps:
        assert (last[app].created, last[app].compactions, last[app].memories) == (3, 1, 2)
        slots = {event.slot for event in events if isinstance(event, AppMemoryChanged) and event.app_id == app}
        assert slots == {0, 1}
    assert spent() - before >= 2 * 20
