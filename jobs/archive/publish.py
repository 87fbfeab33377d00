"""`turntide archive publish`: the archive as Iceberg tables, for Spark, Trino and others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.shared.output import Output, OutputFormat
from jobs.shared.progress import progress_bar
from models.errors import ConfigurationError
from streams.settings import load_settings


def publish(
    only: Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="Tables of the schema raw; none: all.")] = (
        None
    ),
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")] = OutputFormat.TABLE,
) -> None:
    """Publish the archive as Iceberg tables: what is new is added, what was erased or grew too old is withdrawn.

    May run at any time and as often as wanted, also while the archive role writes. Each table is one commit. The
    settings `iceberg` say where; `deploy/spark-trino.md` says how Spark and Trino read it.
    """
    from streams.archive.catalog import reading
    from streams.archive.iceberg.catalog import opened
    from streams.archive.iceberg.publish import publish as publish_archive
    from streams.archive.place import paths_of
    from streams.archive.schema import TABLES

    unknown = sorted(set(only or ()) - set(TABLES))
    if unknown:
        raise ConfigurationError(f"no table {', '.join(unknown)}: there are {', '.join(TABLES)}")
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
    printed = Output(output)
    printed.rows("tables", [msgspec.to_builtins(each) for each in done])
    if dry_run:
        printed.message("nothing was changed")


EXAMPLES = examples(
    "turntide archive publish",
    "turntide archive publish --dry-run",
    "turntide archive publish turns risk_points --output json",
)
