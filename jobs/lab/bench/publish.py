"""What the commands of `turntide bench` share: they measure, then print the section that the page has of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from jobs.lab.bench.machine import envelope, own_environment
from jobs.lab.bench.measuring import Figures, Say
from jobs.lab.bench.page import PageSection, held_table, section_of
from jobs.shared.output import OutputFormat, Printer


def publish(name: str, output: OutputFormat, measure: Callable[[Say], Figures]) -> PageSection:
    """Measure and print: the section that the page has of it, or everything in its envelope.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Gives the figures; is told how to say what is going on.

    Returns:
        The section.
    """
    printed, load_average = Printer(output), os.getloadavg()[0]
    figures = msgspec.to_builtins(measure(printed.message))
    figures |= {"load_average_at_start": load_average, "cpus": os.cpu_count() or 1}
    section = section_of(name, figures)
    held = [figure.printed() for figure in section.held]
    if output is OutputFormat.CSV and section.csv == "held":
        printed.rows("held", held)
    elif output is OutputFormat.TABLE or (output is OutputFormat.CSV and section.csv == "tables"):
        for said in section.said:
            printed.message(said)
        for table in (*section.tables, held_table(section.held)):
            if table.rows:
                printed.table(table.columns[0], table.columns, table.rows)
        printed.message(f"load average before: {load_average:.2f}, {figures['cpus']} CPUs")
    else:
        printed.record(envelope({**figures, "held": held}))
    return section


def publish_on_kafka(
    name: str, output: OutputFormat, measure: Callable[..., Coroutine[Any, Any, Figures]], *sizes: object
) -> PageSection:
    """Measure on a Kafka of its own in a temporary folder, and print.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Called with the environment, the sizes, and `say`.
        sizes: How much is measured.
    """

    def measured(say: Say) -> Figures:
        with own_environment() as environment:
            return asyncio.run(measure(environment, *sizes, say=say))

    return publish(name, output, measured)
