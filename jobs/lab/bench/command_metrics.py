"""`turntide bench metrics`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.shared.output import Output, OutputFormat


def metrics(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One short round to see that it works.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure what counting costs: throughput and processor time of the sessions role with metrics by without.

    Starts a Kafka of its own in a temporary folder. A ratio of 1 is no cost; the goal is 0.97 or more.
    """
    import asyncio

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.metrics_cost import FULL, QUICK, measure

    printed = Output(output)
    with own_ground() as ground:
        report = asyncio.run(measure(ground, QUICK if quick else FULL, say=printed.message))
    if output is not OutputFormat.TABLE:
        printed.record(envelope(report))
        return
    shown = {
        "throughput": (report.throughput_ratio, report.throughput_ratio_range),
        "processor time": (report.cpu_ratio, report.cpu_ratio_range),
    }
    rows = [
        {"with by without": name, "median": f"{median:.3f}", "lowest": f"{low:.3f}", "highest": f"{high:.3f}"}
        for name, (median, (low, high)) in shown.items()
    ]
    printed.rows(f"metrics, {len(report.pairs)} rounds, goal {report.goal_ratio}", rows)
