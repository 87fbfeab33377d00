"""`turntide bench live`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.shared.output import Output, OutputFormat


def live(
    *,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions that are open.")] = 10_000,
    pages: Annotated[int, typer.Option(min=1, help="Pages that read.")] = 20,
    stuck: Annotated[int, typer.Option(min=0, help="Pages that stop reading.")] = 20,
    updates: Annotated[int, typer.Option(min=1, help="Sessions that change in a second.")] = 60,
    seconds: Annotated[int, typer.Option(min=1, help="For how long.")] = 30,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure what the live page costs its role: processor time of a change, bytes of a page, memory over time.

    In one process, without a broker and sockets. Pages that stop reading are let go after live.stall_timeout (15 s).
    """
    import asyncio

    import msgspec

    from jobs.lab.bench.live import LivePlan, measure
    from jobs.lab.bench.machine import envelope

    plan = LivePlan(sessions=sessions, pages=pages, stuck=stuck, updates_per_s=updates, seconds=seconds)
    report = asyncio.run(measure(plan))
    printed = Output(output)
    printed.record(envelope(report) if output is OutputFormat.JSON else msgspec.to_builtins(report))
