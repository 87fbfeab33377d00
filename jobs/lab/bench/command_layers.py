"""`turntide bench topics | retrieve | memories | project | roles | live | metrics | archive`: what each layer takes."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.lab.bench.command_output import Form, on_kafka, own_folder, plain, publish
from jobs.shared.output import OutputFormat

layers = typer.Typer()


@layers.command(
    epilog=examples(
        "turntide bench topics --quick",
        "turntide bench topics locomo10.json --output json > deploy/measurements/topics.json",
        "turntide bench topics dialogues.jsonl --where label=benign --no-role",
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
    quick: Annotated[bool, typer.Option("--quick", help="Few sessions and one short round: under a minute.")] = False,
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
        csv="held",
    )


@layers.command(
    epilog=examples(
        "turntide bench retrieve --quick",
        "turntide bench retrieve --end-to-end --output json > deploy/measurements/retrieve.json",
    )
)
def retrieve(
    *,
    memories: Annotated[int, typer.Option(min=1_000, help="Facts, episodes and turns together.")] = 100_000,
    rate: Annotated[float, typer.Option(min=1, max=5_000, help="Requests a second.")] = 200.0,
    seconds: Annotated[float, typer.Option(min=1, help="For each route, the warm-up left out.")] = 30.0,
    quick: Annotated[bool, typer.Option("--quick", help="5,000 memories, 50 requests/s: half a minute.")] = False,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Also from a turn that is sent to its context, on a Kafka of its own.")
    ] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure reading memory from the local store: inside the process, and over HTTP at a steady rate.

    Locust sends the requests from a process of its own (`uv run --group bench …`). Times run from the moment a request
    is due, so that a server that stalls cannot hide it. /livez, beside the routes, is what HTTP alone takes on this
    machine. Where the limit does not hold at the rate, lower ones are tried.
    """
    from jobs.lab.bench.machine import own_environment
    from jobs.lab.bench.retrieve import QUICK, RetrieveSize, measure
    from streams.settings import load_settings

    size = QUICK if quick else RetrieveSize(memories=memories, rate=rate, seconds=seconds)
    with ExitStack() as stack:
        if end_to_end:
            environment = stack.enter_context(own_environment())
            settings = load_settings(kafka={"bootstrap": environment.bootstrap}, data_dir=environment.home / "data")
        else:
            settings = load_settings(data_dir=stack.enter_context(own_folder()))
        settings.data_dir.mkdir(exist_ok=True)
        publish("retrieve", output, lambda say: asyncio.run(measure(settings, size, end_to_end=end_to_end, say=say)))


@layers.command(
    epilog=examples(
        "turntide bench memories --quick", "turntide bench memories --output json > deploy/measurements/memories.json"
    )
)
def memories(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer turns, apps and questions: under a minute.")] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure memories of apps: making and compacting them, reading them, and what share of the work they are.

    Needs no Kafka and asks no language model: folds and a local store in this process. Each figure stands beside the
    limit that it is held to. --output csv prints these alone.
    """
    from jobs.lab.bench.memories import QUICK, AppMemorySize, measure
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings, size = load_settings(), QUICK if quick else AppMemorySize()
    policy, embedder = policy_of(settings), embedder_of(settings)
    with own_folder() as folder:
        publish(
            "memories", output, lambda say: asyncio.run(measure(folder, policy, embedder, size, say=say)), csv="held"
        )


@layers.command(
    epilog=examples(
        "turntide bench project --quick", "turntide bench project --output json > deploy/measurements/project.json"
    )
)
def project(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="1,000 memories, short conversations: seconds.")] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure projects' memory: retrieval at 10,000 memories, consolidation, and whether a turn's cost stays flat.

    Needs no Kafka and no store: the fold and a reader's view in this process. Each figure stands beside the limit that
    it is held to. --output csv prints these alone.
    """
    from jobs.lab.bench.project import QUICK, ProjectSize, measure
    from streams.settings import load_settings
    from streams.wiring import policy_of

    size, policy = QUICK if quick else ProjectSize(), policy_of(load_settings())
    publish("project", output, lambda say: measure(policy, size, say=say), csv="held")


@layers.command(
    epilog=examples(
        "turntide bench roles --quick", "turntide bench roles --output json > deploy/measurements/roles.json"
    )
)
def roles(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="3,000 turns instead of 60,000: under a minute.")] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what each role costs per turn: processor time, memory, and bytes in every topic, archive and index.

    Starts a Kafka of its own in a temporary folder and all roles that a turn passes. `turntide sizing` plans with it.
    """
    from jobs.lab.bench.roles import FULL_TURNS, QUICK_TURNS, measure

    turns = QUICK_TURNS if quick else FULL_TURNS
    publish(
        "roles",
        output,
        lambda say: on_kafka(lambda environment: measure(environment, turns=turns, say=say)),
        csv="tables",
    )


@layers.command(epilog=examples("turntide bench live", "turntide bench live --pages 200 --stuck 50 --seconds 60"))
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

    plan = LivePlan(sessions=sessions, pages=pages, stuck=stuck, updates_per_s=updates, seconds=seconds)
    publish(
        "live",
        output,
        lambda _say: asyncio.run(measure(plan)),
        show=(show := lambda printed, report: printed.record(plain(report))),
        csv=show,
    )


@layers.command(epilog=examples("turntide bench metrics --quick", "turntide bench metrics --output json"))
def metrics(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One short round to see that it works.")] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what counting costs: throughput and processor time of the sessions role with metrics by without.

    Starts a Kafka of its own in a temporary folder. A ratio of 1 is no cost; the goal is 0.97 or more.
    """
    from jobs.lab.bench.metrics_cost import FULL, QUICK, measure, shown

    publish(
        "metrics",
        output,
        lambda say: on_kafka(lambda environment: measure(environment, QUICK if quick else FULL, say=say)),
        show=lambda printed, report: printed.rows(f"metrics, {len(report['pairs'])} rounds", shown(report)),
    )


@layers.command(
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
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure the archive: landing beside the physical limit, size, merging, each view, each mining job, the report.

    Needs no Kafka: made-up sessions go through the real landing. Each figure stands beside the limit that it is held
    to; --output csv prints these alone.
    """
    from jobs.lab.bench.archive import FULL, QUICK, measure
    from jobs.shared.progress import progress_bar
    from streams.settings import load_settings

    settings, size = load_settings(), QUICK if quick else FULL
    with own_folder() as folder, progress_bar("turns") as progress:
        publish(
            "archive",
            output,
            lambda say: measure(data_dir or folder, settings, size, say=say, progress=progress),
            csv="held",
        )
