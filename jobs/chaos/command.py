"""`turntide chaos`: kill, freeze and restart everything under load, then compare with a replay."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.output import Output, OutputFormat
from models.errors import ConfigurationError

_EXIT_DIFFERENT = 1


def chaos(
    *,
    seed: Annotated[int, typer.Option(min=0, help="The same seed does the same things in the same order.")] = 1,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long turns are sent and harm is done.")] = 1.0,
    turns_per_s: Annotated[float, typer.Option("--turns-per-s", min=1, help="Turns per second.")] = 200.0,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for broker, archive and logs; none: a temporary one, kept on failure."),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")] = OutputFormat.TABLE,
) -> None:
    """Prove that nothing is lost or doubled: real roles and a broker of their own, harmed at random under load.

    Roles are killed −9, frozen beyond the session time-out, stopped and joined by another worker; the broker is killed
    and comes back. Turns come late, twice and out of order, with poison between them. Then state, outputs, archive and
    index must equal a replay of the log, as `turntide replay --compare` has it. Exit code 1 with any difference.
    """
    from jobs.chaos.driver import Options, Run

    folder = _folder(data_dir)
    printed = Output(output)
    options = Options(seed=seed, minutes=minutes, turns_per_s=turns_per_s, data_dir=folder)
    again = f"turntide chaos --seed {seed} --minutes {minutes:g} --turns-per-s {turns_per_s:g}"
    left_behind = f"Broker, archive and logs are kept in {folder}. To repeat: {again}"
    try:
        with _terminable():
            result = asyncio.run(Run(options, printed.message).run())
    except BaseException:
        typer.echo(left_behind, err=True)
        raise
    printed.record(msgspec.to_builtins(result))
    if result.differences:
        typer.echo(f"{result.differences} differences. {left_behind}", err=True)
        raise typer.Exit(_EXIT_DIFFERENT)
    if data_dir is None:
        shutil.rmtree(folder, ignore_errors=True)


chaos.epilog = examples(  # type: ignore[attr-defined]
    "turntide chaos",
    "turntide chaos --seed 7 --minutes 5 --turns-per-s 500",
    "turntide chaos --seed 7 --output json | jq .differences",
)


def _folder(data_dir: Path | None) -> Path:
    if data_dir is None:
        return Path(tempfile.mkdtemp(prefix="turntide-chaos-")).resolve()
    if data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigurationError(f"--data-dir {data_dir} is not empty: name a new folder, or none for a temporary one")
    data_dir.mkdir(parents=True, exist_ok=True)
    return data_dir.resolve()


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM takes the same way out as Ctrl-C, so that everything is ended."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
