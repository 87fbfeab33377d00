"""Verdicts of checks, which run side by side. One that stands still for too long has failed; one that works may go on.

What loads a model takes five times as long on a machine that has other things to do: no fixed time suits all machines.
Work shows in the processor time of the checks' threads; where the system does not tell it (macOS), the clock alone
counts.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from time import monotonic
from typing import NamedTuple

import duckdb

from jobs.shared.extras import install_of
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
_LOOK_AGAIN_S = 0.5
_WORKING_RATIO = 0.05
"""Of a processor, from one look to the next, from which on a thread works; one that waits and asks again takes less."""
_AT_MOST_TIMES = 10
"""As long as a check may stand still, it may work."""


class _Watched:
    """A check under way: when it was begun, and what it has worked."""

    def __init__(self) -> None:
        self.begun_s = self.moved_s = self._looked_s = monotonic()
        self._worked_s = 0.0
        self._clock: int | None = None

    def enter(self) -> None:
        """Called by its thread."""
        if hasattr(time, "pthread_getcpuclockid"):
            self._clock = time.pthread_getcpuclockid(threading.get_ident())

    def look(self, now_s: float) -> None:
        """Note whether it has worked since the last look."""
        worked_s = self._worked_s
        with suppress(OSError):  # the thread has ended: its answer is on the way
            worked_s = worked_s if self._clock is None else time.clock_gettime(self._clock)
        if worked_s - self._worked_s > _WORKING_RATIO * (now_s - self._looked_s):
            self.moved_s = now_s
        self._worked_s, self._looked_s = worked_s, now_s


def verdicts(
    checks: Mapping[str, Check],
    settings: Settings,
    *,
    within_s: float,
    done: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Verdict]:
    """Verdicts of the checks, in order.

    A check has failed and is abandoned when it gave no answer and none of them did any work for `within_s`: one may
    wait for what another one loads. So it is after ten times that in any case.
    """
    found: dict[str, Verdict] = {}
    waiting, under_way = list(checks.items()), dict[str, _Watched]()
    answers: queue.SimpleQueue[tuple[str, Verdict]] = queue.SimpleQueue()

    def answer(name: str, check: Check, watched: _Watched) -> None:
        watched.enter()
        answers.put((name, guarded(check.look, settings)))

    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            name, check = waiting.pop(0)
            under_way[name] = _Watched()
            threading.Thread(target=answer, args=(name, check, under_way[name]), daemon=True).start()
        with suppress(queue.Empty):
            name, verdict = answers.get(timeout=min(_LOOK_AGAIN_S, within_s))
            if under_way.pop(name, None) is not None:  # else it came after its time
                found[name] = verdict
        for name, verdict in _given_up(under_way, within_s):
            found[name] = verdict
            del under_way[name]
        done(len(found), len(checks))
    failing = {name for name, verdict in found.items() if verdict.status is Status.FAIL}
    return {
        name: warn(f"not checked: {check.rests_on} fails", f"correct `{check.rests_on}` first")
        if failing.issuperset((name, check.rests_on))
        else found[name]
        for name, check in checks.items()
    }


def _given_up(under_way: Mapping[str, _Watched], within_s: float) -> list[tuple[str, Verdict]]:
    """Checks that stood still for too long, or worked for much too long, and their verdicts."""
    now_s, most_s = monotonic(), _AT_MOST_TIMES * within_s
    for each in under_way.values():
        each.look(now_s)
    moved_s = max((each.moved_s for each in under_way.values()), default=now_s)
    return [
        (name, fail(f"no answer within {within_s:g} s", _SILENT))
        if now_s - max(moved_s, each.begun_s) >= within_s
        else (name, fail(f"still running after {most_s:g} s", "raise --within"))
        for name, each in under_way.items()
        if now_s - max(moved_s, each.begun_s) >= within_s or now_s - each.begun_s >= most_s
    ]


_SILENT = "the service does not answer: check its address, the network and the firewall, or raise --within"


_CLOSED = (
    "run this as the user that runs the workers; if you do, give that user the folder (chown, chmod u+rwx), or set "
    "TURNTIDE_DATA_DIR to another place"
)


def guarded(check: Callable[[Settings], Verdict], settings: Settings) -> Verdict:
    """The check's verdict; what it could not bear is a failure too."""
    try:
        return check(settings)
    except ModuleNotFoundError as error:
        return fail(f"package {error.name} is not installed", f"install {install_of(error.name)}")
    except TurntideError as error:
        return fail(str(error), "follow the message, then run `turntide doctor` again")
    except PermissionError as error:
        return fail(f"{error.filename or 'a file'} is not accessible to this user", _CLOSED)
    except (OSError, duckdb.Error, RuntimeError, ValueError) as error:
        # Its message may hold what must not be shown.
        return fail(f"{type(error).__name__} during the check", "run the role itself: its log has details")
