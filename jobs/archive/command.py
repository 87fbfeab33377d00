"""`turntide archive`: is it whole, what does it hold, merge its files."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jobs.cli import examples, group
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from models.errors import ConfigurationError
from streams.settings import load_settings

if TYPE_CHECKING:
    from jobs.archive.parity import Parity

_EXIT_FINDINGS = 1


app = group("Maintain the archive: verify it, show its content, merge its files.")


@app.command(epilog=examples("turntide archive parity", "turntide archive parity --output json"))
def parity(
    *,
    fold: Annotated[  # noqa: ARG001 - the comparison is always that of the fold; scripts of 0.2.0 name it
        bool,
        typer.Option("--fold", help="Always on: fold the archived inputs again."),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Fold every archived input of sessions again, and compare each event with the archived one, field by field.

    Profiles, risk points, windows, segments, episodes, topics, alerts and commands, to the last bit, through the
    stream's own fold. It needs the policies and scorers of the data directory's `versions`.

    Exit code 1 with any difference. Counts what it cannot compare, with the reason.
    """
    from jobs.archive.parity import fold_again
    from models.events.topics import TURNS
    from streams.archive.catalog import paths_of, reading

    settings = load_settings()
    topic = TURNS.full_name(settings.topic_prefix)
    with reading(paths_of(settings)) as con, progress_bar("parity: records folded") as progress:
        found = fold_again(con, settings, topic, progress=progress)
    _print_parity(found, Printer(output))
    if found.differences:
        raise typer.Exit(_EXIT_FINDINGS)


def _print_parity(found: Parity, printed: Printer) -> None:
    if printed.form is OutputFormat.JSON:
        printed.record({"differences": found.differences, **msgspec.to_builtins(found)})
        return
    kinds = {claim: {k: n for k, n in found.counts.items() if k.rpartition(" ")[0] == claim} for claim in found.checked}
    printed.rows(
        "parity",
        [
            {"claim": claim, "checked": number, "different": sum(kinds[claim].values())}
            for claim, number in found.checked.items()
        ],
    )
    for example in found.examples:
        printed.message(f"DIFFERENT {example.claim} {example.kind}: {example.what}")
    for claim, number in found.not_checked.items():
        printed.message(f"not checked: {number} {claim}")
    if found.differences and found.erased_records:
        printed.message(
            f"{found.erased_records} records were erased since: their effect on the clock is unknown, which alone may "
            "change windows and ends of sessions"
        )
    if not found.differences:
        printed.message("all compared events are exactly equal")


@app.command(
    epilog=examples(
        "turntide archive publish",
        "turntide archive publish --dry-run",
        "turntide archive publish turns risk_points --output json",
    )
)
def publish(
    only: Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="Tables of schema raw. Default: all.")] = (
        None
    ),
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Publish the archive as Iceberg tables: add new rows, withdraw erased and expired ones.

    May run at any time and as often as wanted, also while the archive role writes. Each table is one commit. The
    settings `iceberg` say where; `deploy/spark-trino.md` says how Spark and Trino read it.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.iceberg.catalog import opened
    from streams.archive.iceberg.publish import publish as publish_archive
    from streams.archive.schema import TABLES

    unknown = sorted(set(only or ()) - set(TABLES))
    if unknown:
        raise ConfigurationError(f"no table {', '.join(unknown)}: the tables are {', '.join(TABLES)}")
    settings = load_settings()
    with reading(paths_of(settings)) as con, opened(settings) as catalog, progress_bar("tables") as progress:
        done = publish_archive(
            con,
            catalog,
            settings.iceberg,
            now=datetime.now(UTC),
            only=only or (),
            dry_run=dry_run,
            progress=progress,
        )
    printed = Printer(output)
    printed.rows("tables", [msgspec.to_builtins(each) for each in done])
    if dry_run:
        printed.message("nothing was changed")


@app.command(epilog=examples("turntide archive verify", "turntide archive verify --output json"))
def verify(
    *,
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="Producers use transactions: accept the offsets of their markers."),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check that the archive holds every record of every topic exactly once. Exit code 1 if not.

    The command names damaged files and checks the rest: offsets of the days in damaged files are reported as missing.
    It also names foreign files in the archive's folder; the archive neither reads nor removes them.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.damage import damaged, foreign_files, render_damage
    from streams.archive.verify import verify as verify_archive
    from streams.archive.views.published import leave_out

    settings = load_settings()
    with reading(paths_of(settings)) as con:
        hurt, foreign = damaged(con), foreign_files(con)
        leave_out(con, {file.date for file in hurt if file.date})
        found = verify_archive(con, prefix=settings.topic_prefix, now=datetime.now(UTC), transactional=transactional)
    found = msgspec.structs.replace(found, findings=[*([render_damage(hurt)] if hurt else []), *found.findings])
    printed = Printer(output)
    if output is OutputFormat.JSON:
        files = {"damaged_files": msgspec.to_builtins(hurt), "foreign_files": foreign}
        printed.record(msgspec.to_builtins(found) | files)
    else:
        checks = map(msgspec.to_builtins, found.partitions)
        printed.rows("partitions", [{name: each[name] for name in each if name != "findings"} for each in checks])
    if output is OutputFormat.TABLE:
        printed.rows("tables", [msgspec.to_builtins(table) for table in found.tables])
        if hurt:
            printed.rows("damaged files", [msgspec.to_builtins(file) for file in hurt])
    for path in foreign:
        printed.message(f"{path} is a foreign file: the archive does not read it")
    if found.waiting_dead_letters:
        printed.message(f"{found.waiting_dead_letters} refused turns have no dead letter yet")
    for finding in found.findings:
        printed.message(f"FINDING {finding}")
    if found.findings:
        raise typer.Exit(_EXIT_FINDINGS)
    printed.message("every offset is archived, or skipped for a known reason, exactly once")


@app.command(epilog=examples("turntide archive status", "turntide archive status --output json"))
def status(*, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show rows, files, bytes (and their ratio to the topics' JSON), and how far each partition is archived."""
    from streams.archive.catalog import paths_of, reading
    from streams.archive.verify import status as status_of

    with reading(paths_of(load_settings())) as con:
        found = status_of(con)
    printed = Printer(output)
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
        typer.Option(min=0, help="Age to delete replaced files. Default: archive.keep_replaced. 0 breaks reads."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Merge small files, expire snapshots, delete replaced and orphaned files; also while the archive role runs."""
    from streams.archive.catalog import open_reader, paths_of
    from streams.archive.maintenance import maintain
    from streams.archive.writer import LakeWriter

    settings = load_settings()
    keep = settings.archive.keep_replaced
    if keep_replaced_minutes is not None:
        keep = timedelta(minutes=keep_replaced_minutes)
    paths = paths_of(settings)
    open_reader(paths).close()  # says what to do where there is none; a writer would create one
    with closing(LakeWriter(paths)) as writer:
        done = maintain(writer, now=datetime.now(UTC), keep_replaced=keep, everything=True)
    Printer(output).record(msgspec.to_builtins(done))


@app.command(
    epilog=examples(
        "turntide archive retain",
        "turntide archive retain --apply",
        "TURNTIDE_POLICY_FILE=policy.toml turntide archive retain --output json",
    )
)
def retain(
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Remove the data. Default: only print it.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Remove data older than the policy's `archive.retention`: text, rows that name a person, all rows.

    Removed rows leave no bytes in data files, snapshots or catalog. Mining results and Iceberg tables made from them
    are removed too. The view `retentions` holds the proof of each run.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.iceberg.withdraw import withdraw
    from streams.archive.removal import FOLDER, forget_mined
    from streams.archive.retention import due
    from streams.archive.retention import retain as retain_in
    from streams.archive.writer import LakeWriter
    from streams.wiring import policy_of

    settings, now = load_settings(), datetime.now(UTC)
    policy, printed = policy_of(settings), Printer(output)
    with reading(paths_of(settings)) as con:
        found = due(con, policy.archive.retention, today=now.date())
    if apply:
        with closing(LakeWriter(paths_of(settings))) as writer:
            found = retain_in(writer, policy.archive.retention, now=now, policy_version=policy.version)
        forget_mined(settings.data_dir / FOLDER)
        withdraw(settings, now=now)
    printed.rows("removed" if apply else "would be removed", [msgspec.to_builtins(each) for each in found])
    if not found:
        printed.message("no data is older than the policy's archive.retention")
    elif not apply:
        printed.message("nothing was changed; --apply removes it for good")


@app.command(epilog=examples("turntide archive upgrade", "turntide archive upgrade --output json"))
def upgrade(*, output: OutputOption = OutputFormat.TABLE) -> None:
    """Add this release's tables, columns and views to an archive of an earlier one; old rows have null there."""
    from streams.archive.catalog import paths_of
    from streams.archive.maintenance import upgrade as upgrade_archive

    added = upgrade_archive(paths_of(load_settings()))
    printed = Printer(output)
    printed.rows("added", [{"added": name} for name in added])
    if not added:
        printed.message("the archive has everything that this release reads")


@app.command(epilog=examples("turntide archive snapshots", "turntide archive snapshots --output json"))
def snapshots(*, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the versions that you can still query: `FROM raw.turns AT (VERSION => n)`; merges remove old ones."""
    from streams.archive.catalog import LAKE, paths_of, reading

    with reading(paths_of(load_settings())) as con:
        found = con.execute(
            "SELECT snapshot_id, snapshot_time, array_to_string(map_keys(changes), ', ') "
            "FROM ducklake_snapshots(?) ORDER BY snapshot_id",
            [LAKE],
        ).fetchall()
    Printer(output).rows("snapshots", [{"version": n, "at": at, "changes": what} for n, at, what in found])
