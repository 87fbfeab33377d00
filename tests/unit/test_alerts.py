"""The life of an alert, with fixed times, and the hysteresis of the risk mode."""

from datetime import UTC, datetime, timedelta

import pytest

from models.events import AlertStatus, Mode, Severity
from models.policy import AlertPolicy, ModePolicy
from models.risk.alerts import Cause, OpenAlert, Situation, acknowledge, after_turn, next_mode

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = AlertPolicy()


def step(
    alert: OpenAlert | None,
    mode: Mode,
    minutes: float = 0,
    scored: int = 9,
    risk: float | None = 0.1,
    *,
    score: float = 0.5,
    worst: float = 0.5,
) -> tuple[OpenAlert | None, Cause | None]:
    """One turn, so many minutes after noon."""
    situation = Situation(NOON + timedelta(minutes=minutes), mode, scored, risk, score=score, worst_risk=worst)
    return after_turn(alert, situation, POLICY, lambda: "new")


def raised(mode: Mode = Mode.ELEVATED) -> OpenAlert:
    """An alert raised at noon."""
    alert, _ = step(None, mode)
    assert alert is not None
    return alert


@pytest.mark.parametrize(
    ("mode", "scored", "risk", "expected"),
    [
        (Mode.WATCH, 9, 0.5, None),
        (Mode.ELEVATED, 2, 0.5, None),
        (Mode.ELEVATED, 3, 0.5, Severity.WARNING),
        (Mode.CRITICAL, 3, None, Severity.CRITICAL),
        (Mode.CALM, 1, 0.9, Severity.CRITICAL),
        (Mode.CALM, 1, 0.89, None),
    ],
)
def test_raising(mode: Mode, scored: int, risk: float | None, expected: Severity | None) -> None:
    """Elevated warns and critical is critical with enough evidence; one turn of very high risk needs no more."""
    alert, cause = step(None, mode, scored=scored, risk=risk)

    assert (expected, expected and "raised") == (alert and alert.severity, cause)


def test_renotified_in_event_time() -> None:
    """After half an hour of event time, and not before, it is said again, counted from the last time."""
    early = step(raised(), Mode.ELEVATED, minutes=29)
    once, cause = step(raised(), Mode.ELEVATED, minutes=30)
    again = step(once, Mode.ELEVATED, minutes=59)[1]

    assert (raised(), None) == early
    assert ("renotified", 2, None) == (cause, once and once.notifications, again)


def test_acknowledged_alert_is_quiet_until_it_worsens() -> None:
    """Somebody looks at it: no repeats; a rise is told and pages nobody anew, but one to critical fires again."""
    alert, cause = acknowledge(raised(), "new", 0.5)
    quiet = step(alert, Mode.ELEVATED, minutes=300)[1]
    told, risen = step(alert, Mode.ELEVATED, minutes=1, score=0.69)
    worse, louder = step(alert, Mode.CRITICAL, minutes=301)

    assert ("acknowledged", None, "worsened") == (cause, quiet, louder)
    assert ("worsened", AlertStatus.ACKNOWLEDGED) == (risen, told and told.status)
    assert worse is not None
    assert (AlertStatus.FIRING, Severity.CRITICAL) == (worse.status, worse.severity)


@pytest.mark.parametrize(
    ("score", "worst", "expected"),
    [(0.59, 0.5, None), (0.61, 0.5, "worsened"), (0.5, 0.59, None), (0.5, 0.61, "worsened"), (0.1, 0.1, None)],
)
def test_a_rise_by_a_step_is_told_at_once(score: float, worst: float, expected: Cause | None) -> None:
    """Of the score, or of the riskiest turn, over what was told last; from there the next step is counted."""
    first, cause = step(raised(), Mode.ELEVATED, minutes=1, score=score, worst=worst)
    again = step(first, Mode.ELEVATED, minutes=2, score=score, worst=worst)[1]

    assert (expected, None) == (cause, again)
    assert first is not None
    assert 1 + (expected is not None) == first.notifications


def test_an_alert_of_an_earlier_release_tells_its_present_score_once() -> None:
    """What it told last was not kept."""
    old = OpenAlert("old", AlertStatus.FIRING, Severity.WARNING, NOON, NOON)
    now, cause = step(old, Mode.ELEVATED, minutes=1)

    assert ("worsened", None) == (cause, step(now, Mode.ELEVATED, minutes=2)[1])


def test_critical_alert_stays_critical_when_the_mode_falls_to_elevated() -> None:
    """Severity only rises; the alert ends by being resolved."""
    alert, cause = step(raised(Mode.CRITICAL), Mode.ELEVATED)

    assert (Severity.CRITICAL, None) == (alert and alert.severity, cause)


def test_resolved_after_quiet_turns() -> None:
    """Five turns below elevated resolve it; an elevated one in between begins anew."""
    alert: OpenAlert | None = raised()
    causes: list[Cause | None] = []
    for mode in [Mode.WATCH] * 4 + [Mode.ELEVATED] + [Mode.CALM] * 5:
        alert, cause = step(alert, mode, minutes=1)
        causes.append(cause)

    assert [None] * 9 + ["resolved"] == causes
    assert alert is not None
    assert AlertStatus.RESOLVED is alert.status


@pytest.mark.behaviour("risk-10")
@pytest.mark.parametrize(
    ("mode", "score", "turns_in_mode", "expected"),
    [
        (Mode.CALM, 0.24, 99, Mode.CALM),
        (Mode.CALM, 0.25, 0, Mode.WATCH),
        (Mode.CALM, 0.99, 0, Mode.CRITICAL),
        (Mode.WATCH, 0.46, 0, Mode.ELEVATED),
        (Mode.ELEVATED, 0.34, 99, Mode.ELEVATED),
        (Mode.ELEVATED, 0.32, 2, Mode.ELEVATED),
        (Mode.ELEVATED, 0.32, 3, Mode.WATCH),
        (Mode.CRITICAL, 0.44, 99, Mode.ELEVATED),
        (Mode.CRITICAL, 0.00, 99, Mode.CALM),
        (Mode.WATCH, 0.20, 99, Mode.WATCH),
        (Mode.WATCH, 0.16, 99, Mode.CALM),
    ],
)
def test_next_mode(mode: Mode, score: float, turns_in_mode: int, expected: Mode) -> None:
    """Rises at once and over several steps, falls below the leave threshold after the least stay."""
    actual = next_mode(mode, score, turns_in_mode, ModePolicy())

    assert expected == actual
