"""`turntide bench`: how fast, beside what, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli import examples
from jobs.output import Output, OutputFormat

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure speed on this machine, beside other ways to do the same.",
)


@app.callback()
def bench() -> None:
    """Measure speed on this machine, beside other ways to do the same."""


@app.command(epilog=examples("turntide bench stream --quick", "turntide bench stream --output json"))
def stream(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One short run to see that it works, about a minute.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Compare the sessions role with the plain fold, Faust per event, Quix Streams and raw reading.

    Starts a Kafka of its own in a temporary folder. Every ratio is the role's throughput divided by the other's in the
    same run, and the median over runs is printed: above 1 the role is faster.
    """
    import asyncio
    import os
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import msgspec

    from jobs.bench.contender import quix_is_installed
    from jobs.bench.stream import FULL, QUICK, measure
    from jobs.broker.local_kafka import LocalKafka

    printed = Output(output)
    if not quix_is_installed():
        printed.message("Quix Streams is left out, its package is not installed: `uv sync --group bench` installs it")
    load_average = os.getloadavg()[0]
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        with LocalKafka(home) as broker:
            size = QUICK if quick else FULL
            report = asyncio.run(measure(broker.bootstrap, home, size, load_average=load_average, say=printed.message))
    printed.record(msgspec.to_builtins(report))
