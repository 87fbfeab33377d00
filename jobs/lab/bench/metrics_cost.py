"""Cost of counting: the sessions role with its metrics, and with a registry that counts nothing, in turns.

Both run the same code over the same turns; `telemetry.metrics` alone differs. With metrics `/metrics` is read every
five seconds, three times as often as by Prometheus' example. Other work on the machine disturbs throughput more than a
few percent, so the order changes every round, ratios are taken within a round, and processor time is shown beside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

import httpx
from msgspec import Struct

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, Say, cpu_s
from jobs.lab.bench.sessions_role import folded_offsets, running, time_of
from jobs.lab.bench.traffic import TurnTraffic, send_all
from jobs.operate.topics import apply_topics
from jobs.shared.role_groups import group_of
from jobs.shared.role_process import RoleProcess
from streams.kafka.client import admin
from streams.settings import Settings

_POLL_S = 1.0
_SCRAPE_EVERY_POLLS = 5
_WITHIN_S = 600.0


class MetricsCostSize(Struct, frozen=True):
    """How much is measured: rounds of two runs each, and turns of a run."""

    rounds: int
    turns: int


FULL, QUICK = MetricsCostSize(rounds=5, turns=20_000), MetricsCostSize(rounds=1, turns=4_000)


class RoleRun(Struct, frozen=True):
    """One run of the role.

    Attributes:
        turns_per_s: After a warm-up, by the times of what it wrote.
        cpu_us_per_turn: Of its process from ready to the last commit, both cores together.
    """

    turns_per_s: float
    cpu_us_per_turn: float


async def measure(environment: BenchEnvironment, size: MetricsCostSize, *, say: Say) -> Figures:
    """Run everything.

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
        async with asyncio.timeout(_WITHIN_S), admin(settings.kafka) as asked, httpx.AsyncClient() as client:
            while sum(each.offset for each in (await asked.list_consumer_group_offsets(group)).values()) < turns:
                if not role.running():
                    raise BenchFailed(f"the sessions role ended:\n{role.log_tail()}")
                if scraped and polls % _SCRAPE_EVERY_POLLS == 0:
                    await client.get(f"{role.url}/metrics")
                polls += 1
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise BenchFailed(f"not all turns were folded within {_WITHIN_S:g} s:\n{role.log_tail()}") from None
