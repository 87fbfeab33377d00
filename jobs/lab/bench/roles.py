"""Cost of each role per turn, all of them at work on one backlog: processor, memory, and bytes in every topic.

The base of `turntide ops sizing`; and what the sessions role pays for its metrics. Processor time is read from the
processes, so other work on the machine disturbs it little; what a role takes to start and to be ready is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import httpx
import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec import Struct

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, Say, cpu_s
from jobs.lab.bench.sessions_role import folded_offsets, running, time_of
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
_SCRAPE_EVERY_POLLS = 5
"""Three times as often as by Prometheus' example."""
_FOLDED_WITHIN_S = 600.0


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


class MetricsCostSize(Struct, frozen=True):
    """How much is measured of metrics: rounds of two runs each, and turns of a run."""

    rounds: int
    turns: int


METRICS_FULL, METRICS_QUICK = MetricsCostSize(rounds=5, turns=20_000), MetricsCostSize(rounds=1, turns=4_000)


class RoleRun(Struct, frozen=True):
    """One run of the role.

    Attributes:
        turns_per_s: After a warm-up, by the times of what it wrote.
        cpu_us_per_turn: Of its process from ready to the last commit, both cores together.
    """

    turns_per_s: float
    cpu_us_per_turn: float


async def measure_metrics(environment: BenchEnvironment, size: MetricsCostSize, *, say: Say) -> Figures:
    """Run the sessions role with its metrics, and with a registry that counts nothing, in turns over the same backlog.

    Other work on the machine disturbs throughput more than a few percent, so the order changes every round, ratios are
    taken within a round, and processor time is shown beside them.

    Raises:
        BenchFailed: A role ended, did not finish, or a run was too short to be measured.
    """
    pairs = list[dict[str, RoleRun]]()
    for number in range(size.rounds):
        pairs.append({})
        for name in ("counted", "silent") if number % 2 == 0 else ("silent", "counted"):
            pairs[-1][name] = run = await _run(environment, size.turns, number, counted=name == "counted")
            say(f"round {number + 1}, {name}: {run.turns_per_s:,.0f} turns/s, {run.cpu_us_per_turn:,.0f} µs CPU a turn")
    return summarise(pairs, size.turns)


def summarise(pairs: Sequence[dict[str, RoleRun]], turns: int) -> Figures:
    """Medians and ranges over rounds of with metrics by without: below 1 they cost."""
    throughput = [pair["counted"].turns_per_s / pair["silent"].turns_per_s for pair in pairs]
    cpu = [pair["silent"].cpu_us_per_turn / pair["counted"].cpu_us_per_turn for pair in pairs]
    return {
        "turns": turns,
        "pairs": list(pairs),
        "throughput": {"median": median(throughput), "lowest": min(throughput), "highest": max(throughput)},
        "cpu": {"median": median(cpu), "lowest": min(cpu), "highest": max(cpu)},
    }


async def _run(environment: BenchEnvironment, turns: int, number: int, *, counted: bool) -> RoleRun:
    settings = environment.settings()
    await apply_topics(settings)
    await send_all(settings, TurnTraffic(number).backlog(turns, ends_at=datetime.now(UTC)))
    counting = {"TURNTIDE_TELEMETRY__METRICS": str(counted).lower()}
    async with running(settings, "sessions", environment=counting) as (role,):
        before_s = cpu_s(role.pid)
        await _folded(settings, role, turns, scraped=counted)
        used_s = cpu_s(role.pid) - before_s
    timing = time_of(await folded_offsets(settings), turns)
    return RoleRun(timing.turns_per_s, used_s / turns * 1e6)


async def _folded(settings: Settings, role: RoleProcess, turns: int, *, scraped: bool) -> None:
    """Wait until the role has committed all turns; it is asked nothing but its metrics."""
    group, polls = group_of(settings, "sessions"), 0
    try:
        async with asyncio.timeout(_FOLDED_WITHIN_S), admin(settings.kafka) as asked, httpx.AsyncClient() as client:
            while sum(each.offset for each in (await asked.list_consumer_group_offsets(group)).values()) < turns:
                if not role.running():
                    raise BenchFailed(f"the sessions role ended:\n{role.log_tail()}")
                if scraped and polls % _SCRAPE_EVERY_POLLS == 0:
                    await client.get(f"{role.url}/metrics")
                polls += 1
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise BenchFailed(f"not all turns were folded within {_FOLDED_WITHIN_S:g} s:\n{role.log_tail()}") from None
