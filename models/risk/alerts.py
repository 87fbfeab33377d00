r"""State machine of an alert: firing, acknowledged, resolved. Pure; at most one open alert a session.

Its input is the risk mode, which rises at once and falls with a delay (hysteresis and a minimum duration).

```
(none) --raised--> FIRING --acknowledged--> ACKNOWLEDGED
                     ^  \--renotified (each `renotify_after`)--/      |
                     `------- worsened (now it is critical) ---------'
        either --worsened (by `worsened_step` above the last sent value)--> unchanged
        either --assigned, noted, snoozed, duplicate (triage)--> unchanged, silent while snoozed or duplicate
        either --woken (the snooze ended, or it is no longer a duplicate)--> FIRING
        either --judged (a slower judge answered)--> unchanged
        either --resolved (calm for a while, or the session closes)--> (none)
        either --erased (with the session)--> (none)
```

Silent: not renotified. A snooze ends early if the alert worsens. A duplicate is silent in favour of the alert that it
duplicates: it is not sent if it worsens by a step, but it is sent again if it becomes critical.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from models.events import AlertAcknowledged, AlertCause, AlertChanged, AlertStatus, AlertTriaged, Mode, Severity
from models.policy import AlertPolicy, ModePolicy

_ORDER = tuple(Mode)
RANK = {mode: rank for rank, mode in enumerate(Mode)}
"""Order of the modes; calm is 0."""


def next_mode(mode: Mode, score: float, turns_in_mode: int, policy: ModePolicy, app_id: str = "") -> Mode:
    """The mode after a turn.

    A mode is entered when the score reaches its `enter`, also over several steps at once. It is left when the score is
    below its `leave` and it has lasted `dwell_turns`; then for the highest mode whose `leave` still holds.

    >>> policy = ModePolicy()
    >>> next_mode(Mode.CALM, 0.6, 0, policy), next_mode(Mode.ELEVATED, 0.5, 9, policy)
    (<Mode.ELEVATED: 'elevated'>, <Mode.ELEVATED: 'elevated'>)
    """
    thresholds = policy.thresholds(app_id)
    reached = sum([score >= threshold.enter for threshold in thresholds])
    rank = RANK[mode]
    if reached >= rank:
        return _ORDER[reached]
    if turns_in_mode < policy.dwell_turns:
        return mode
    held = sum([score >= threshold.leave for threshold in thresholds[:rank]])
    return _ORDER[max(held, reached)]


Cause = AlertCause
_ELEVATED = RANK[Mode.ELEVATED]
_CRITICAL = RANK[Mode.CRITICAL]


class OpenAlert(Struct, frozen=True, array_like=True):
    """An alert that is not resolved."""

    alert_id: str
    status: AlertStatus
    severity: Severity
    fired_at: datetime
    notified_at: datetime
    notifications: int = 1
    quiet_turns: int = 0
    """Consecutive counted turns below elevated."""
    told: float = 0.0
    """Score in its last change; 0 if an earlier release raised it: the next turn then sends the current score."""
    worst_told: float = 0.0
    """Risk of the session's riskiest turn in the last change by a turn; 0 likewise."""
    assignee: str = ""
    snoozed_until: datetime | None = None
    duplicate_of: str = ""

    @property
    def is_silenced(self) -> bool:
        """Whether it is not renotified: snoozed or a duplicate."""
        return bool(self.snoozed_until or self.duplicate_of)


class Situation(Struct, frozen=True, gc=False):
    """Input of the state machine after a counted turn.

    Attributes:
        now: Newest event time of the session.
        mode: Mode after the turn.
        scored_turns: Number of scored turns of the session.
        turn_risk: Risk of the turn if it alone can raise an alert, or None.
        enough_evidence: Whether enough turns are evidence for the calibrated probability (`min_evidence_turns`); None
            if the source formulas decide.
        score: Score of the mode after the turn, 0-1.
        worst_risk: Risk of the session's riskiest turn.
    """

    now: datetime
    mode: Mode
    scored_turns: int
    turn_risk: float | None
    enough_evidence: bool | None = None
    score: float = 0.0
    worst_risk: float = 0.0


def demanded_severity(situation: Situation, policy: AlertPolicy) -> Severity | None:
    """Severity of the situation without its history; None for no alert.

    Mode elevated is a warning, mode critical is critical, both with enough evidence: with the source formulas
    `min_scored_turns`; with the calibrated probability, which already accounts for few turns, `min_evidence_turns` (or
    the former if risks from producers alone demand an alert: they never delay one). A single turn with
    `single_turn_risk` is critical without further evidence.
    """
    if situation.turn_risk is not None and situation.turn_risk >= policy.single_turn_risk:
        return Severity.CRITICAL
    rank = RANK[situation.mode]
    enough = situation.enough_evidence
    if enough is None:
        enough = situation.scored_turns >= policy.min_scored_turns
    if rank < _ELEVATED or not enough:
        return None
    return Severity.CRITICAL if rank >= _CRITICAL else Severity.WARNING


def after_turn(
    alert: OpenAlert | None, situation: Situation, policy: AlertPolicy, new_id: Callable[[], str]
) -> tuple[OpenAlert | None, Cause | None]:
    """The alert after a counted turn, and the cause of its change; None if it did not change (deduplicated).

    A resolved alert is returned with the cause "resolved"; the caller then drops it.
    """
    demanded = demanded_severity(situation, policy)
    now, worst = situation.now, situation.worst_risk
    if alert is None:
        if demanded is None:
            return None, None
        firing = AlertStatus.FIRING
        return OpenAlert(new_id(), firing, demanded, now, now, told=situation.score, worst_told=worst), "raised"
    if demanded is Severity.CRITICAL and alert.severity is Severity.WARNING:
        return _worsen(alert, now, situation.score, worst), "worsened"
    quiet_turns = alert.quiet_turns + 1 if demanded is None and RANK[situation.mode] < _ELEVATED else 0
    if quiet_turns != alert.quiet_turns:
        alert = replace(alert, quiet_turns=quiet_turns)
    if quiet_turns >= policy.resolve_after_turns:
        return resolve(alert), "resolved"
    due = alert.status is AlertStatus.FIRING and now - alert.notified_at >= policy.renotify_after
    due &= not alert.is_silenced
    cause: Cause | None = None
    rise = max(situation.score - alert.told, worst - alert.worst_told)
    if rise > policy.worsened_step and not alert.duplicate_of:
        alert, cause = replace(alert, snoozed_until=None), "worsened"
    elif due and not quiet_turns and not _quiet(alert.severity, now, policy):
        cause = "renotified"
    return (alert if cause is None else _notify(alert, now, situation.score, worst)), cause


def acknowledge(alert: OpenAlert | None, alert_id: str, score: float) -> tuple[OpenAlert | None, Cause | None]:
    """Acknowledge an alert. The id of another alert, or a repeat, changes nothing."""
    if alert is None or alert.alert_id != alert_id or alert.status is AlertStatus.ACKNOWLEDGED:
        return alert, None
    return replace(alert, status=AlertStatus.ACKNOWLEDGED, told=score, snoozed_until=None), "acknowledged"


def triage(
    alert: OpenAlert | None, said: AlertTriaged, now: datetime, score: float
) -> tuple[OpenAlert | None, Cause | None]:
    """Apply triage to an alert. The id of another alert, or triage without a change, changes nothing.

    A duplicate is never snoozed. For several changes the cause is the first of: duplicate, snoozed, assigned, noted.
    """
    if alert is None or alert.alert_id != said.alert_id:
        return alert, None
    assignee = alert.assignee if said.assignee is None else said.assignee
    until = alert.snoozed_until if said.snoozed_until is None else said.snoozed_until.astimezone(UTC)
    of = alert.duplicate_of if said.duplicate_of in {None, alert.alert_id} else said.duplicate_of or ""
    until = None if of or until is None or until <= now else until
    after = replace(alert, assignee=assignee, snoozed_until=until, duplicate_of=of, told=score)
    if alert.is_silenced and not after.is_silenced:
        return _wake(after, now, score), "woken"
    cause: Cause | None = "noted" if said.note else None
    if of != alert.duplicate_of:
        cause = "duplicate"
    elif until != alert.snoozed_until:
        cause = "snoozed"
    elif assignee != alert.assignee:
        cause = "assigned"
    return (alert, None) if cause is None else (after, cause)


def end_snooze(alert: OpenAlert, now: datetime, score: float) -> tuple[OpenAlert, Cause]:
    """End a snooze: the alert is sent again, also in quiet hours, since the end was set by a person."""
    return _wake(replace(alert, snoozed_until=None), now, score), "woken"


def judged(alert: OpenAlert, mode: Mode, now: datetime, score: float) -> tuple[OpenAlert, Cause]:
    """Apply the answer of a slower judge; `mode` is the session's mode after it. A warning can become critical."""
    if RANK[mode] >= _CRITICAL and alert.severity is Severity.WARNING:
        return _worsen(alert, now, score, alert.worst_told), "worsened"
    return replace(alert, told=score), "judged"


def resolve(alert: OpenAlert) -> OpenAlert:
    """The alert as resolved."""
    return replace(alert, status=AlertStatus.RESOLVED, snoozed_until=None)


def _quiet(severity: Severity, now: datetime, policy: AlertPolicy) -> bool:
    """Whether quiet hours forbid a renotification now; the first turn after them sends it."""
    hours = policy.quiet_hours
    if hours is None or severity not in hours.severities:
        return False
    clock = now.astimezone(UTC)
    return hours.cover(clock.hour * 60 + clock.minute)


def _worsen(alert: OpenAlert, now: datetime, score: float, worst_risk: float) -> OpenAlert:
    critical = replace(alert, severity=Severity.CRITICAL, quiet_turns=0, snoozed_until=None, duplicate_of="")
    return _notify(replace(critical, status=AlertStatus.FIRING), now, score, worst_risk)


def _wake(alert: OpenAlert, now: datetime, score: float) -> OpenAlert:
    return _notify(replace(alert, status=AlertStatus.FIRING), now, score, alert.worst_told)


def _notify(alert: OpenAlert, now: datetime, score: float, worst_risk: float) -> OpenAlert:
    notifications = alert.notifications + 1
    return replace(alert, notified_at=now, notifications=notifications, told=score, worst_told=worst_risk)


class TriageRefusal(NamedTuple):
    """Reason why triage of an alert is refused.

    Attributes:
        field: The wrong field; empty: none, the alert is resolved.
        why: The reason in words.
    """

    field: Literal["", "duplicate_of"]
    why: str


def refusal(
    alert: AlertChanged, said: AlertAcknowledged | AlertTriaged, other: AlertChanged | None = None
) -> TriageRefusal | None:
    """Reason to refuse triage by commands or over HTTP; None if it is allowed. A note is always allowed.

    Args:
        alert: Latest change of the alert.
        said: The acknowledgement or triage.
        other: Latest change of the alert that it duplicates; None: unknown.
    """
    news = (said.assignee, said.snoozed_until, said.duplicate_of) if isinstance(said, AlertTriaged) else (said,)
    if alert.status is AlertStatus.RESOLVED and any(each is not None for each in news):
        at = f"{alert.timestamp:%Y-%m-%d %H:%M}Z"
        return TriageRefusal("", f"alert {alert.alert_id} was resolved at {at}: only a note or a label can be added")
    of = said.duplicate_of if isinstance(said, AlertTriaged) else ""
    if not of:
        return None
    if other is None or other.app_id != alert.app_id:
        return TriageRefusal("duplicate_of", f"the app has no alert {of}")
    if of == alert.alert_id:
        return TriageRefusal("duplicate_of", f"alert {of} cannot duplicate itself")
    if other.duplicate_of:
        return TriageRefusal("duplicate_of", f"alert {of} duplicates {other.duplicate_of}: use that")
    return None
