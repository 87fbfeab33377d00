"""How the commands of `turntide bench` take their measurements and print them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from jobs.shared.output import Output, OutputFormat

if TYPE_CHECKING:
    from jobs.lab.bench.machine import Ground
    from jobs.lab.bench.page_parts import Table

Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]
_Report = TypeVar("_Report")


def on_kafka(measure: Callable[[Ground], Coroutine[Any, Any, _Report]]) -> _Report:
    """Measure on a Kafka of its own."""
    from jobs.lab.bench.machine import own_ground

    with own_ground() as ground:
        return asyncio.run(measure(ground))


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder."""
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def plain(report: Any) -> Any:
    """A report as JSON has it."""
    import msgspec

    return msgspec.to_builtins(report)


def print_report(printed: Output, report: Any, show: Callable[[], None], csv: Callable[[], None] | None = None) -> None:
    """Print a report: as tables for people, as CSV if there is a form for it, else whole in its envelope."""
    from jobs.lab.bench.machine import envelope

    if printed.form is OutputFormat.TABLE:
        show()
    elif printed.form is OutputFormat.CSV and csv is not None:
        csv()
    else:
        printed.record(envelope(report))


def print_held(printed: Output, report: Any, show: Callable[[Output, Any], None]) -> None:
    """Print a report with figures that are held to a limit; as CSV these alone."""
    from jobs.lab.bench.measuring import held_row

    print_report(
        printed,
        report,
        lambda: show(printed, report),
        lambda: printed.rows("held", [held_row(figure) for figure in report.held]),
    )


def print_tables(printed: Output, tables: Iterable[Table]) -> None:
    """Print the tables of a section of the page."""
    for table in tables:
        printed.table(table.columns[0], table.columns, table.rows)
