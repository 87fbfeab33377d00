"""`turntide doctor`: the settings, redacted, and checks of everything that they name.

`CHECKS` is the table of all checks, `verdict.py` runs them, and the other files hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated

import typer
from pydantic import BaseModel

from jobs.cli import with_examples
from jobs.operate.doctor.locks import check_locks
from jobs.operate.doctor.partitioning import check_partitioner
from jobs.operate.doctor.places import check_archive, check_disk, check_iceberg, check_lake
from jobs.operate.doctor.scoring import (
    check_embedder,
    check_judge,
    check_llm,
    check_policy,
    check_scorer,
    check_vectors,
)
from jobs.operate.doctor.serving import (
    check_access,
    check_broker,
    check_clock,
    check_ports,
    check_sinks,
    check_tokens,
    check_topics,
    check_workers,
)
from jobs.operate.doctor.verdict import Check, Status, Verdict, fail, ok, verdicts
from jobs.shared.options import OutputOption
from jobs.shared.output import OutputFormat, Printer, progress_bar
from models.errors import ConfigurationError
from streams.settings import Settings, load_settings
from streams.settings.reading import unknown_variables


def check_settings(settings: Settings) -> Verdict:
    """A misspelt variable changes nothing, and its setting keeps its default: told by name."""
    unknown = unknown_variables(type(settings))
    if not unknown:
        return ok("every TURNTIDE_ variable is a setting")
    return fail("; ".join(each.rendered for each in unknown), "rename or unset them: they change nothing")


CHECKS = {
    "settings": Check(check_settings, "TurntideRestarting"),
    "broker": Check(check_broker, "TurntideNotReady"),
    "topics": Check(check_topics, "TurntideNotReady", rests_on="broker"),
    "partitioner": Check(check_partitioner, "TurntideSessionOnTwoPartitions", rests_on="topics"),
    "clock": Check(check_clock, "TurntideDeadLetters", rests_on="broker"),
    "disk": Check(check_disk, "TurntideArchiveBehind"),
    "lake": Check(check_lake, "TurntideArchiveBehind"),
    "archive": Check(check_archive, "TurntideArchiveNotSettled", rests_on="lake"),
    "iceberg": Check(check_iceberg),
    "locks": Check(check_locks, "TurntideArchiveBehind"),
    "embedder": Check(check_embedder, "TurntideNotReady"),
    "vectors": Check(check_vectors, "TurntideIndexBehind"),
    "ports": Check(check_ports),
    "access": Check(check_access, "TurntideRestarting"),
    "tokens": Check(check_tokens, "TurntideHttpErrors"),
    "workers": Check(check_workers, "TurntideRoleAway", rests_on="broker"),
    "policy": Check(check_policy, "TurntideRestarting"),
    "scorer": Check(check_scorer, "TurntideRestarting", rests_on="embedder"),
    "judge": Check(check_judge, "TurntideJudgeFailing"),
    "llm": Check(check_llm, "TurntideLlmFailing"),
    "sinks": Check(check_sinks, "TurntideSinkFailing"),
}
"""Every check by name, in the order they are printed."""


def setting_rows(settings: Settings | None) -> Iterator[dict[str, object]]:
    """Every field with its value, or its default where the settings are wrong."""
    yield from _rows(Settings, settings, ())


def _rows(model: type[BaseModel], values: BaseModel | None, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for name, field in model.model_fields.items():
        place = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _rows(kind, getattr(values, name, None), place)
            continue
        value = field.get_default(call_default_factory=True) if values is None else getattr(values, name)
        yield {
            "setting": ".".join(place),
            "value": "" if value is None else redacted(name, str(value)),
            "description": field.description or "",
        }


def redacted(name: str, value: str) -> str:
    """The value without what may be a secret in an address: user and password, and a webhook's path.

    >>> redacted("url", "https://me:secret@example.org/api"), redacted("webhook_url", "https://example.org/hook/123")
    ('https://…@example.org/api', 'https://example.org/…')
    """
    value = re.sub(r"//[^/@]*@", "//…@", value)
    return re.sub(r"(//[^/]+/).+", r"\1…", value) if name == "webhook_url" else value


_EXIT_FAILED = 1


@with_examples(
    "turntide doctor",
    "turntide doctor --check broker --check topics",
    "turntide doctor --output json | jq '.checks[] | select(.status == \"fail\")'",
)
def doctor(
    *,
    check: Annotated[
        list[str] | None, typer.Option("--check", help="Only this check, and no list of settings; may be repeated.")
    ] = None,
    within: Annotated[
        float,
        typer.Option(min=0.1, help="How long a check may stand still, seconds; at work, ten times that."),
    ] = 20.0,
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
        found = {"settings": fail(str(error), "correct the named fields, then run this again")}
    else:
        with progress_bar("Checking") as progress:
            found = verdicts(wanted, settings, within_s=within, done=progress)
    _print(Printer(output), [] if check else list(setting_rows(settings)), found, whole=not check)
    if any(verdict.status is Status.FAIL for verdict in found.values()):
        raise typer.Exit(_EXIT_FAILED)


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
    alert = "" if verdict.status is Status.OK else CHECKS[name].runbook
    return {
        "check": name,
        "status": verdict.status.value,
        "detail": verdict.detail,
        "advice": verdict.advice,
        "runbook": f"deploy/runbooks/{alert}.md" if alert else "",
    }
