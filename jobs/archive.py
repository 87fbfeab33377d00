"""`turntide archive`: is it whole, what does it hold, merge its files."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.output import Output, OutputFormat
from streams.settings import load_settings

_EXIT_FINDINGS = 1

OutputOption = Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look after the archive: verify it, show what it holds, merge its files.",
)


@app.command(epilog=examples("turntide archive verify", "turntide archive verify --output json"))
def verify(
    *,
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="Producers use transactions, whose markers take offsets: no finding."),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check that every record of every topic is archived exactly once. Exit code 1 with a finding."""
    from streams.lake.catalog import paths_of, reading
    from streams.lake.verify import verify as verify_archive

    settings = load_settings()
    with reading(paths_of(settings)) as con:
        found = verify_archive(con, prefix=settings.topic_prefix, now=datetime.now(UTC), transactional=transactional)
    printed = Output(output)
    if output is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(found))
    else:
        printed.rows("partitions", [_without_findings(check) for check in found.partitions])
    if output is OutputFormat.TABLE:
        printed.rows("tables", [msgspec.to_builtins(table) for table in found.tables])
    if found.waiting_dead_letters:
        printed.message(f"{found.waiting_dead_letters} refused turns wait for their dead letter")
    for finding in found.findings:
        printed.message(f"FINDING {finding}")
    if found.findings:
        raise typer.Exit(_EXIT_FINDINGS)
    printed.message("every offset is archived or accounted for, once")


def _without_findings(check: msgspec.Struct) -> dict[str, object]:
    return {name: value for name, value in msgspec.to_builtins(check).items() if name != "findings"}


@app.command(epilog=examples("turntide archive status", "turntide archive status --output json"))
def status(*, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show rows, files, bytes (and their ratio to the topics' JSON), and how far each partition is archived."""
    from streams.lake.catalog import paths_of, reading
    from streams.lake.status import status as status_of

    with reading(paths_of(load_settings())) as con:
        found = status_of(con)
    printed = Output(output)
    if output is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(found))
        return
    printed.rows("tables", [msgspec.to_builtins(table) for table in found.tables])
    if output is OutputFormat.TABLE:
        printed.rows("partitions", [msgspec.to_builtins(partition) for partition in found.partitions])
        printed.message(f"{found.snapshots} snapshots")


@app.command(epilog=examples("turntide archive merge", "turntide archive merge --keep-replaced-minutes 0"))
def merge(
    *,
    keep_replaced_minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Delete replaced files after this; none: archive.keep_replaced. 0 hurts readers."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Merge small files, expire snapshots, delete replaced and orphaned files; also while the archive role runs."""
    from streams.lake.catalog import open_reader, paths_of
    from streams.lake.maintenance import maintain
    from streams.lake.writer import LakeWriter

    settings = load_settings()
    keep = settings.archive.keep_replaced
    if keep_replaced_minutes is not None:
        keep = timedelta(minutes=keep_replaced_minutes)
    paths = paths_of(settings)
    open_reader(paths).close()  # says what to do where there is none; a writer would create one
    with closing(LakeWriter(paths)) as writer:
        done = maintain(writer, now=datetime.now(UTC), keep_replaced=keep, everything=True)
    Output(output).record(msgspec.to_builtins(done))
