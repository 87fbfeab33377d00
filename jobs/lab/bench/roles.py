"""Cost of each role per turn, all of them at work on one backlog: processor, memory, and bytes in every topic.

The base of `turntide ops sizing`. Processor time is read from the processes, so other work on the machine disturbs it
little; what a role takes to start and to be ready is left out.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from jobs.lab.bench.folds import send_backlog
from jobs.lab.bench.measuring import BenchEnvironment, Figures, cpu_s, say
from jobs.lab.bench.sessions_role import SOURCES, caught_up, running
from models.entities import REGISTRY
from models.events.topics import Topic
from streams.kafka.client import read_to_end
from streams.settings import Settings

PARTITIONS = 4
QUICK = {"turns": 3_000}
_FLUSH_AGE = "PT15S"


async def measure(environment: BenchEnvironment, *, turns: int = 60_000) -> Figures:
    """Run all roles over one backlog."""
    settings = await environment.fresh("roles", partitions=PARTITIONS)
    async with running(settings, *SOURCES, environment={"TURNTIDE_ARCHIVE__FLUSH_AGE": _FLUSH_AGE}) as started:
        roles = dict(zip(SOURCES, started, strict=True))
        processes = {name: psutil.Process(role.pid) for name, role in roles.items()}
        if environment.broker_pid is not None:
            processes["kafka"] = psutil.Process(environment.broker_pid)
        before = {name: cpu_s(process.pid) for name, process in processes.items()}
        began_s = time.monotonic()
        say(f"sending {turns:,} turns")
        turn_bytes = await send_backlog(settings, 7, turns)
        await caught_up(settings, roles, told=say)
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


async def _topic_cost(settings: Settings, topic: Topic, turns: int) -> Figures:
    records = size = 0
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        records += 1
        size += len(record.key or b"") + len(record.value or b"")
    return {"topic": topic.name, "records_per_turn": records / turns, "bytes_per_turn": size / turns}


def _bytes_below(folder: Path, ending: str = "") -> int:
    return sum(path.stat().st_size for path in folder.rglob(f"*{ending}") if path.is_file())
