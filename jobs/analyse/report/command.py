"""`turntide analyse report`: what the archive shows of a period, as one page, and as pictures for chat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from jobs.analyse.mining.command import DaysOption, SinceOption, UntilOption, mined, opened, period_of
from jobs.analyse.mining.job import JOB_NAMES, job_of
from jobs.cli import examples
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError, StoreUnavailable
from streams.settings import load_settings

if TYPE_CHECKING:
    from jobs.analyse.report.gathering import MiningReport

_EXIT_INCOMPLETE = 1
_FILE = Path("turntide-report.html")


def report(
    *,
    days: DaysOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    to: Annotated[Path, typer.Option(help="File of the page: one HTML file that opens offline.")] = _FILE,
    png: Annotated[
        Path | None,
        typer.Option(help="Folder for pictures: a card with the headline, and each chart.", metavar="FOLDER"),
    ] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also write headline, findings and charts to this PDF.")] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this job ({', '.join(JOB_NAMES)}). May be repeated.", show_default=False),
    ] = None,
    refresh: Annotated[bool, typer.Option(help="Recompute everything, also cached days.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write a report of a period from the archive: headline, findings with their evidence, a section per mining job.

    The report compares the period with as many days before it. Jobs run as in `turntide analyse mine` and use cached
    results. A job that fails is named on the page, and the exit code is 1. A finding needs at least as many sessions or
    users as the policy's `archive.anonymity`.
    """
    names = tuple(job or JOB_NAMES)
    if unknown := set(names) - set(JOB_NAMES):
        raise ConfigurationError(f"no mining job {', '.join(sorted(unknown))}: the jobs are {', '.join(JOB_NAMES)}")
    for file in (to, *([] if pdf is None else [pdf])):
        _require_folder(file)
    made = gathered(names, days=days, since=since, until=until, refresh=refresh)
    written = _written(made, to=to, png=png, pdf=pdf)
    _print_summary(Printer(output), made, written)
    if made.failed:
        raise typer.Exit(_EXIT_INCOMPLETE)


report.epilog = examples(  # type: ignore[attr-defined]
    "turntide analyse report",
    "turntide analyse report --days 30 --to march.html --png pictures --pdf march.pdf",
    "turntide analyse report --since 2026-03-01 --until 2026-03-07 --job escalation --job drift --output json",
)


def gathered(
    names: Sequence[str], *, days: int | None, since: datetime | None, until: datetime | None, refresh: bool
) -> MiningReport:
    """Run the jobs for a period of the archive, and the one before it.

    Raises:
        ConfigurationError: There is no archive, or the period is none.
        StoreUnavailable: It cannot be read.
    """
    from jobs.analyse.report.gathering import MiningReport, facts_of, part_of
    from models.policy.digest import policy_digest
    from streams.archive.removal import forget_mined
    from streams.wiring import policy_of

    begun, made_at = time.monotonic(), datetime.now(UTC)
    settings = load_settings()
    policy = policy_of(settings)
    if refresh:
        forget_mined(settings.data_dir / "mining")
    with opened() as source:
        # Of an empty archive those up to today, so that its page can say so.
        last = until.date() if until else source.latest_day() or made_at.date()
        period = period_of(source, days=days, since=since and since.date(), until=last)
        parts = [
            part_of(name, period, job_of=job_of, mined=lambda name, period: mined(name, source, period))
            for name in names
        ]
        return MiningReport(
            period=period,
            parts=parts,
            archive=facts_of(source.con),
            policy_version=policy.version,
            policy_digest=policy_digest(policy),
            anonymity=policy.archive.anonymity,
            made_at=made_at,
            seconds=time.monotonic() - begun,
        )


def _require_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise ConfigurationError(f"cannot write {file.name}: there is no folder {file.parent}")


def _written(made: MiningReport, *, to: Path, png: Path | None, pdf: Path | None) -> dict[str, object]:
    """Write what is asked for; gives the places.

    Raises:
        StoreUnavailable: A place cannot be written to.
    """
    from jobs.analyse.report.page import write_document, write_page, write_pictures

    written: dict[str, object] = {"page": str(to)}
    try:
        write_page(made, to)
        if png is not None:
            written["pictures"] = [str(path) for path in write_pictures(made, png)]
        if pdf is not None:
            write_document(made, pdf)
            written["pdf"] = str(pdf)
    except OSError as error:
        raise StoreUnavailable(f"cannot write the report to {error.filename}: {error.strerror}") from None
    return written


def _print_summary(printed: Printer, made: MiningReport, written: dict[str, object]) -> None:
    from jobs.analyse.report import wording

    figures = made.headline
    failed = {part.name: part.failure for part in made.failed}
    if printed.form is OutputFormat.JSON:
        printed.record(
            written
            | {"since": made.period.since, "until": made.period.until, "findings": len(made.findings), "failed": failed}
            | {"figures": {figure.name: figure.value for figure in figures}, "seconds": round(made.seconds, 1)}
            | {"hidden": [figure.name for figure in figures if figure.hidden], "shown_from": asdict(made.anonymity)}
        )
        return
    takes = wording.takes(made.anonymity)
    shown = {
        wording.label(figure.name): f"{wording.shown(figure)}, {takes}" if figure.hidden else wording.shown(figure)
        for figure in figures
    }
    places = {name: f"{len(place)} files" if isinstance(place, list) else place for name, place in written.items()}
    printed.record(shown | {"findings": len(made.findings)} | places)
    if not made.findings and not made.is_empty:
        printed.message(made.nothing)
    if made.is_empty:
        printed.message(f"the archive holds nothing from {made.period.since} to {made.period.until}: the page says so")
    for name, failure in failed.items():
        printed.message(f"{name} could not be made: {failure}")
