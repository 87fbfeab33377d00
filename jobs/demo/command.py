"""The command line of the demo."""

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

_EXIT_UNEXPECTED = 1


def demo(
    *,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for broker, archive, logs and report. Default: a temporary one."),
    ] = None,
    speed: Annotated[float, typer.Option(min=0.1, max=100.0, help="Factor by which the demo runs faster.")] = 1.0,
    keep: Annotated[bool, typer.Option("--keep", help="Leave Kafka and the roles running until Ctrl-C.")] = False,
    view: Annotated[bool, typer.Option(help="Show progress in place, or print plain lines.")] = True,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Only remove files of earlier demos from the temporary folder, or from --data-dir."
        ),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Run everything on this machine and watch it work: about two minutes, and nothing is left running.

    Starts a real Apache Kafka (fetched on first use; TURNTIDE_KAFKA=host:port uses yours instead, with its own topic
    prefix, deleted afterwards), creates the topics, starts the roles sessions, memory, enrich, index and archive, plays
    twenty-one conversations, and shows the results. Archive, logs and a report stay in the folder.

    Topics of conversation are opened, packed, unpacked and evicted under a compressed clock: a minute for a day. A user
    talks in three sessions; at the end the demo requests the user's name and an episode over HTTP. Two people build
    something in 250 turns; the demo requests their decision from the project's memory, before and after they changed
    it.

    One conversation escalates slowly, with detours, and must alert well before its end; homework about security and
    questions about medicine must not alert.

    The exit code is 1 unless exactly the expected sessions alert, each before its last third, the topics do all of
    that, and memory returns the expected answers.
    """
    from jobs.demo.run import run
    from jobs.demo.stage import Stage, new_folder

    if clean:
        _clean(data_dir, Printer(output))
        return
    if output is OutputFormat.CSV:
        raise ConfigurationError("the demo prints only table or json: set --output to one of them")
    folder = (data_dir or new_folder()).resolve()
    stage = Stage(output, view=view)
    try:
        summary = run(folder, stage, speed=speed, keep=keep)
    except KeyboardInterrupt:
        stage.interrupted(folder)
        raise
    if not summary.as_expected:
        raise typer.Exit(_EXIT_UNEXPECTED)


def _clean(data_dir: Path | None, printed: Printer) -> None:
    """Remove them; a folder of a demo that runs stays."""
    from jobs.demo.stage import folders, remove, size_bytes

    rows: list[dict[str, object]] = []
    for folder in [data_dir] if data_dir else folders():
        size = size_bytes(folder)
        rows.append({"folder": str(folder), "bytes": size, "removed": remove(folder)})
    if not rows:
        printed.message("no demo left a folder in the temporary folder")
    printed.rows("demos", rows)
    if any(not row["removed"] for row in rows):
        printed.message("a folder that was not removed has a demo running: end it first")


demo.epilog = examples(  # type: ignore[attr-defined]
    "turntide demo",
    "turntide demo --keep --data-dir ./demo",
    "turntide demo --speed 5 --output json | jq .alerts_raised",
    "TURNTIDE_KAFKA=broker:9092 turntide demo",
    "turntide demo --clean",
)
