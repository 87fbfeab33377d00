"""A project in the memory role, on the real broker: turns in, items out, a consolidation by itself (seed 004)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from models.entities import entity_key
from models.events import ProjectChanged, ProjectItemChanged
from models.events.topics import COMMANDS, PROJECTS
from models.policy import Policy
from models.policy.project import ConsolidationPolicy, ProjectPolicy
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for
from streams.kafka.client import read_to_end
from streams.kafka.producer import Producer, Record, acknowledged
from streams.roles.memory import MemoryRole
from streams.settings import load_settings
from tests.project_driver import Project

pytestmark = pytest.mark.kafka

POLICY = Policy(projects=ProjectPolicy(consolidation=ConsolidationPolicy(every=timedelta(seconds=1))))


async def test_turns_become_memories_and_are_consolidated(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Nothing arrives after the turns but what the role tells itself."""
    settings = load_settings(
        kafka={"bootstrap": kafka, "partitions": 2},
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
        http={"memory_port": 0},
    )
    await apply_topics(settings)
    project, stop = Project(), asyncio.Event()
    said = ("What database should we use?", "I recommend PostgreSQL.", "We decided to use PostgreSQL.")
    turns = [project.turn(text) for text in said]
    producer, topic = Producer(settings), COMMANDS.full_name(topic_prefix)
    await producer.start()
    records = [Record(entity_key(turn).encode(), encode(turn), headers_for(turn)) for turn in turns]
    place = await producer.partition_of(topic, records[0].key or b"")
    await acknowledged(await producer.write(topic, place, records))
    await producer.stop()
    task = asyncio.ensure_future(MemoryRole(settings, POLICY).run(stop))
    standing: ProjectChanged | None = None
    async with asyncio.timeout(60):
        while standing is None or standing.consolidated_at is None:
            assert not task.done()
            await asyncio.sleep(0.3)  # poll the topic
            found = read_to_end(settings.kafka, PROJECTS.full_name(topic_prefix))
            events = [decode_output(PROJECTS, record.value or b"") async for record in found]
            standing = next((event for event in reversed(events) if isinstance(event, ProjectChanged)), None)
    stop.set()
    await task
    kinds = {event.kind for event in events if isinstance(event, ProjectItemChanged) and event.active}

    assert (3, 1, 1) == (standing.turn_count, standing.memories, standing.episodes)
    assert {"conversation", "memory", "episode"} == kinds
