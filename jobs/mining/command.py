"""`turntide mine`: what the archive shows beyond single sessions."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli import examples
from jobs.mining.jobs import job_names, job_of
from jobs.output import Output, OutputFormat
from jobs.progress import progress_bar
from models.errors import ConfigurationError
from streams.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.mining.job import Period
    from jobs.mining.results import Result
    from jobs.mining.source import Source

_DEFAULT_DAYS = 7
_FINDINGS_SHOWN = 10

DaysOption = Annotated[
    int | None, typer.Option(min=1, help=f"Length of the period in days; {_DEFAULT_DAYS} unless --since says.")
]
SinceOption = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="First day (UTC).")]
UntilOption = Annotated[
    datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Last day (UTC); the archive's latest unless told.")
]


def mine(
    job: Annotated[str, typer.Argument(help=f"{', '.join(job_names())}, or all.")] = "all",
    *,
    days: DaysOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    output: Annotated[
        OutputFormat, typer.Option("--output", help="How the sections are printed.")
    ] = OutputFormat.TABLE,
) -> None:
    """Look for patterns in the archive: shapes of escalation, sequences, topics, campaigns, memory, drift.

    What was made of a day is kept under the data directory's `mining` folder, so a run that was cut short goes on, and
    the next one makes only days whose rows changed. Each job leaves a folder per period with Parquet tables and its
    section of `turntide report`. Nothing is shown about fewer sessions or users than the policy's `archive.anonymity`
    says (five each).
    """
    if job != "all" and job not in job_names():
        raise ConfigurationError(f"no mining job {job!r}: there are {', '.join(job_names())}, and all")
    printed = Output(output)
    with opened() as source:
        period = period_of(source, days=days, since=_day(since), until=_day(until))
        results = [mined(name, source, period) for name in (job_names() if job == "all" else (job,))]
    if output is OutputFormat.TABLE:
        for result in results:
            _show(printed, result)
        return
    printed.rows("sections", [_plain(result) for result in results])


mine.epilog = examples(  # type: ignore[attr-defined]
    "turntide mine",
    "turntide mine escalation --days 30",
    "turntide mine drift --since 2026-03-01 --until 2026-03-07 --output json",
)


@contextmanager
def opened() -> Iterator[Source]:
    """The archive as the settings name it, without the days whose files are damaged.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from jobs.mining.source import Source
    from streams.lake.catalog import paths_of, reading
    from streams.lake.left_out import leave_damage_out

    with reading(paths_of(load_settings())) as con:
        yield Source(con, without=leave_damage_out(con))


def period_of(source: Source, *, days: int | None, since: date | None, until: date | None) -> Period:
    """The days asked for: those given, else the last seven of the archive.

    Raises:
        ConfigurationError: The archive is empty, or the period is none.
    """
    from jobs.mining.job import Period

    latest = until or source.latest_day()
    if latest is None and source.without:
        raise ConfigurationError("no day is left: files of each are damaged, `turntide archive verify` names them")
    if latest is None:
        raise ConfigurationError("the archive holds no turn yet: `turntide demo` or `turntide produce` fill it")
    first = since or Period.last(days or _DEFAULT_DAYS, latest).since
    if first > latest:
        raise ConfigurationError(f"the period begins on {first}, after its last day {latest}")
    return Period(first, latest)


def mined(name: str, source: Source, period: Period) -> Result:
    """A job's result of the period, with a progress bar where days are to be made."""
    from jobs.mining.run import run
    from streams.lake.mined import FOLDER
    from streams.wiring import policy_of

    settings = load_settings()
    with progress_bar(f"{name}: days") as progress:
        return run(
            job_of(name),
            source,
            period,
            root=settings.data_dir / FOLDER,
            policy=policy_of(settings).archive,
            progress=progress,
        )


def _day(time: datetime | None) -> date | None:
    return None if time is None else time.date()


def _show(printed: Output, result: Result) -> None:
    section = result.section
    printed.message(f"\n{section.title}, {section.since} to {section.until}: {section.question}")
    printed.rows(
        "",
        [
            {"figure": figure.name, "value": figure.value, "sessions": figure.sessions, "meaning": figure.meaning}
            for figure in section.figures
        ],
    )
    for shown in section.findings[:_FINDINGS_SHOWN]:
        printed.message(f"* {shown.finding.title} ({shown.rows} rows, {shown.users} users)\n  {shown.finding.text}")
        printed.message(f"  evidence: turntide query {shown.finding.evidence!r}")
    for note in section.notes:
        printed.message(f"note: {note}")
    if section.findings_left_out:
        printed.message(f"{section.findings_left_out} findings are about too few sessions or users to be shown")
    for day in section.days_left_out:
        printed.message(f"{day} is left out: its files are damaged, see `turntide archive verify`")


def _plain(result: Result) -> dict[str, object]:
    import msgspec

    plain: dict[str, object] = msgspec.to_builtins(result.section)
    return plain
