"""`turntide lab chaos`: kill, freeze and restart everything under load, then compare with a replay."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jobs.cli import with_examples
from jobs.lab.chaos.result import OUTAGE_S, FaultKind
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

if TYPE_CHECKING:
    from jobs.lab.chaos.sweep import Saved

_EXIT_DIFFERENT = 1
_ALL = ",".join(FaultKind)


@with_examples(
    "turntide lab chaos",
    "turntide lab chaos --seed 7 --minutes 5 --turns-per-s 500",
    "turntide lab chaos --seed 7 --output json | jq .differences",
    "turntide lab chaos --runs 20 --minutes 0.5 --save chaos.jsonl",
    "turntide lab chaos --acts kill,stop",
    "turntide lab chaos --rolling --turns-per-s 100",
    "turntide lab chaos --acts broker --minutes 5 --outage-s 60",
)
def chaos(
    *,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same actions in the same order.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Number of seeds to run in turn, from --seed on.")] = 1,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long to send turns and inject faults.")] = 1.0,
    turns_per_s: Annotated[float, typer.Option("--turns-per-s", min=1, help="Turns per second.")] = 200.0,
    acts: Annotated[str, typer.Option(help="Kinds of fault to choose from, comma separated.")] = _ALL,
    outage_s: Annotated[
        float, typer.Option("--outage-s", min=0.5, help="Longest outage of broker and vector store, seconds.")
    ] = OUTAGE_S,
    rolling: Annotated[
        bool,
        typer.Option("--rolling", help="No faults: restart one worker after another, as in an upgrade; two a role."),
    ] = False,
    roles: Annotated[str, typer.Option(help="With --rolling: the roles, comma separated; none: all.")] = "",
    data_dir: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for broker, archive and logs; none: a temporary one, kept on failure."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Append each run to this file as a JSON line; skip runs that are already in it."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Prove that nothing is lost or doubled: inject random faults into real roles and their own broker under load.

    Kills roles (−9), freezes them beyond the session time-out, stops them, adds workers; kills the broker and restarts
    it, or makes it refuse writes; kills the vector store, hangs it, or makes it answer 503. Turns arrive late, twice,
    out of order, with poison messages between them, from users in several sessions at once. Then compares state,
    outputs, archive and index with a replay of the logs, as `turntide ops replay --compare`. Exit code 1: they differ.

    With --rolling, two workers of each role run; each in turn is stopped in order (SIGTERM) and started again under
    load. The comparison is the same; the result also has the longest pause of each role's outputs.
    """
    from jobs.lab.chaos.driver import ChaosOptions
    from jobs.lab.chaos.sweep import sweep
    from streams.observe.telemetry import configure_logging

    configure_logging(level="warning")
    printed = Printer(output)
    if rolling:
        _roll(data_dir, roles=roles, turns_per_s=turns_per_s, seed=seed, printed=printed)
        return
    wanted = sorted(acts_of(acts))
    options = ChaosOptions(seed=seed, minutes=minutes, turns_per_s=turns_per_s, acts=wanted, outage_s=outage_s)
    with run_folder(data_dir, "chaos") as folder, _terminable():
        keep = data_dir is not None and runs == 1
        seeds = range(seed, seed + runs)
        done = list(sweep(options, seeds, folder, save=save, keep=keep, report=printed.message))
        _print(done, printed, many=runs > 1)
        failed = [run for run in done if run.failed]
        for run in failed:
            found = f"{run.result.differences} differences" if run.result else run.error
            typer.echo(f"{found}. To repeat: {run.again()}", err=True)
        if failed:
            raise typer.Exit(_EXIT_DIFFERENT)


def acts_of(names: str) -> frozenset[FaultKind]:
    """The kinds of harm that are named, comma separated.

    Raises:
        ConfigurationError: One of them is none.
    """
    try:
        return frozenset(FaultKind(name.strip()) for name in names.split(","))
    except ValueError as error:
        raise ConfigurationError(f"--acts {names}: {error}. There are {_ALL.replace(',', ', ')}") from error


def _roll(data_dir: Path | None, *, roles: str, turns_per_s: float, seed: int, printed: Printer) -> None:
    import asyncio

    from jobs.lab.chaos.driver import OWN_KAFKA, RollingResult, roles_of, roll
    from jobs.lab.chaos.supervisor import ROLES, own_cluster

    wanted = roles_of(roles) if roles else ROLES

    async def rolled(folder: Path) -> RollingResult:
        async with own_cluster(folder, "chaos", **OWN_KAFKA) as (_, settings):
            return await roll(settings, roles=wanted, turns_per_s=turns_per_s, seed=seed, report=printed.message)

    with run_folder(data_dir, "chaos") as folder, _terminable():
        result = asyncio.run(rolled(folder))
        printed.record(msgspec.to_builtins(result))
        if result.failed:
            typer.echo(f"{result.differences} differences", err=True)
            raise typer.Exit(_EXIT_DIFFERENT)


@contextmanager
def run_folder(data_dir: Path | None, name: str) -> Iterator[Path]:
    """The folder of a run: the one that is named, new or empty, or a temporary one.

    Says where everything is kept if the run differs or fails; else a temporary folder is removed.

    Raises:
        ConfigurationError: The folder that is named is not empty.
    """
    if data_dir is None:
        folder = Path(tempfile.mkdtemp(prefix=f"turntide-{name}-"))
    elif data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigurationError(f"--data-dir {data_dir} is not empty: name a new folder, or none for a temporary one")
    else:
        folder = data_dir
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder.resolve()
    except BaseException:
        typer.echo(f"Broker, archive and logs are kept in {folder.resolve()}", err=True)
        raise
    if data_dir is None:
        shutil.rmtree(folder, ignore_errors=True)


def _print(done: list[Saved], printed: Printer, *, many: bool) -> None:
    from jobs.lab.chaos.sweep import rows_of, totals_of

    results = [msgspec.to_builtins(run.result) for run in done if run.result]
    if not many:
        if results:
            printed.record(_kept(results[0]) if printed.form is OutputFormat.JSON else results[0])
    elif printed.form is OutputFormat.JSON:
        printed.record(_kept({"totals": totals_of(done), "runs": msgspec.to_builtins(done)}))
    else:
        printed.rows("chaos", rows_of(done))


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    """With what a file needs that is kept for `turntide lab bench page`."""
    from jobs.lab.chaos.driver import SESSION_TIMEOUT
    from jobs.lab.envelope import envelope

    return envelope({**fields, "session_timeout_s": SESSION_TIMEOUT.total_seconds()})


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM takes the same way out as Ctrl-C, so that everything is ended."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    # A shell lets what it starts in the background ignore SIGINT.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, ignored)
