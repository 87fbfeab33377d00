"""Roles as processes of their own: watched until they have read everything, and what a turn costs each of them.

Processor time is read from the processes, so other work on the machine disturbs it little; what a role takes to start
and to be ready is left out.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import httpx
import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from jobs.lab.bench.folds import send_backlog
from jobs.lab.bench.measuring import WARM_UP_TURNS, BenchEnvironment, BenchFailed, Figures, Timing, cpu_s, say
from jobs.shared.role_process import RoleProcess
from models.entities import REGISTRY
from models.events.topics import COMMANDS, REQUESTS, SESSION_STATE, TURNS, Topic
from models.metrics import STAGES
from streams.index.generations import group_of
from streams.kafka.client import admin, consumer, read_to_end
from streams.observe.telemetry import PREFIX
from streams.settings import Settings

SOURCES: Mapping[str, tuple[Topic, ...]] = {
    "sessions": (TURNS,),
    "memory": (COMMANDS,),
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
    "archive": REGISTRY.archived_topics,
}
"""Roles that every turn passes, and the topics that each reads."""
_POLL_S = 1.0
_SCRAPE_EVERY_POLLS = 5
"""Three times as often as by Prometheus' example."""
_READY_WITHIN_S = 120.0
_WITHIN_S = 1_800.0
_SAME_POLL_MS = 5
_OFFSET_BYTES = 8
"""Every state value begins with the source offset of the last input folded in (`streams.state.changelog`)."""


class Backlog(Struct, frozen=True):
    """A backlog that the sessions role has folded.

    Attributes:
        timing: From the state written after the warm-up to the last.
        changelog_bytes_per_turn: Written to the changelog, record overhead included.
        mb_per_10000_sessions: Megabytes (10⁶) of state by the role's own gauges, without Python's overhead.
        stage_us_per_turn: By the role's own `stage_seconds`, and under `other` what is left of the time of a turn:
            fetching, admission, commits. Stages that wait for the broker at the same time as others work count in full.
    """

    timing: Timing
    changelog_bytes_per_turn: float
    mb_per_10000_sessions: float
    stage_us_per_turn: dict[str, float]


@asynccontextmanager
async def running(
    settings: Settings, *names: str, environment: Mapping[str, str] | None = None, kind: type[RoleProcess] = RoleProcess
) -> AsyncIterator[list[RoleProcess]]:
    """Roles of these names, all ready; their logs lie in the data directory."""
    logs = settings.data_dir / "logs"
    roles = [
        kind(name, settings, log=logs / f"{settings.topic_prefix}-{n}.log", extra_environment=environment)
        for n, name in enumerate(names)
    ]
    try:
        for role in roles:
            role.start()
        await asyncio.gather(*(role.ready(_READY_WITHIN_S) for role in roles))
        yield roles
    finally:
        with ThreadPoolExecutor(len(roles)) as pool:
            list(pool.map(RoleProcess.stop, roles))


async def take_backlog(settings: Settings, turns: int) -> Backlog:
    """Let the role fold all of a backlog that is there before it starts.

    The time is read from the changelog afterwards, not asked for while the role works; metrics are scraped meanwhile.
    """
    samples: dict[str, float] = {}
    async with running(settings, "sessions") as (role,), httpx.AsyncClient() as client:
        await caught_up(settings, {"sessions": role}, scraped=True)
        while not samples.get("state_entries"):  # gauges follow
            samples = await scrape(client, role)
    timing = time_of(await folded_offsets(settings), turns)
    stages = {stage: samples.get(stage, 0.0) / turns * 1e6 for stage in STAGES}
    return Backlog(
        timing,
        changelog_bytes_per_turn=samples["changelog_bytes_total"] / turns,
        mb_per_10000_sessions=samples["state_bytes"] / samples["state_entries"] * 10_000 / 1e6,
        stage_us_per_turn={**stages, "other": max(0.0, 1e6 / timing.turns_per_s - sum(stages.values()))},
    )


async def caught_up(
    settings: Settings,
    roles: Mapping[str, RoleProcess],
    *,
    told: Callable[[str], None] = lambda _: None,
    scraped: bool = False,
) -> None:
    """Wait until every role has committed all of what it reads, the others' outputs included.

    `told` is called with how many records are left.
    """
    try:
        async with (
            asyncio.timeout(_WITHIN_S),
            admin(settings.kafka) as asked,
            consumer(settings.kafka) as reader,
            httpx.AsyncClient() as client,
        ):
            for poll in count():
                left = {name: n for name in roles if (n := await _left(settings, name, asked, reader))}
                if not left:
                    return
                for name, role in roles.items():
                    if not role.running():
                        raise BenchFailed(f"role {name} ended:\n{role.log_tail()}")
                    if scraped and poll % _SCRAPE_EVERY_POLLS == 0:
                        await scrape(client, role)
                told("records to read: " + ", ".join(f"{role} {count:,}" for role, count in left.items()))
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise BenchFailed(f"not everything was read within {_WITHIN_S:g} s") from None


async def _left(settings: Settings, role: str, asked: AIOKafkaAdminClient, reader: AIOKafkaConsumer) -> int:
    """Records that a role has not committed."""
    names = [topic.full_name(settings.topic_prefix) for topic in SOURCES[role]]
    places = [TopicPartition(name, number) for name in names for number in range(settings.kafka.partitions or 1)]
    committed = await asked.list_consumer_group_offsets(group_of(settings, role))
    ends = await reader.end_offsets(places)
    return sum(ends[place] - max(0, committed[place].offset if place in committed else 0) for place in places)


async def scrape(client: httpx.AsyncClient, role: RoleProcess) -> dict[str, float]:
    """Counters and gauges by name without the prefix, summed over partitions, and seconds by stage."""
    try:
        answer = await client.get(f"{role.url}/metrics")
    except httpx.TransportError as error:
        raise BenchFailed(f"the {role.role} role does not answer:\n{role.log_tail()}") from error
    samples: dict[str, float] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            name = sample.name.removeprefix(PREFIX)
            name = sample.labels["stage"] if name == "stage_seconds_sum" else name
            samples[name] = samples.get(name, 0.0) + sample.value
    return samples


async def folded_offsets(settings: Settings) -> list[tuple[int, int, int]]:
    """Time (ms since 1970), partition and source offset of what the role wrote to its changelog, in log order."""
    return [
        (record.timestamp, record.partition, int.from_bytes(record.value[:_OFFSET_BYTES], "big"))
        async for record in read_to_end(settings.kafka, SESSION_STATE.full_name(settings.topic_prefix))
        if record.value is not None
    ]


def time_of(folded: Iterable[tuple[int, int, int]], turns: int) -> Timing:
    """Turns after the warm-up and the time from there to the last state written, by the records' own times.

    What is written within `_SAME_POLL_MS` of the end of the warm-up was worked on before it, and belongs to it.
    `folded` has the time in ms, partition, and source offset up to which that partition is folded.
    """
    next_offsets: dict[int, int] = {}
    warm_ms = last_ms = before = 0
    for time_ms, partition, offset in sorted(folded):
        next_offsets[partition] = max(next_offsets.get(partition, 0), offset + 1)
        taken = sum(next_offsets.values())
        if not warm_ms and taken >= min(WARM_UP_TURNS, turns // 4):
            warm_ms = time_ms
        if warm_ms and time_ms <= warm_ms + _SAME_POLL_MS:
            warm_ms, before = time_ms, taken
        last_ms = time_ms
    return Timing(turns - before, (last_ms - warm_ms) / 1000)


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
        "topics": [await _topic_cost(settings, topic, turns, environment.log) for topic in REGISTRY.topics],
        "archive_bytes_per_turn": _bytes_below(environment.home / "archive", "*.parquet") / turns,
        "index_bytes_per_turn": _bytes_below(environment.home / "vectors", blocks=True) / turns,
    }


async def _topic_cost(settings: Settings, topic: Topic, turns: int, log: Path | None) -> Figures:
    records = size = 0
    name = topic.full_name(settings.topic_prefix)
    async for record in read_to_end(settings.kafka, name):
        records += 1
        size += len(record.key or b"") + len(record.value or b"")
    cost: Figures = {"topic": topic.name, "records_per_turn": records / turns, "bytes_per_turn": size / turns}
    if log is not None:
        cost["log_bytes_per_turn"] = _bytes_below(log, f"{name}-*/*.log") / turns
    return cost


def _bytes_below(folder: Path, pattern: str = "*", *, blocks: bool = False) -> int:
    """Bytes of files, or of the disk's blocks that they take: Qdrant's files have holes."""
    found = [path.stat() for path in folder.rglob(pattern) if path.is_file()]
    return sum(each.st_blocks * 512 if blocks else each.st_size for each in found)
