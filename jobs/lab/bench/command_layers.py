"""`turntide bench topics | retrieve | memories | project`: what each layer of memory takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.shared.output import Output, OutputFormat


def topics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Dialogues, in any format of `turntide produce`. None: the demo's.", show_default=False),
    ] = None,
    *,
    where: Annotated[
        list[str] | None, typer.Option(help="Only dialogues beside which this stands, as name=value; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few sessions and one short round: under a minute.")] = False,
    role: Annotated[
        bool, typer.Option("--role/--no-role", help="Whether the sessions role runs, on a Kafka of its own.")
    ] = True,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure topic memory: time, packing, size, throughput with it and without, and what is still found.

    Dialogues of a file are strung together to long sessions, those of one user first. Each figure stands beside the
    limit that it is held to. --output csv prints these alone. No message is ever printed.
    """
    import asyncio

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.topics import FULL, QUICK, measure
    from jobs.lab.bench.topics_table import show
    from jobs.lab.eval.topics_dialogues import parse_conditions, read_dialogues
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    printed, settings = Output(output), load_settings()
    embedder = embedder_of(settings)
    report = asyncio.run(
        measure(
            read_dialogues(files or [], parse_conditions(where or [])),
            embedder,
            policy_of(settings),
            QUICK if quick else FULL,
            ground=own_ground() if role else None,
            say=printed.message,
        )
    )
    _print(report, printed, output, show)


def retrieve(
    *,
    memories: Annotated[int, typer.Option(min=1_000, help="Facts, episodes and turns together.")] = 100_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Requests a second.")] = 200.0,
    seconds: Annotated[float, typer.Option(min=1, help="For each route, the warm-up left out.")] = 30.0,
    quick: Annotated[bool, typer.Option("--quick", help="5,000 memories, 50 requests/s: half a minute.")] = False,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Also from a turn that is sent to its context, on a Kafka of its own.")
    ] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure reading memory from the local store: inside the process, and over HTTP at a steady rate.

    Locust sends the requests from a process of its own (`uv run --group bench …`). Times run from the moment a request
    is due, so that a server that stalls cannot hide it. /livez, beside the routes, is what HTTP alone takes on this
    machine. Where the limit does not hold at the rate, lower ones are tried.
    """
    import asyncio
    from contextlib import ExitStack
    from tempfile import TemporaryDirectory

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.retrieve import QUICK, Size, measure
    from jobs.lab.bench.retrieve_table import printable, show
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    printed = Output(output)
    size = QUICK if quick else Size(memories=memories, rate=rate, seconds=seconds)
    with ExitStack() as stack:
        if end_to_end:
            ground = stack.enter_context(own_ground())
            settings = load_settings(kafka={"bootstrap": ground.bootstrap}, data_dir=ground.home / "data")
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True))
            settings = load_settings(data_dir=Path(folder))
        settings.data_dir.mkdir(exist_ok=True)
        report = asyncio.run(
            measure(
                settings.data_dir,
                settings,
                policy_of(settings),
                embedder_of(settings),
                size,
                end_to_end=end_to_end,
                say=printed.message,
            )
        )
    if output is OutputFormat.TABLE:
        show(printed, report)
    else:
        printed.record(envelope(printable(report)))


def memories(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer turns, apps and questions: under a minute.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure memories of apps: making and compacting them, reading them, and what share of the work they are.

    Needs no Kafka and asks no language model: folds and a local store in this process. Each figure stands beside the
    limit that it is held to. --output csv prints these alone.
    """
    import asyncio
    from tempfile import TemporaryDirectory

    from jobs.lab.bench.memories import QUICK, Size, measure
    from jobs.lab.bench.memories_table import show
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    printed, settings = Output(output), load_settings()
    size = QUICK if quick else Size()
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        report = asyncio.run(
            measure(Path(folder), policy_of(settings), embedder_of(settings), size, say=printed.message)
        )
    _print(report, printed, output, show)


def project(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="1,000 memories, short conversations: seconds.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure projects' memory: retrieval at 10,000 memories, consolidation, and whether a turn's cost stays flat.

    Needs no Kafka and no store: the fold and a reader's view in this process. Each figure stands beside the limit that
    it is held to. --output csv prints these alone.
    """
    from jobs.lab.bench.project import QUICK, Size, measure
    from jobs.lab.bench.project_table import show
    from streams.settings import load_settings
    from streams.wiring import policy_of

    printed = Output(output)
    report = measure(policy_of(load_settings()), QUICK if quick else Size(), say=printed.message)
    _print(report, printed, output, show)


def _print(report: Any, printed: Output, output: OutputFormat, show: Callable[[Output, Any], None]) -> None:
    """As a table, as the figures that are held to a limit alone, or whole."""
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.topics_table import held_row

    if output is OutputFormat.TABLE:
        show(printed, report)
    elif output is OutputFormat.CSV:
        printed.rows("held", [held_row(figure) for figure in report.held])
    else:
        printed.record(envelope(report))
