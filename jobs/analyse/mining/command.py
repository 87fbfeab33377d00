"""`turntide analyse mine`: what the archive shows beyond single sessions."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.analyse.mining.job import JOB_NAMES, job_of
from jobs.cli import examples
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from models.errors import ConfigurationError
from streams.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.analyse.mining.job import JobResult, Period, ReportSection
    from jobs.analyse.mining.source import MiningSource
    from models.policy.archive import AnonymityPolicy

_DEFAULT_DAYS = 7
_FINDINGS_SHOWN = 10
_EXIT_INCOMPLETE = 1


DaysOption = Annotated[
    int | None, typer.Option(min=1, help=f"Length of the period in days. Default: from --since, else {_DEFAULT_DAYS}.")
]
SinceOption = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="First day (UTC).")]
UntilOption = Annotated[
    datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Last day (UTC). Default: the archive's latest.")
]


def mine(
    job: Annotated[str, typer.Argument(help=f"{', '.join(JOB_NAMES)}, or all.")] = "all",
    *,
    days: DaysOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Look for patterns in the archive: shapes of escalation, sequences, topics, campaigns, memory, drift.

    Results of each day are cached in the data directory's `mining` folder: an interrupted run continues, and the next
    run computes only days whose rows changed. Each job writes a folder per period with Parquet tables and its section
    of `turntide analyse report`. A finding needs at least as many sessions or users as the policy's `archive.anonymity`
    (five each). A job that fails prints a line, the other jobs continue, and the exit code is 1.
    """
    if job != "all" and job not in JOB_NAMES:
        raise ConfigurationError(f"no mining job {job!r}: the jobs are {', '.join(JOB_NAMES)}, and all")
    from streams.wiring import policy_of

    printed, k = Printer(output), policy_of(load_settings()).archive.anonymity
    with opened() as source:
        period = period_of(source, days=days, since=since and since.date(), until=until and until.date())
        outcomes = {name: _outcome(name, source, period) for name in (JOB_NAMES if job == "all" else (job,))}
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, str)}
    if output is OutputFormat.TABLE:
        for outcome in outcomes.values():
            if not isinstance(outcome, str):
                _show(printed, outcome.section, k)
    else:
        printed.rows("sections", [_plain(name, outcome) for name, outcome in outcomes.items()])
    for name, failure in failed.items():
        printed.message(f"{name} could not be made: {failure}")
    if failed:
        raise typer.Exit(_EXIT_INCOMPLETE)


mine.epilog = examples(  # type: ignore[attr-defined]
    "turntide analyse mine",
    "turntide analyse mine escalation --days 30",
    "turntide analyse mine drift --since 2026-03-01 --until 2026-03-07 --output json",
)


@contextmanager
def opened() -> Iterator[MiningSource]:
    """The archive as the settings name it, without the days whose files are damaged.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from jobs.analyse.mining.source import MiningSource
    from streams.archive.catalog import paths_of, reading
    from streams.archive.views.published import leave_damage_out

    with reading(paths_of(load_settings())) as con:
        yield MiningSource(con, without=leave_damage_out(con))


def period_of(source: MiningSource, *, days: int | None, since: date | None, until: date | None) -> Period:
    """The days asked for: those given, else the last seven of the archive.

    Raises:
        ConfigurationError: The archive is empty, or the period is none.
    """
    from jobs.analyse.mining.job import Period

    latest = until or source.latest_day()
    if latest is None and source.without:
        raise ConfigurationError("all days have damaged files: `turntide archive verify` names them")
    if latest is None:
        raise ConfigurationError("the archive has no turns yet: `turntide demo` or `turntide produce` add some")
    first = since or Period.last(days or _DEFAULT_DAYS, latest).since
    if first > latest:
        raise ConfigurationError(f"the period begins on {first}, after its last day {latest}")
    return Period(first, latest)


def mined(name: str, source: MiningSource, period: Period) -> JobResult:
    """A job's result of the period, with a progress bar where days are to be made."""
    from jobs.analyse.mining.run import run
    from streams.archive.removal import FOLDER
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


def _outcome(name: str, source: MiningSource, period: Period) -> JobResult | str:
    """Its result, or why there is none."""
    from jobs.analyse.mining.run import failure_text

    try:
        return mined(name, source, period)
    except Exception as error:  # noqa: BLE001 - the job's own code, and the engine's below it
        return failure_text(error)


def _show(printed: Printer, section: ReportSection, k: AnonymityPolicy) -> None:
    from jobs.analyse.report.wording import HIDDEN, shown
    from streams.http import pages

    printed.text(f"\n{section.title}, {section.since} to {section.until}: {section.question}")
    printed.rows(
        "",
        [
            {"figure": f.name, "value": shown(f), "sessions": f.sessions or None, "meaning": f.meaning}
            for f in section.figures
        ],
    )
    below = pages.macros("jobs/analyse/mining/section.md.j2").below
    if said := str(below(section, k, quoted, HIDDEN, _FINDINGS_SHOWN)):
        printed.text(said.removesuffix("\n"))


def quoted(sql: str) -> str:
    """SQL as one word of a shell's line: in double quotes, which leave those of SQL alone, where nothing forbids them.

    >>> print(quoted("SELECT 'x'"), quoted('SELECT "x"'))
    "SELECT 'x'" 'SELECT "x"'
    """
    return shlex.quote(sql) if set(sql) & set('"$`\\!') else f'"{sql}"'


def _plain(name: str, outcome: JobResult | str) -> dict[str, object]:
    import msgspec

    from jobs.analyse.mining.job import ReportSection

    if isinstance(outcome, str):
        return {**dict.fromkeys(ReportSection.__struct_fields__), "job": name, "failure": outcome}
    return {**msgspec.to_builtins(outcome.section), "failure": None}
