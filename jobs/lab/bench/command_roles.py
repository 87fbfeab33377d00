"""`turntide bench roles`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.shared.output import Output, OutputFormat


def roles(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="3,000 turns instead of 60,000: under a minute.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure what each role costs per turn: processor time, memory, and bytes in every topic, archive and index.

    Starts a Kafka of its own in a temporary folder and all roles that a turn passes. `turntide sizing` plans with it.
    """
    import asyncio

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.page_parts import Measured
    from jobs.lab.bench.page_roles import roles_section
    from jobs.lab.bench.roles import FULL_TURNS, QUICK_TURNS, measure

    printed = Output(output)
    with own_ground() as ground:
        report = asyncio.run(measure(ground, turns=QUICK_TURNS if quick else FULL_TURNS, say=printed.message))
    fields = envelope(report)
    if output is OutputFormat.JSON:
        printed.record(fields)
        return
    for table in roles_section(Measured(fields)).tables:
        printed.table(table.columns[0], table.columns, table.rows)
