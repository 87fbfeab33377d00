"""Price of metrics to the sessions role: its throughput and processor time with them and without."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from jobs.lab.bench.folds import send_backlog
from jobs.lab.bench.measuring import BenchEnvironment, Figures, in_turns, say
from jobs.lab.bench.sessions_role import take_backlog

QUICK = {"rounds": 1, "turns": 4_000}


async def measure(environment: BenchEnvironment, *, rounds: int = 5, turns: int = 20_000) -> Figures:
    """Run the sessions role with its metrics, and with a registry that counts nothing, in turns over the same backlog.

    Other work on the machine disturbs throughput more than a few percent, so processor time is shown beside it.
    """

    async def run(number: int, counted: bool) -> dict[str, float]:
        settings = await environment.fresh()
        await send_backlog(settings, number, turns)
        taken = await take_backlog(settings, turns, counted=counted)
        rate, cpu_us = taken.timing.turns_per_s, taken.cpu_us_per_turn
        name = "counted" if counted else "silent"
        say(f"round {number + 1}, {name}: {rate:,.0f} turns/s, {cpu_us:,.0f} µs CPU a turn")
        return {"turns_per_s": rate, "cpu_us_per_turn": cpu_us}

    return summarise(await in_turns(rounds, run), turns)


def summarise(pairs: Sequence[dict[bool, dict[str, float]]], turns: int) -> Figures:
    """Medians and ranges over rounds of with metrics by without: below 1 they cost."""
    throughput = [pair[True]["turns_per_s"] / pair[False]["turns_per_s"] for pair in pairs]
    cpu = [pair[False]["cpu_us_per_turn"] / pair[True]["cpu_us_per_turn"] for pair in pairs]
    return {
        "turns": turns,
        "pairs": [{"counted": pair[True], "silent": pair[False]} for pair in pairs],
        **{
            name: {"median": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
            for name, ratios in (("throughput", throughput), ("cpu", cpu))
        },
    }
