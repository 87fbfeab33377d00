"""`turntide bench`: how fast, beside what, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.lab.bench.command_layers import layers
from jobs.lab.bench.command_output import Form, on_kafka, plain, publish
from jobs.shared.output import OutputFormat, Printer

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
    output: Form = OutputFormat.TABLE,
) -> None:
    """Compare the sessions role with the plain fold, Faust per event, Quix Streams, Bytewax and raw reading.

    Starts a Kafka of its own in a temporary folder. Every ratio is the role's throughput divided by the other's in the
    same round, and the median over rounds is printed with its range: above 1 the role is faster.
    """
    from jobs.lab.bench.contender import missing_packages
    from jobs.lab.bench.stream import FULL, QUICK, figure_rows, measure

    for package in missing_packages():
        Printer(output).message(f"{package} is left out: `uv run --group bench turntide bench stream` installs it")
    publish(
        "stream",
        output,
        lambda say: on_kafka(lambda environment: measure(environment, QUICK if quick else FULL, say=say)),
        show=lambda printed, report: printed.rows("Throughput, latency, size", figure_rows(report)),
    )


@app.command(epilog=examples("turntide bench kills", "turntide bench kills --kills 3 --contender quix_exactly_once"))
def kills(
    *,
    count: Annotated[int, typer.Option("--kills", min=1, max=30, help="How often each contender is killed.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed: the same turns, killed at the same moments.")] = 1,
    contender: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times. None: all.")
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Kill −9 the sessions role, Faust per event, Quix Streams and Bytewax at the same moments, and count.

    Each is started again at once, on a log with the same turns; then turns and alerts are held against a replay of the
    log. Lost and doubled are turns; a repeat with the same id can be recognised, one with another id cannot.
    """
    from jobs.lab.bench.contender import missing_packages
    from jobs.lab.bench.kills import contenders, measure

    names = contender or contenders()
    if unknown := set(names) - set(contenders()):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: installed are {', '.join(contenders())}")
    for package in missing_packages():
        Printer(output).message(f"{package} is left out: `uv run --group bench turntide bench kills` installs it")
    publish(
        "kills",
        output,
        lambda say: on_kafka(lambda environment: measure(environment, names=names, kills=count, seed=seed, say=say)),
        show=(show := lambda printed, report: printed.rows(f"After {count} kills each", plain(report["rows"]))),
        csv=show,
    )


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
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what grows with size: long sessions, many sessions, several workers on one backlog.

    A turn of a long session must not cost more than 1.3 times one of a short session. More workers than CPUs cannot be
    faster, and the broker runs beside them here. Without --quick it takes about a quarter of an hour; a number of
    sessions that does not fit into the memory that is free is left out, and said.
    """
    from jobs.lab.bench.scale import FULL, QUICK, measure

    section = publish(
        "scale",
        output,
        lambda say: on_kafka(lambda environment: measure(environment, QUICK if quick else FULL, say=say)),
    )
    if pictures is not None:
        for picture in section.pictures:
            picture.draw(pictures / picture.file)
        Printer(output).message(f"{len(section.pictures)} pictures drawn into {pictures}")


@app.command(epilog=examples("turntide bench page", "turntide bench page deploy/measurements --output json"))
def page(
    folder: Annotated[
        Path,
        typer.Argument(help="Where stream.json, recovery.json, scale.json, memory.json, kills.json, chaos.json are."),
    ] = Path("deploy") / "measurements",
    *,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Write the page of measurements: README.md and pictures, from the JSON that the measuring commands printed.

    Keep each command's `--output json` in a file of its name; those that are missing are left out. An earlier
    stream.json kept as stream-before.json shows what a turn cost before. What is held to what is printed as well.
    """
    from jobs.lab.bench.page import PAGE, write_page

    printed = Printer(output)
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
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show that memory is bounded: sessions come and go, the process stays as large as those that are open.

    Needs no Kafka: fold and table in this process. `mb_per_10000_sessions` is what open sessions of twelve turns take,
    `is_level` whether the second half of the run needed no more than 5 % above its middle.
    """
    from jobs.lab.bench.memory import QUICK, FootprintSize, measure
    from streams.settings import load_settings
    from streams.wiring import policy_of

    size, policy = QUICK if quick else FootprintSize(sessions=sessions, open=open_at_once), policy_of(load_settings())
    publish(
        "memory",
        output,
        lambda say: measure(size, policy, say=say),
        show=lambda printed, report: printed.record(plain(report)),
    )


@app.command(epilog=examples("turntide bench recovery --quick", "turntide bench recovery --keys 100000 --output json"))
def recovery(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="20,000 keys, once: under a minute.")] = False,
    keys: Annotated[
        list[int] | None, typer.Option(min=1_000, help="Keys of the state; may be given again. [100000, 1000000]")
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Compare how soon state is back from its changelog: ours, in memory and in RocksDB, and a stock Faust table.

    Starts a Kafka of its own in a temporary folder. A warm start has its RocksDB from before, and reads one record in
    a hundred. With a million keys stock Faust takes minutes and runs once.
    """
    from jobs.lab.bench.recovery import FULL, QUICK, RecoverySize, measure

    sizes: tuple[RecoverySize, ...] = QUICK if quick else FULL
    if keys:
        runs = sizes[0].runs
        sizes = tuple(RecoverySize(each, runs=runs, stock_runs=runs if each < FULL[1].keys else 1) for each in keys)
    publish("recovery", output, lambda say: on_kafka(lambda environment: measure(environment, sizes, say=say)))


app.add_typer(layers)
