"""Cost of each role per turn, all of them at work on one backlog: processor, memory, and bytes in every topic.

The base of `turntide sizing`. Processor time is read from the processes, so other work on the machine disturbs it
little; what a role takes to start and to be ready is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, Say, cpu_s
from jobs.lab.bench.sessions_role import running
from jobs.lab.bench.traffic import TurnTraffic, send_all
from jobs.operate.topics import apply_topics
from jobs.shared.role_groups import group_of
from jobs.shared.role_process import RoleProcess
from models.entities import REGISTRY
from models.events.topics import COMMANDS, REQUESTS, TURNS, Topic
from streams.kafka.client import admin, consumer, read_to_end
from streams.settings import Settings

PARTITIONS = 4
FULL_TURNS, QUICK_TURNS = 60_000, 3_000
_SOURCES: Mapping[str, tuple[Topic, ...]] = {
    "sessions": (TURNS,),
    "memory": (COMMANDS,),
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
    "archive": REGISTRY.archived_topics,
}
"""Roles that every turn passes, and what each reads."""
_POLL_S = 1.0
_WITHIN_S = 1_800.0
_FLUSH_AGE = "PT15S"


async def measure(environment: BenchEnvironment, turns: int, *, say: Say) -> Figures:
    """Run all roles over one backlog.

    Raises:
        BenchFailed: A role ended, or did not read everything in time.
    """
    settings = environment.settings("roles", partitions=PARTITIONS)
    await apply_topics(settings)
    async with running(settings, *_SOURCES, environment={"TURNTIDE_ARCHIVE__FLUSH_AGE": _FLUSH_AGE}) as started:
        roles = dict(zip(_SOURCES, started, strict=True))
        processes = {name: psutil.Process(role.pid) for name, role in roles.items()}
        if environment.broker_pid is not None:
            processes["kafka"] = psutil.Process(environment.broker_pid)
        before = {name: cpu_s(process.pid) for name, process in processes.items()}
        began_s = time.monotonic()
        say(f"sending {turns:,} turns")
        turn_bytes = await send_all(settings, TurnTraffic(7).backlog(turns, ends_at=datetime.now(UTC)))
        await _all_read(settings, roles, say)
        seconds = time.monotonic() - began_s
        costs = [
            {
                "role": name,
                "cpu_us_per_turn": (cpu_s(each.pid) - before[name]) / turns * 1e6,
                "memory_mb": each.memory_info().rss / 1e6,
            }
            for name, each in processes.items()
        ]
    say("counting bytes")
    return {
        "turns": turns,
        "turn_bytes": turn_bytes,
        "seconds": seconds,
        "partitions": PARTITIONS,
        "roles": costs,
        "topics": [await _topic_cost(settings, topic, turns) for topic in REGISTRY.topics],
        "archive_bytes_per_turn": _bytes_below(environment.home / "archive", ".parquet") / turns,
        "index_bytes_per_turn": _bytes_below(environment.home / "vectors") / turns,
    }


async def _all_read(settings: Settings, roles: Mapping[str, RoleProcess], say: Say) -> None:
    """Wait until every role has committed all of what it reads, the others' outputs included."""
    try:
        async with asyncio.timeout(_WITHIN_S), admin(settings.kafka) as asked, consumer(settings.kafka) as reader:
            while waiting := await _waiting(settings, asked, reader):
                for name, role in roles.items():
                    if not role.running():
                        raise BenchFailed(f"role {name} ended:\n{role.log_tail()}")
                say("records to read: " + ", ".join(f"{role} {count:,}" for role, count in waiting.items()))
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise BenchFailed(f"not everything was read within {_WITHIN_S:g} s") from None


async def _waiting(settings: Settings, asked: AIOKafkaAdminClient, reader: AIOKafkaConsumer) -> dict[str, int]:
    waiting: dict[str, int] = {}
    for role, sources in _SOURCES.items():
        names = [topic.full_name(settings.topic_prefix) for topic in sources]
        places = [TopicPartition(name, partition) for name in names for partition in range(PARTITIONS)]
        committed = await asked.list_consumer_group_offsets(group_of(settings, role))
        ends = await reader.end_offsets(places)
        offsets = {place: committed[place].offset if place in committed else 0 for place in places}
        if count := sum(ends[place] - max(0, offsets[place]) for place in places):
            waiting[role] = count
    return waiting


async def _topic_cost(settings: Settings, topic: Topic, turns: int) -> Figures:
    records = size = 0
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        records += 1
        size += len(record.key or b"") + len(record.value or b"")
    return {"topic": topic.name, "records_per_turn": records / turns, "bytes_per_turn": size / turns}


def _bytes_below(folder: Path, ending: str = "") -> int:
    return sum(path.stat().st_size for path in folder.rglob(f"*{ending}") if path.is_file())
