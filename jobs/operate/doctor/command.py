"""The command itself."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.operate.doctor.checks import CHECKS, RESTS_ON, RUNBOOKS
from jobs.operate.doctor.running import verdicts
from jobs.operate.doctor.shown import setting_rows
from jobs.operate.doctor.verdict import Status, Verdict
from jobs.shared.options import OutputOption
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.progress import progress_bar
from models.errors import ConfigurationError
from streams.settings import Settings, load_settings

_EXIT_FAILED = 1


def doctor(
    *,
    check: Annotated[
        list[str] | None, typer.Option("--check", help="Only this check, and no list of settings; may be repeated.")
    ] = None,
    within: Annotated[float, typer.Option(min=0.1, help="How long each check may take, seconds.")] = 20.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print every setting, secrets redacted, and check whether what they name is there and works.

    The checks run side by side. Exits with code 1 when one fails. Nothing is changed.
    """
    wanted = {name: CHECKS[name] for name in _known(check)} if check else CHECKS
    settings: Settings | None = None
    try:
        settings = load_settings()
    except ConfigurationError as error:
        found = {"settings": Verdict(Status.FAIL, str(error), "mend the named fields, then run this again")}
    else:
        with progress_bar("Checking") as progress:
            found = verdicts(wanted, settings, within_s=within, rests_on=RESTS_ON, done=progress)
    _print(Printer(output), [] if check else list(setting_rows(settings)), found, whole=not check)
    if any(verdict.status is Status.FAIL for verdict in found.values()):
        raise typer.Exit(_EXIT_FAILED)


doctor.epilog = examples(  # type: ignore[attr-defined]
    "turntide doctor",
    "turntide doctor --check broker --check topics",
    "turntide doctor --output json | jq '.checks[] | select(.status == \"fail\")'",
)


def _known(names: list[str]) -> list[str]:
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"--check {name}: there is no such check.{meant} There are {', '.join(CHECKS)}")
    return names


def _print(printed: Printer, settings: list[dict[str, object]], found: dict[str, Verdict], *, whole: bool) -> None:
    checks = [_row(name, verdict) for name, verdict in found.items()]
    failed = any(verdict.status is Status.FAIL for verdict in found.values())
    if printed.form is OutputFormat.JSON:
        printed.record({"ok": not failed, **({"settings": settings} if whole else {}), "checks": checks})
        return
    if whole:
        printed.rows("settings", settings)
        printed.message("kafka.bootstrap is set by TURNTIDE_KAFKA__BOOTSTRAP, others likewise, or in TURNTIDE_CONFIG")
    on_a_line_each = printed.form is OutputFormat.TABLE  # paths would fold the other columns
    runbooks = {row["check"]: row.pop("runbook") for row in checks} if on_a_line_each else {}
    printed.rows("checks", checks)
    for name, runbook in runbooks.items():
        if runbook:
            printed.text(f"more on {name}: {runbook}")


def _row(name: str, verdict: Verdict) -> dict[str, object]:
    alert = RUNBOOKS.get(name, "") if verdict.status is not Status.OK else ""
    return {
        "check": name,
        "status": verdict.status.value,
        "detail": verdict.detail,
        "advice": verdict.advice,
        "runbook": f"deploy/runbooks/{alert}.md" if alert else "",
    }
