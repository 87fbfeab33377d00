"""Cost of counting: the sessions role with its metrics, and with a registry that counts nothing, in turns.

Both run the same code over the same turns; `telemetry.metrics` alone differs. With metrics `/metrics` is read every
five seconds, three times as often as by Prometheus' example. Other work on the machine disturbs throughput more than a
few percent, so the order changes every round, ratios are taken within a round, and processor time is shown beside them.
"""

from __future__ import annotations

import asyncio
import statistics
from datetime import UTC, datetime

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

GOAL_RATIO = 0.97
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


class RunPair(Struct, frozen=True):
    """One round: the same turns with metrics and without."""

    counted: RoleRun
    silent: RoleRun

    @property
    def throughput_ratio(self) -> float:
        """With metrics by without: below 1 they cost throughput."""
        return self.counted.turns_per_s / self.silent.turns_per_s

    @property
    def cpu_ratio(self) -> float:
        """Without metrics by with: below 1 they cost processor time."""
        return self.silent.cpu_us_per_turn / self.counted.cpu_us_per_turn


async def measure(environment: BenchEnvironment, size: MetricsCostSize, *, say: Say) -> Figures:
    """Run everything.

    Raises:
        BenchFailed: A role ended, did not finish, or a run was too short to be measured.
    """
    pairs = []
    for number in range(size.rounds):
        runs: dict[bool, RoleRun] = {}
        for counted in (True, False) if number % 2 == 0 else (False, True):
            runs[counted] = run = await _run(environment, size.turns, number, counted=counted)
            name = "with metrics" if counted else "without"
            say(f"round {number + 1}, {name}: {run.turns_per_s:,.0f} turns/s, {run.cpu_us_per_turn:,.0f} µs CPU a turn")
        pairs.append(RunPair(runs[True], runs[False]))
    return summarise(pairs, size.turns)


def summarise(pairs: list[RunPair], turns: int) -> Figures:
    """Medians over rounds, and their ranges."""
    throughput, cpu = [pair.throughput_ratio for pair in pairs], [pair.cpu_ratio for pair in pairs]
    return {
        "turns": turns,
        "pairs": pairs,
        "throughput_ratio": statistics.median(throughput),
        "throughput_ratio_range": (min(throughput), max(throughput)),
        "cpu_ratio": statistics.median(cpu),
        "cpu_ratio_range": (min(cpu), max(cpu)),
        "goal_ratio": GOAL_RATIO,
    }


def shown(report: Figures) -> list[dict[str, str]]:
    """Ratios with their ranges, for people."""
    ratios = {
        "throughput": (report["throughput_ratio"], report["throughput_ratio_range"]),
        "processor time": (report["cpu_ratio"], report["cpu_ratio_range"]),
    }
    return [
        {"with by without": name, "median": f"{median:.3f}", "lowest": f"{low:.3f}", "highest": f"{high:.3f}"}
        for name, (median, (low, high)) in ratios.items()
    ]


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
