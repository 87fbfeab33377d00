"""Verdicts of checks, which run side by side, each with a time-out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from time import monotonic
from typing import NamedTuple

import duckdb

from models.errors import TurntideError
from streams.settings import Settings


class Status(StrEnum):
    """Verdict of a check: a warning does not keep anything from running."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Verdict(NamedTuple):
    """Result of a check, with advice."""

    status: Status
    detail: str
    advice: str = ""


def ok(detail: str) -> Verdict:
    """Verdict of a check that found nothing."""
    return Verdict(Status.OK, detail)


def warn(detail: str, advice: str) -> Verdict:
    """Verdict of a check that found something to do, while everything runs."""
    return Verdict(Status.WARN, detail, advice)


def fail(detail: str, advice: str) -> Verdict:
    """Verdict of a check that found what keeps something from running."""
    return Verdict(Status.FAIL, detail, advice)


class Check(NamedTuple):
    """One row of the table of checks.

    Attributes:
        look: Says what it found; changes nothing.
        runbook: Alert whose runbook (`deploy/runbooks/<alert>.md`) says more.
        rests_on: Another check; where both fail, only the other's failure is told.
    """

    look: Callable[[Settings], Verdict]
    runbook: str = ""
    rests_on: str = ""


AT_ONCE = 6
"""Most of them wait for somebody else; those that load a model would only slow each other down."""


def verdicts(
    checks: Mapping[str, Check],
    settings: Settings,
    *,
    within_s: float,
    done: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Verdict]:
    """Verdicts of the checks, in order; a check that takes longer than `within_s` has failed and is abandoned."""
    found: dict[str, Verdict] = {}
    waiting, under_way = list(checks.items()), dict[str, float]()
    answers: queue.SimpleQueue[tuple[str, Verdict]] = queue.SimpleQueue()

    def answer(name: str, check: Check) -> None:
        answers.put((name, guarded(check.look, settings)))

    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            name, check = waiting.pop(0)
            under_way[name] = monotonic() + within_s
            threading.Thread(target=answer, args=(name, check), daemon=True).start()
        try:
            name, verdict = answers.get(timeout=max(0.0, min(under_way.values()) - monotonic()))
        except queue.Empty:
            name = min(under_way, key=under_way.__getitem__)
            verdict = fail(f"no answer within {within_s:g} s", _SILENT)
        if under_way.pop(name, None) is not None:  # else it came after its time
            found[name] = verdict
            done(len(found), len(checks))
    return {name: _rendered_once(found, checks[name].rests_on, found[name]) for name in checks}


_SILENT = "the service does not answer: check its address, the network and the firewall, or raise --within"


_CLOSED = (
    "run this as the user that runs the workers; if you are, give it the folder (chown, chmod u+rwx), or set "
    "TURNTIDE_DATA_DIR to another place"
)


def _rendered_once(found: Mapping[str, Verdict], other: str, verdict: Verdict) -> Verdict:
    if verdict.status is Status.FAIL and other in found and found[other].status is Status.FAIL:
        return warn(f"not checked: {other} fails", f"correct `{other}` first")
    return verdict


def guarded(check: Callable[[Settings], Verdict], settings: Settings) -> Verdict:
    """The check's verdict; what it could not bear is a failure too."""
    try:
        return check(settings)
    except ModuleNotFoundError as error:
        return fail(f"package {error.name} is not installed", "install `turntide[local]`")
    except TurntideError as error:
        return fail(str(error), "see what it says, then run `turntide doctor` again")
    except PermissionError as error:
        return fail(f"{error.filename or 'a file'} is closed to this user", _CLOSED)
    except (OSError, duckdb.Error, RuntimeError, ValueError) as error:
        # Its message may hold what must not be shown.
        return fail(f"{type(error).__name__} while it looked", "run the role itself: its log says more")
