"""`turntide bench`: how fast, beside what, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.lab.bench.command_layers import memories, project, retrieve, topics
from jobs.lab.bench.command_live import live
from jobs.lab.bench.command_metrics import metrics
from jobs.lab.bench.command_roles import roles
from jobs.shared.output import Output, OutputFormat

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
    """Compare the sessions role with the plain fold, Faust per event, Quix Streams, Bytewax and raw reading.

    Starts a Kafka of its own in a temporary folder. Every ratio is the role's throughput divided by the other's in the
    same round, and the median over rounds is printed with its range: above 1 the role is faster.
    """
    import asyncio

    from jobs.lab.bench.contender import missing_packages
    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.stream import FULL, QUICK, measure
    from jobs.lab.bench.stream_table import show

    printed = Output(output)
    for package in missing_packages():
        printed.message(f"{package} is left out: `uv run --group bench turntide bench stream` installs it")
    with own_ground() as ground:
        report = asyncio.run(measure(ground, QUICK if quick else FULL, say=printed.message))
    if output is OutputFormat.TABLE:
        show(printed, report)
    else:
        printed.record(envelope(report))


@app.command(epilog=examples("turntide bench kills", "turntide bench kills --kills 3 --contender quix_exactly_once"))
def kills(
    *,
    count: Annotated[int, typer.Option("--kills", min=1, max=30, help="How often each contender is killed.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed: the same turns, killed at the same moments.")] = 1,
    contender: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times. None: all.")
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the rows are printed.")] = OutputFormat.TABLE,
) -> None:
    """Kill −9 the sessions role, Faust per event, Quix Streams and Bytewax at the same moments, and count.

    Each is started again at once, on a log with the same turns; then turns and alerts are held against a replay of the
    log. Lost and doubled are turns; a repeat with the same id can be recognised, one with another id cannot.
    """
    import asyncio

    import msgspec

    from jobs.lab.bench.contender import missing_packages
    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.kills import contenders, measure
    from jobs.lab.bench.machine import envelope

    printed, names = Output(output), contender or contenders()
    if unknown := set(names) - set(contenders()):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: installed are {', '.join(contenders())}")
    for package in missing_packages():
        printed.message(f"{package} is left out: `uv run --group bench turntide bench kills` installs it")
    with own_ground() as ground:
        report = asyncio.run(measure(ground, names=names, kills=count, seed=seed, say=printed.message))
    if output is OutputFormat.JSON:
        printed.record(envelope(report))
    else:
        printed.rows(f"After {count} kills each", msgspec.to_builtins(report.rows))


@app.command(
    epilog=examples(
        "turntide bench scale --quick",
        "turntide bench scale --output json > deploy/measurements/scale.json",
        "turntide bench scale --pictures curves",
    )
)
def scale(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sessions, workers and runs, about a minute.")] = False,
    pictures: Annotated[Path | None, typer.Option(help="Folder to draw each curve into, as SVG.")] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure what grows with size: long sessions, many sessions, several workers on one backlog.

    A turn of a long session must not cost more than 1.3 times one of a short session. More workers than CPUs cannot be
    faster, and the broker runs beside them here. Without --quick it takes about a quarter of an hour; a number of
    sessions that does not fit into the memory that is free is left out, and said.
    """
    import asyncio

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.page_parts import Measured
    from jobs.lab.bench.page_scale import scale_section
    from jobs.lab.bench.scale import FULL, QUICK, measure

    printed = Output(output)
    with own_ground() as ground:
        report = asyncio.run(measure(ground, QUICK if quick else FULL, say=printed.message))
    fields = envelope(report)
    section = scale_section(Measured(fields))
    if output is OutputFormat.TABLE:
        for table in section.tables:
            printed.table(table.columns[0], table.columns, table.rows)
    else:
        printed.record(fields)
    if pictures is not None:
        for picture in section.pictures:
            picture.draw(pictures / picture.file)
        printed.message(f"{len(section.pictures)} pictures drawn into {pictures}")


@app.command(epilog=examples("turntide bench page", "turntide bench page deploy/measurements --output json"))
def page(
    folder: Annotated[
        Path,
        typer.Argument(help="Where stream.json, recovery.json, scale.json, memory.json, kills.json, chaos.json are."),
    ] = Path("deploy") / "measurements",
    *,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Write the page of measurements: README.md and pictures, from the JSON that the measuring commands printed.

    Keep each command's `--output json` in a file of its name; those that are missing are left out. An earlier
    stream.json kept as stream-before.json shows what a turn cost before. What is held to what is printed as well.
    """
    from jobs.lab.bench.page import PAGE, write_page

    printed = Output(output)
    rows = [
        {"figure": held.what, "value": held.value, "bound": held.bound, "unit": held.unit, "reached": held.reached}
        for held in write_page(folder)
    ]
    printed.rows("held to", rows)
    printed.message(f"written: {folder / PAGE}")


@app.command(
    epilog=examples(
        "turntide bench memory --quick", "turntide bench memory --sessions 1000000 --open 50000 --output json"
    )
)
def memory(
    *,
    sessions: Annotated[int, typer.Option(min=20, help="Sessions that stream by.")] = 1_000_000,
    open_at_once: Annotated[int, typer.Option("--open", min=20, help="Of them open at once, at most.")] = 50_000,
    quick: Annotated[bool, typer.Option("--quick", help="40,000 sessions, 2,000 open: under a minute.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Show that memory is bounded: sessions come and go, the process stays as large as those that are open.

    Needs no Kafka: fold and table in this process. `mb_per_10000_sessions` is what open sessions of twelve turns take,
    `is_level` whether the second half of the run needed no more than 5 % above its middle.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.memory import QUICK, Size, measure
    from streams.settings import load_settings
    from streams.wiring import policy_of

    printed = Output(output)
    size = QUICK if quick else Size(sessions=sessions, open=open_at_once)
    printed.record(envelope(measure(size, policy_of(load_settings()), say=printed.message)))


@app.command(epilog=examples("turntide bench recovery --quick", "turntide bench recovery --keys 100000 --output json"))
def recovery(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="20,000 keys, once: under a minute.")] = False,
    keys: Annotated[
        list[int] | None, typer.Option(min=1_000, help="Keys of the state; may be given again. [100000, 1000000]")
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Compare how soon state is back from its changelog: ours, in memory and in RocksDB, and a stock Faust table.

    Starts a Kafka of its own in a temporary folder. A warm start has its RocksDB from before, and reads one record in
    a hundred. With a million keys stock Faust takes minutes and runs once.
    """
    import asyncio

    import msgspec

    from jobs.lab.bench.environment import own_ground
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.recovery import FULL, QUICK, Size, measure

    printed = Output(output)
    sizes: tuple[Size, ...] = QUICK if quick else FULL
    if keys:
        runs = sizes[0].runs
        sizes = tuple(Size(each, runs=runs, stock_runs=runs if each < FULL[1].keys else 1) for each in keys)
    with own_ground() as ground:
        report = asyncio.run(measure(ground, sizes, say=printed.message))
    if output is OutputFormat.TABLE:
        printed.rows("recovery", [msgspec.to_builtins(row) for row in report.rows])
    else:
        printed.record(envelope(report))


app.command(
    epilog=examples(
        "turntide bench topics --quick",
        "turntide bench topics locomo10.json --output json > deploy/measurements/topics.json",
        "turntide bench topics dialogues.jsonl --where label=benign --no-role",
    )
)(topics)
app.command(
    epilog=examples(
        "turntide bench retrieve --quick",
        "turntide bench retrieve --end-to-end --output json > deploy/measurements/retrieve.json",
    )
)(retrieve)
app.command(
    epilog=examples(
        "turntide bench memories --quick", "turntide bench memories --output json > deploy/measurements/memories.json"
    )
)(memories)
app.command(
    epilog=examples(
        "turntide bench project --quick", "turntide bench project --output json > deploy/measurements/project.json"
    )
)(project)
app.command(
    epilog=examples(
        "turntide bench roles --quick", "turntide bench roles --output json > deploy/measurements/roles.json"
    )
)(roles)
app.command(epilog=examples("turntide bench live", "turntide bench live --pages 200 --stuck 50 --seconds 60"))(live)
app.command(epilog=examples("turntide bench metrics --quick", "turntide bench metrics --output json"))(metrics)


@app.command(
    epilog=examples(
        "turntide bench archive --quick",
        "turntide bench archive --data-dir bench-archive --output json > deploy/measurements/archive.json",
    )
)
def archive(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="500,000 turns instead of 20 million.")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where the archive is made, and kept for the next run; none: a temporary folder."),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure the archive: landing beside the physical limit, size, merging, each view, each mining job, the report.

    Needs no Kafka: made-up sessions go through the real landing. Each figure stands beside the limit that it is held
    to; --output csv prints these alone.
    """
    from tempfile import TemporaryDirectory

    from jobs.lab.bench.archive import FULL, QUICK, measure
    from jobs.lab.bench.machine import envelope
    from jobs.lab.bench.page_archive import archive_section
    from jobs.lab.bench.page_parts import Measured, held_table
    from jobs.shared.progress import progress_bar
    from streams.settings import load_settings

    printed = Output(output)
    with (
        TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder,
        progress_bar("turns") as progress,
    ):
        report = measure(
            data_dir or Path(folder), load_settings(), QUICK if quick else FULL, say=printed.message, progress=progress
        )
    fields = envelope(report)
    section = archive_section(Measured(fields))
    held = held_table(section.held)
    if output is OutputFormat.JSON:
        printed.record(fields)
        return
    for table in (held,) if output is OutputFormat.CSV else (*section.tables, held):
        printed.table(table.columns[0], table.columns, table.rows)
