"""`turntide lab bench`: how fast, beside what, on this machine."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli import examples
from jobs.shared.output import OutputFormat, Printer

if TYPE_CHECKING:
    from jobs.lab.bench.result import Result

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure speed on this machine, beside other ways to do the same.",
)
Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]
_ON_KAFKA = {"stream", "kills", "scale", "recovery", "roles", "metrics"}
"""Measured on a Kafka of their own."""
_WITH_CONTENDERS = {"stream", "kills"}
Quick = Annotated[bool, typer.Option("--quick", help="One short run to see that it works, about a minute.")]


def _examples(*lines: str) -> str:
    return examples(*(f"turntide lab bench {line}" for line in lines))


def _command(*lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return app.command(epilog=_examples(*lines))


def _run(bench: str, output: OutputFormat, *, quick: bool = False, **size: object) -> Result:
    """Run a bench, the module of its name, and print; its quick size wins over the one given."""
    from jobs.lab.bench.contender import DURABLE, missing_package
    from jobs.lab.bench.result import publish

    module = import_module(f"jobs.lab.bench.{bench}")
    if bench in _WITH_CONTENDERS:
        for package in sorted({missing_package(name) or "" for name in DURABLE} - {""}):
            left_out = f"{package} is left out: `uv run --group bench turntide lab bench {bench}` installs it"
            Printer(output).message(left_out)
    return publish(bench, output, module.measure, on_kafka=bench in _ON_KAFKA, **size | (module.QUICK if quick else {}))


def _quick_or_whole(name: str) -> Callable[..., None]:
    def measure(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
        _run(name, output, quick=quick)

    return measure


for _name, _plain in tomllib.loads((Path(__file__).parent / "plain.toml").read_text("utf-8")).items():
    app.command(_name, help=_plain["help"], epilog=_examples(*_plain["examples"]))(_quick_or_whole(_name))


@_command("kills", "kills --kills 3 --contender quix_exactly_once")
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
    from jobs.lab.bench.kills import contenders

    names = contender or contenders()
    if unknown := set(names) - set(contenders()):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: installed are {', '.join(contenders())}")
    _run("kills", output, names=names, kills=count, seed=seed)


@_command("scale --quick", "scale --output json > deploy/measurements/scale.json", "scale --pictures curves")
def scale(
    *,
    quick: Quick = False,
    pictures: Annotated[Path | None, typer.Option(help="Folder to draw each curve into, as SVG.")] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what grows with size: long sessions, many sessions, several workers on one backlog.

    A turn of a long session must not cost more than 1.3 times one of a short session. More workers than CPUs cannot be
    faster, and the broker runs beside them here. Without --quick it takes about a quarter of an hour; a number of
    sessions that does not fit into the memory that is free is left out, and said.
    """
    result = _run("scale", output, quick=quick)
    if pictures is not None:
        result.draw(pictures)
        Printer(output).message(f"{len(result.pictures)} pictures drawn into {pictures}")


@_command("page", "page deploy/measurements --output json")
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
    from jobs.lab.bench.result import PAGE, write_page

    printed = Printer(output)
    rows = [
        {"figure": held.what, "value": held.value, "bound": held.bound, "unit": held.unit, "reached": held.reached}
        for held in write_page(folder)
    ]
    printed.rows("held to", rows)
    printed.message(f"written: {folder / PAGE}")


@_command("memory --quick", "memory --sessions 1000000 --open 50000 --output json")
def memory(
    *,
    sessions: Annotated[int, typer.Option(min=20, help="Sessions that stream by.")] = 1_000_000,
    open_at_once: Annotated[int, typer.Option("--open", min=20, help="Of them open at once, at most.")] = 50_000,
    quick: Quick = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show that memory is bounded: sessions come and go, the process stays as large as those that are open.

    Needs no Kafka: fold and table in this process. `mb_per_10000_sessions` is what open sessions of twelve turns take,
    `is_level` whether the second half of the run needed no more than 5 % above its middle.
    """
    _run("memory", output, quick=quick, sessions=sessions, open_at_once=open_at_once)


@_command("recovery --quick", "recovery --keys 100000 --output json")
def recovery(
    *,
    quick: Quick = False,
    keys: Annotated[
        list[int] | None, typer.Option(min=1_000, help="Keys of the state; may be given again. [100000, 1000000]")
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Compare how soon state is back from its changelog: ours, in memory and in RocksDB, and a stock Faust table.

    Starts a Kafka of its own in a temporary folder. A warm start has its RocksDB from before, and reads one record in
    a hundred. With a million keys stock Faust takes minutes and runs once.
    """
    _run("recovery", output, quick=quick, wanted_keys=keys or ())


@_command(
    "topics --quick",
    "topics locomo10.json --output json > deploy/measurements/topics.json",
    "topics dialogues.jsonl --where label=benign --no-role",
)
def topics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Dialogues, in any format of `turntide produce`. None: the demo's.", show_default=False),
    ] = None,
    *,
    where: Annotated[
        list[str] | None, typer.Option(help="Only dialogues beside which this stands, as name=value; may be repeated.")
    ] = None,
    quick: Quick = False,
    role: Annotated[
        bool, typer.Option("--role/--no-role", help="Whether the sessions role runs, on a Kafka of its own.")
    ] = True,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure topic memory: time, packing, size, throughput with it and without, and what is still found.

    Dialogues of a file are strung together to long sessions, those of one user first. Each figure stands beside the
    limit that it is held to. --output csv prints these alone. No message is ever printed.
    """
    from jobs.lab.bench.measuring import own_environment
    from jobs.lab.eval.dialogues import parse_conditions, read_dialogues

    dialogues = read_dialogues(files or [], parse_conditions(where or []))
    _run("topics", output, quick=quick, dialogues=dialogues, environment=own_environment() if role else None)


@_command("retrieve --quick", "retrieve --end-to-end --output json > deploy/measurements/retrieve.json")
def retrieve(
    *,
    memories: Annotated[int, typer.Option(min=1_000, help="Facts, episodes and turns together.")] = 100_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Requests a second.")] = 200.0,
    seconds: Annotated[float, typer.Option(min=1, help="For each route, the warm-up left out.")] = 30.0,
    quick: Quick = False,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Also from a turn that is sent to its context, on a Kafka of its own.")
    ] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure reading memory from the local store: inside the process, and over HTTP at a steady rate.

    Requests are sent from a process of its own. Times run from the moment a request is due, so that a server that
    stalls cannot hide it. /livez, beside the routes, is what HTTP alone takes on this machine.
    """
    _run("retrieve", output, quick=quick, memories=memories, rate=rate, seconds=seconds, end_to_end=end_to_end)


@_command("live", "live --pages 200 --stuck 50 --seconds 60")
def live(
    *,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions that are open.")] = 10_000,
    pages: Annotated[int, typer.Option(min=1, help="Pages that read.")] = 20,
    stuck: Annotated[int, typer.Option(min=0, help="Pages that stop reading.")] = 20,
    updates: Annotated[int, typer.Option(min=1, help="Sessions that change in a second.")] = 60,
    seconds: Annotated[int, typer.Option(min=1, help="For how long.")] = 30,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what the live page costs its role: processor time of a change, bytes of a page, memory over time.

    In one process, without a broker and sockets. Pages that stop reading are let go after live.stall_timeout (15 s).
    """
    _run("live", output, sessions=sessions, pages=pages, stuck=stuck, updates_per_s=updates, seconds=seconds)


@_command("archive --quick", "archive --data-dir bench-archive --output json > deploy/measurements/archive.json")
def archive(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="500,000 turns instead of 20 million.")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where the archive is made, and kept for the next run; none: a temporary folder."),
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure the archive: landing beside the physical limit, size, merging, each view, each mining job, the report.

    Needs no Kafka: made-up sessions go through the real landing. Each figure stands beside the limit that it is held
    to; --output csv prints these alone.
    """
    from jobs.shared.output import progress_bar

    with (
        TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder,
        progress_bar("turns") as bar,
    ):
        _run("archive", output, quick=quick, data_dir=data_dir or Path(folder), progress=bar)
