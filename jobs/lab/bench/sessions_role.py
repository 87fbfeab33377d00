"""The sessions role itself, as its own process: how fast it takes a backlog, and how soon an alert is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter

import httpx
from aiokafka import AIOKafkaConsumer, TopicPartition
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from jobs.lab.bench.measuring import WARM_UP_TURNS, BenchFailed, Timing
from jobs.lab.bench.traffic import TurnTraffic, paced, producing, send
from jobs.shared.role_process import RoleProcess
from models.events import AlertChanged
from models.events.topics import ALERTS, SESSION_STATE
from models.metrics import STAGES
from models.wire.codec import decode_output
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.observe.telemetry import PREFIX
from streams.settings import Settings

TURNS_PER_S = 500
"""Rate at which the alert latency is measured."""
_WARM_UP_TURNS = 2 * TURNS_PER_S
"""Sent first and not measured: connections and caches are made with the first batches."""
_POLL_S = 0.5
_READY_WITHIN_S = 120.0
_WITHIN_S = 600.0
_ALERT_WITHIN_S = 30.0
_TICK_S = 0.01
_SAME_POLL_MS = 5
_OFFSET_BYTES = 8
"""Every state value begins with the source offset of the last input folded in (`streams.state.changelog`)."""


class Backlog(Struct, frozen=True):
    """What the role made of a backlog.

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
    settings: Settings, *names: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[list[RoleProcess]]:
    """Roles of these names, all ready; their logs lie in the data directory."""
    logs = settings.data_dir / "logs"
    roles = [
        RoleProcess(name, settings, log=logs / f"{settings.topic_prefix}-{n}.log", extra_environment=environment)
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

    The time is read from the changelog afterwards, not asked for while the role works.

    Raises:
        BenchFailed: It ended, or did not fold everything in time.
    """
    async with running(settings, "sessions") as (role,), httpx.AsyncClient() as client, asyncio.timeout(_WITHIN_S):
        samples = await scrape(client, role)
        while samples["turns_folded_total"] < turns or not samples["state_entries"]:  # gauges follow
            await asyncio.sleep(_POLL_S)
            samples = await scrape(client, role)
    timing = time_of(await folded_offsets(settings), turns)
    stages = {stage: samples.get(stage, 0.0) / turns * 1e6 for stage in STAGES}
    return Backlog(
        timing=timing,
        changelog_bytes_per_turn=samples["changelog_bytes_total"] / turns,
        mb_per_10000_sessions=samples["state_bytes"] / samples["state_entries"] * 10_000 / 1e6,
        stage_us_per_turn={**stages, "other": max(0.0, 1e6 / timing.turns_per_s - sum(stages.values()))},
    )


async def scrape(client: httpx.AsyncClient, role: RoleProcess) -> dict[str, float]:
    """Counters and gauges by name without the prefix, summed over partitions, and seconds by stage."""
    try:
        answer = await client.get(f"{role.url}/metrics")
    except httpx.TransportError as error:
        raise BenchFailed(f"the sessions role does not answer:\n{role.log_tail()}") from error
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

    Args:
        folded: Time in ms, partition, source offset up to which that partition is folded.
        turns: Length of the log.

    >>> time_of([(1_000, 0, 249), (1_002, 1, 249), (1_102, 0, 999)], 1_250)
    Timing(turns=750, seconds=0.1)
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


async def alert_latencies_ms(settings: Settings, seconds: float) -> list[float]:
    """Send turns at `TURNS_PER_S` and read the alerts that they raise.

    A turn's time is the one at which it was due, so that a sender that falls behind hides nothing.

    Returns:
        Milliseconds from then to the receipt of each alert, for every tenth turn.

    Raises:
        BenchFailed: An alert did not come.
    """
    alerts = ALERTS.full_name(settings.topic_prefix)
    places = [TopicPartition(alerts, number) for number in await require_topic(settings.kafka, alerts)]
    async with (
        running(settings, "sessions") as (role,),
        consumer(settings.kafka, auto_offset_reset="earliest") as client,
    ):
        client.assign(places)
        traffic, turns = TurnTraffic(), _WARM_UP_TURNS + round(seconds * TURNS_PER_S)
        due_s: dict[tuple[str, int], float] = {}
        sending = asyncio.create_task(_send(settings, traffic, turns, due_s))
        try:
            return await _receive(client, due_s, sending, sum(map(traffic.alarms, range(_WARM_UP_TURNS, turns))))
        except TimeoutError:
            raise BenchFailed(f"no alert for {_ALERT_WITHIN_S:g} s:\n{role.log_tail()}") from None
        finally:
            sending.cancel()


async def _send(settings: Settings, traffic: TurnTraffic, turns: int, due_s: dict[tuple[str, int], float]) -> None:
    """Warm up, then note when each alarming turn is due; send all of them on time."""
    began_s, began = perf_counter(), datetime.now(UTC)
    async with producing(settings) as producer:
        async for due, n in paced(range(turns), TURNS_PER_S, tick_s=_TICK_S):
            turn = traffic.alarming(n, began + timedelta(seconds=due - began_s))
            if n >= _WARM_UP_TURNS and traffic.alarms(n):
                due_s[turn.session_id, turn.turn] = due
            await send(producer, settings, turn)
        await producer.flush()


async def _receive(
    client: AIOKafkaConsumer, due_s: dict[tuple[str, int], float], sending: asyncio.Task[None], alerts: int
) -> list[float]:
    latencies_ms: dict[tuple[str, int], float] = {}
    while len(latencies_ms) < alerts:
        if sending.done():
            sending.result()
        async with asyncio.timeout(_ALERT_WITHIN_S):
            record = await client.getone()
        received_s = perf_counter()
        alert = decode_output(ALERTS, record.value)
        if isinstance(alert, AlertChanged) and (alert.session_id, alert.turn) in due_s:
            cause = alert.session_id, alert.turn
            latencies_ms.setdefault(cause, (received_s - due_s[cause]) * 1000)
    await sending
    return list(latencies_ms.values())
