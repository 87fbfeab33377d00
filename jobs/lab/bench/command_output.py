"""How the commands of `turntide bench` take their measurements and print them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from jobs.shared.output import OutputFormat, Printer

if TYPE_CHECKING:
    from jobs.lab.bench.machine import BenchEnvironment
    from jobs.lab.bench.measuring import Say
    from jobs.lab.bench.page_parts import PageSection

Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]
_Report = TypeVar("_Report")
Show = Callable[[Printer, _Report], None]


def on_kafka(measure: Callable[[BenchEnvironment], Coroutine[Any, Any, _Report]]) -> _Report:
    """Measure on a Kafka of its own."""
    from jobs.lab.bench.machine import own_environment

    with own_environment() as environment:
        return asyncio.run(measure(environment))


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder."""
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def plain(report: Any) -> Any:
    """A report as JSON has it."""
    import msgspec

    return msgspec.to_builtins(report)


def publish(
    name: str,
    output: OutputFormat,
    measure: Callable[[Say], _Report],
    *,
    show: Show[_Report] | None = None,
    csv: Literal["held", "tables"] | Show[_Report] | None = None,
) -> PageSection:
    """Measure and print: the tables of the section that the page has of it, or everything in its envelope.

    Args:
        name: Of the section.
        output: How the figures are printed.
        measure: Gives the report; is told how to say what is going on.
        show: Prints further tables for people, before those of the section.
        csv: What is printed as CSV: figures that are held to a limit, the tables, or by a function; none: everything.

    Returns:
        The section.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.page import section_of
    from jobs.lab.bench.page_parts import PrintedResult, held_table

    printed, load_average = Printer(output), os.getloadavg()[0]
    report = measure(printed.message)
    fields = {**plain(report), "load_average_at_start": load_average, "cpus": os.cpu_count() or 1}
    section = section_of(name, PrintedResult(fields))
    held = [figure.printed() for figure in section.held]
    if callable(csv) and output is OutputFormat.CSV:
        csv(printed, report)
    elif csv == "held" and output is OutputFormat.CSV:
        printed.rows("held", held)
    elif output is OutputFormat.TABLE or (csv == "tables" and output is OutputFormat.CSV):
        for said in section.said:
            printed.message(said)
        if show is not None:
            show(printed, report)
        for table in (*section.tables, held_table(section.held)):
            if table.rows:
                printed.table(table.columns[0], table.columns, table.rows)
        printed.message(f"load average before: {load_average:.2f}, {fields['cpus']} CPUs")
    else:
        printed.record(envelope({**fields, "held": held}))
    return section
