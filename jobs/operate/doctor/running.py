"""Runs checks side by side, each with a time-out: a broker that hangs must not hang whoever asks why."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from time import monotonic

import duckdb

from jobs.operate.doctor.verdict import Status, Verdict
from models.errors import TurntideError
from streams.settings import Settings

Check = Callable[[Settings], Verdict]
AT_ONCE = 6
"""Most of them wait for somebody else; those that load a model would only slow each other down."""


def verdicts(
    checks: Mapping[str, Check],
    settings: Settings,
    *,
    within_s: float,
    rests_on: Mapping[str, str],
    done: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Verdict]:
    """What each check found, in their order.

    Args:
        checks: By name.
        settings: What they look at.
        within_s: How long each may take; one that takes longer has failed, and is left to itself.
        rests_on: Check → another one: where both fail, only the other's failure counts.
        done: Told how many are done, of how many.
    """
    found: dict[str, Verdict] = {}
    waiting, under_way = list(checks.items()), dict[str, float]()
    answers: queue.SimpleQueue[tuple[str, Verdict]] = queue.SimpleQueue()
    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            name, check = waiting.pop(0)
            under_way[name] = monotonic() + within_s
            threading.Thread(target=_answer, args=(name, check, settings, answers), daemon=True).start()
        try:
            name, verdict = answers.get(timeout=max(0.0, min(under_way.values()) - monotonic()))
        except queue.Empty:
            name = min(under_way, key=under_way.__getitem__)
            verdict = Verdict(Status.FAIL, f"no answer within {within_s:g} s", _SILENT)
        if under_way.pop(name, None) is not None:  # else it came after its time
            found[name] = verdict
            done(len(found), len(checks))
    return {name: _rendered_once(found, rests_on.get(name, ""), found[name]) for name in checks}


_SILENT = "what it asks does not answer: look at its address, its network and the firewall, or raise --within"


_CLOSED = (
    "run this as the user that runs the workers; if you are, give it the folder (chown, chmod u+rwx), or set "
    "TURNTIDE_DATA_DIR to another place"
)


def _rendered_once(found: Mapping[str, Verdict], other: str, verdict: Verdict) -> Verdict:
    if verdict.status is Status.FAIL and other in found and found[other].status is Status.FAIL:
        return Verdict(Status.WARN, f"not looked at: {other} fails", f"mend `{other}` first")
    return verdict


def _answer(name: str, check: Check, settings: Settings, answers: queue.SimpleQueue[tuple[str, Verdict]]) -> None:
    answers.put((name, guarded(check, settings)))


def guarded(check: Check, settings: Settings) -> Verdict:
    """The check's verdict; what it could not bear is a failure too."""
    try:
        return check(settings)
    except ModuleNotFoundError as error:
        return Verdict(Status.FAIL, f"package {error.name} is not installed", "install `turntide[local]`")
    except TurntideError as error:
        said = str(error)
        return Verdict(Status.FAIL, said, "see what it says, then run `turntide doctor` again")
    except PermissionError as error:
        return Verdict(Status.FAIL, f"{error.filename or 'a file'} is closed to this user", _CLOSED)
    except (OSError, duckdb.Error, RuntimeError, ValueError) as error:
        # Its message may hold what must not be shown.
        return Verdict(Status.FAIL, f"{type(error).__name__} while it looked", "run the role itself: its log says more")
