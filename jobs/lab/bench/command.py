"""`turntide lab bench`: how fast, beside what, on this machine."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.lab.commands import LabGroup
from jobs.shared.output import OutputFormat, OutputOption, Printer

if TYPE_CHECKING:
    from jobs.lab.bench.result import Result

app = LabGroup("lab bench", "Measure speed on this machine, compared with other ways to do the same work.")
_HELP = tomllib.loads((Path(__file__).parent / "help.toml").read_text("utf-8"))
_ON_KAFKA = {"stream", "kills", "scale", "recovery", "roles", "gateway"}
"""Measured on a Kafka of their own."""
Quick = Annotated[bool, typer.Option("--quick", help="One short run to check that the bench works, about a minute.")]


def _bench(function: Callable[..., None], name: str = "") -> Callable[..., None]:
    """Add a bench; its help begins with the first line of its function, if there is one."""
    shown = _HELP[name or function.__name__]
    text = "\n\n".join(filter(None, (function.__doc__, shown["help"])))
    return app.shown(*shown["examples"], name=name or None, help=text)(function)


def _run(bench: str, output: OutputFormat, *, quick: bool = False, **size: object) -> Result:
    """Run a bench, the module of its name, and print; its quick size wins over the one given."""
    from jobs.lab.bench.contender import DURABLE, missing_package
    from jobs.lab.bench.result import publish

    module = import_module(f"jobs.lab.bench.{bench}")
    if bench in {"stream", "kills"}:
        for package in sorted({missing_package(name) or "" for name in DURABLE} - {""}):
            left_out = f"{package} is left out: `uv run --group bench turntide lab bench {bench}` installs it"
            Printer(output).message(left_out)
    return publish(bench, output, module.measure, on_kafka=bench in _ON_KAFKA, **size | (module.QUICK if quick else {}))


def _quick_or_whole(name: str) -> Callable[..., None]:
    def measure(*, quick: Quick = False, output: OutputOption = OutputFormat.TABLE) -> None:
        _run(name, output, quick=quick)

    return measure


for _name in ("stream", "scale", "memories", "project", "roles", "gateway"):
    _bench(_quick_or_whole(_name), _name)


@_bench
def kills(
    *,
    count: Annotated[int, typer.Option("--kills", min=1, max=30, help="How often each contender is killed.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same turns and the same kills.")] = 1,
    contender: Annotated[list[str] | None, typer.Option(help="Contender to run; may be repeated. None: all.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Kill (−9) the sessions role, Faust per event, Quix Streams and Bytewax at the same moments; count."""
    from jobs.lab.bench.kills import contenders

    names = contender or contenders()
    if unknown := set(names) - set(contenders()):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: installed are {', '.join(contenders())}")
    _run("kills", output, names=names, kills=count, seed=seed)


@_bench
def page(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of stream.json, recovery.json, scale.json, memory.json, kills.json, chaos.json."),
    ] = Path("deploy") / "measurements",
    *,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write the page of measurements (README.md and pictures) from the JSON output of the benches."""
    from jobs.lab.bench.result import PAGE, write_page

    printed = Printer(output)
    figures, older = write_page(folder)
    rows = [
        {"figure": held.what, "value": held.value, "bound": held.bound, "unit": held.unit, "reached": held.reached}
        for held in figures
    ]
    printed.rows("held to", rows)
    if older:
        printed.message(f"of other code than this, to measure anew before a release: {', '.join(older)}")
    printed.message(f"written: {folder / PAGE}")


@_bench
def memory(
    *,
    sessions: Annotated[int, typer.Option(min=20, help="Sessions in all.")] = 1_000_000,
    open_at_once: Annotated[int, typer.Option("--open", min=20, help="Most sessions open at once.")] = 50_000,
    quick: Quick = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show that memory is bounded: the process grows with the open sessions, not with all sessions."""
    _run("memory", output, quick=quick, sessions=sessions, open_at_once=open_at_once)


@_bench
def recovery(
    *,
    quick: Quick = False,
    keys: Annotated[
        list[int] | None, typer.Option(min=1_000, help="Keys of the state; may be repeated. [100000, 1000000]")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compare the time to restore state from its changelog: ours in memory, ours in RocksDB, a stock Faust table."""
    _run("recovery", output, quick=quick, wanted_keys=keys or ())


@_bench
def topics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Dialogues, in any format of `turntide produce`. None: the demo's.", show_default=False),
    ] = None,
    *,
    where: Annotated[
        list[str] | None, typer.Option(help="Only dialogues with this field, as name=value; may be repeated.")
    ] = None,
    quick: Quick = False,
    role: Annotated[bool, typer.Option("--role/--no-role", help="Run the sessions role too, on its own Kafka.")] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure topic memory: time, packing, size, throughput with and without it, and recall from summaries."""
    from jobs.lab.bench.measuring import own_environment
    from jobs.lab.eval.dialogues import read_dialogues

    dialogues = read_dialogues(files or (), where or ())
    _run("topics", output, quick=quick, dialogues=dialogues, environment=own_environment() if role else None)


@_bench
def retrieve(
    *,
    memories: Annotated[int, typer.Option(min=1_000, help="Facts, episodes and turns in all.")] = 100_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Requests a second.")] = 200.0,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds for each route, without the warm-up.")] = 30.0,
    quick: Quick = False,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Also time a turn from sending to its context, on its own Kafka.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure reading memory from the local store: inside the process, and over HTTP at a steady rate."""
    _run("retrieve", output, quick=quick, memories=memories, rate=rate, seconds=seconds, end_to_end=end_to_end)


@_bench
def archive(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="500,000 turns instead of 20 million.")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for the archive, kept for the next run; none: a temporary one."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure the archive: landing (against the physical limit), size, merging, views, mining jobs, the report."""
    from jobs.shared.output import progress_bar

    with (
        TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder,
        progress_bar("turns") as bar,
    ):
        _run("archive", output, quick=quick, data_dir=data_dir or Path(folder), progress=bar)
