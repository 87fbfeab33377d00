"""`turntide lab bench`: how fast, beside what, on this machine."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.shared.output import OutputFormat, Printer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure speed on this machine, beside other ways to do the same.",
)
Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]
Quick = Annotated[bool, typer.Option("--quick", help="One short run to see that it works, about a minute.")]


@app.callback()
def bench() -> None:
    """Measure speed on this machine, beside other ways to do the same."""


@app.command(epilog=examples("turntide lab bench stream --quick", "turntide lab bench stream --output json"))
def stream(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
    """Compare the sessions role with the plain fold, Faust per event, Quix Streams, Bytewax and raw reading.

    Starts a Kafka of its own in a temporary folder. Every ratio is the role's throughput divided by the other's in the
    same round, and the median over rounds is printed with its range: above 1 the role is faster.
    """
    from jobs.lab.bench.page import publish_on_kafka
    from jobs.lab.bench.stream import FULL, QUICK, measure

    _say_what_is_missing("stream", output)
    publish_on_kafka("stream", output, measure, QUICK if quick else FULL)


@app.command(
    epilog=examples("turntide lab bench kills", "turntide lab bench kills --kills 3 --contender quix_exactly_once")
)
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
    from jobs.lab.bench.kills import contenders, measure
    from jobs.lab.bench.page import publish_on_kafka

    names = contender or contenders()
    if unknown := set(names) - set(contenders()):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: installed are {', '.join(contenders())}")
    _say_what_is_missing("kills", output)
    publish_on_kafka("kills", output, measure, names, count, seed)


def _say_what_is_missing(command: str, output: OutputFormat) -> None:
    from jobs.lab.bench.contender import missing_packages

    for package in missing_packages():
        Printer(output).message(
            f"{package} is left out: `uv run --group bench turntide lab bench {command}` installs it"
        )


@app.command(
    epilog=examples(
        "turntide lab bench scale --quick",
        "turntide lab bench scale --output json > deploy/measurements/scale.json",
        "turntide lab bench scale --pictures curves",
    )
)
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
    from jobs.lab.bench.page import publish_on_kafka
    from jobs.lab.bench.scale import FULL, QUICK, measure

    section = publish_on_kafka("scale", output, measure, QUICK if quick else FULL)
    if pictures is not None:
        for picture in section.pictures:
            picture.draw(pictures / picture.file)
        Printer(output).message(f"{len(section.pictures)} pictures drawn into {pictures}")


@app.command(epilog=examples("turntide lab bench page", "turntide lab bench page deploy/measurements --output json"))
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
        "turntide lab bench memory --quick", "turntide lab bench memory --sessions 1000000 --open 50000 --output json"
    )
)
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
    from jobs.lab.bench.memory import QUICK, FootprintSize, measure
    from jobs.lab.bench.page import publish
    from streams.settings import load_settings
    from streams.wiring import policy_of

    size, policy = QUICK if quick else FootprintSize(sessions=sessions, open=open_at_once), policy_of(load_settings())
    publish("memory", output, lambda say: measure(size, policy, say=say))


@app.command(
    epilog=examples("turntide lab bench recovery --quick", "turntide lab bench recovery --keys 100000 --output json")
)
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
    from jobs.lab.bench.page import publish_on_kafka
    from jobs.lab.bench.recovery import FULL, QUICK, RecoverySize, measure

    sizes: tuple[RecoverySize, ...] = QUICK if quick else FULL
    if keys:
        runs = sizes[0].runs
        sizes = tuple(RecoverySize(each, runs=runs, stock_runs=runs if each < FULL[1].keys else 1) for each in keys)
    publish_on_kafka("recovery", output, measure, sizes)


@app.command(
    epilog=examples(
        "turntide lab bench topics --quick",
        "turntide lab bench topics locomo10.json --output json > deploy/measurements/topics.json",
        "turntide lab bench topics dialogues.jsonl --where label=benign --no-role",
    )
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
    from jobs.lab.bench.machine import own_environment
    from jobs.lab.bench.page import publish
    from jobs.lab.bench.topics import FULL, QUICK, measure
    from jobs.lab.eval.topics_dialogues import parse_conditions, read_dialogues
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings, dialogues = load_settings(), read_dialogues(files or [], parse_conditions(where or []))
    embedder, policy, size = embedder_of(settings), policy_of(settings), QUICK if quick else FULL
    environment = own_environment() if role else None
    publish(
        "topics",
        output,
        lambda say: asyncio.run(measure(dialogues, embedder, policy, size, environment=environment, say=say)),
    )


@app.command(
    epilog=examples(
        "turntide lab bench retrieve --quick",
        "turntide lab bench retrieve --end-to-end --output json > deploy/measurements/retrieve.json",
    )
)
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

    Locust sends the requests from a process of its own (`uv run --group bench …`). Times run from the moment a request
    is due, so that a server that stalls cannot hide it. /livez, beside the routes, is what HTTP alone takes on this
    machine.
    """
    from jobs.lab.bench.machine import own_environment
    from jobs.lab.bench.page import publish
    from jobs.lab.bench.retrieve import QUICK, RetrieveSize, measure
    from streams.settings import load_settings

    size = QUICK if quick else RetrieveSize(memories=memories, rate=rate, seconds=seconds)
    with ExitStack() as stack:
        if end_to_end:
            environment = stack.enter_context(own_environment())
            settings = load_settings(kafka={"bootstrap": environment.bootstrap}, data_dir=environment.home / "data")
        else:
            settings = load_settings(data_dir=stack.enter_context(_folder()))
        settings.data_dir.mkdir(exist_ok=True)
        publish("retrieve", output, lambda say: asyncio.run(measure(settings, size, end_to_end=end_to_end, say=say)))


@app.command(
    epilog=examples(
        "turntide lab bench memories --quick",
        "turntide lab bench memories --output json > deploy/measurements/memories.json",
    )
)
def memories(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
    """Measure memories of apps: making and compacting them, reading them, and what share of the work they are.

    Needs no Kafka and asks no language model: folds and a local store in this process. Each figure stands beside the
    limit that it is held to. --output csv prints these alone.
    """
    from jobs.lab.bench.memories import QUICK, AppMemorySize, measure
    from jobs.lab.bench.page import publish
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings, size = load_settings(), QUICK if quick else AppMemorySize()
    policy, embedder = policy_of(settings), embedder_of(settings)
    with _folder() as folder:
        publish("memories", output, lambda say: asyncio.run(measure(Path(folder), policy, embedder, size, say=say)))


@app.command(
    epilog=examples(
        "turntide lab bench project --quick",
        "turntide lab bench project --output json > deploy/measurements/project.json",
    )
)
def project(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
    """Measure projects' memory: retrieval at 10,000 memories, consolidation, and whether a turn's cost stays flat.

    Needs no Kafka and no store: the fold and a reader's view in this process. Each figure stands beside the limit that
    it is held to. --output csv prints these alone.
    """
    from jobs.lab.bench.page import publish
    from jobs.lab.bench.project import QUICK, ProjectSize, measure
    from streams.settings import load_settings
    from streams.wiring import policy_of

    size, policy = QUICK if quick else ProjectSize(), policy_of(load_settings())
    publish("project", output, lambda say: measure(policy, size, say=say))


@app.command(
    epilog=examples(
        "turntide lab bench roles --quick", "turntide lab bench roles --output json > deploy/measurements/roles.json"
    )
)
def roles(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
    """Measure what each role costs per turn: processor time, memory, and bytes in every topic, archive and index.

    Starts a Kafka of its own in a temporary folder and all roles of a turn. `turntide ops sizing` plans with it.
    """
    from jobs.lab.bench.page import publish_on_kafka
    from jobs.lab.bench.roles import FULL_TURNS, QUICK_TURNS, measure

    publish_on_kafka("roles", output, measure, QUICK_TURNS if quick else FULL_TURNS)


@app.command(epilog=examples("turntide lab bench live", "turntide lab bench live --pages 200 --stuck 50 --seconds 60"))
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
    from jobs.lab.bench.live import LivePlan, measure
    from jobs.lab.bench.page import publish

    plan = LivePlan(sessions=sessions, pages=pages, stuck=stuck, updates_per_s=updates, seconds=seconds)
    publish("live", output, lambda _say: asyncio.run(measure(plan)))


@app.command(epilog=examples("turntide lab bench metrics --quick", "turntide lab bench metrics --output json"))
def metrics(*, quick: Quick = False, output: Form = OutputFormat.TABLE) -> None:
    """Measure what counting costs: throughput and processor time of the sessions role with metrics by without.

    Starts a Kafka of its own in a temporary folder. A ratio of 1 is no cost; the goal is 0.97 or more.
    """
    from jobs.lab.bench.page import publish_on_kafka
    from jobs.lab.bench.roles import METRICS_FULL, METRICS_QUICK, measure_metrics

    publish_on_kafka("metrics", output, measure_metrics, METRICS_QUICK if quick else METRICS_FULL)


@app.command(
    epilog=examples(
        "turntide lab bench archive --quick",
        "turntide lab bench archive --data-dir bench-archive --output json > deploy/measurements/archive.json",
    )
)
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
    from jobs.lab.bench.archive import FULL, QUICK, measure
    from jobs.lab.bench.page import publish
    from jobs.shared.progress import progress_bar
    from streams.settings import load_settings

    settings, size = load_settings(), QUICK if quick else FULL
    with _folder() as folder, progress_bar("turns") as progress:
        place = data_dir or Path(folder)
        publish("archive", output, lambda say: measure(place, settings, size, say=say, progress=progress))


def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True)
