"""The alerts of the play, summed up and judged: how sure, why, and whether in time."""

from __future__ import annotations

from msgspec import Struct

from jobs.demo.state import DemoState
from models.events import AlertStatus, Escalation, Severity
from streams.notify.wording import counterfactual

IN_TIME = 2 / 3
"""Of a session's turns may have been said when it alerts: an alert at the end would help nobody."""


class AlertJudgement(Struct, frozen=True, kw_only=True):
    """Why a model alerted."""

    probability: float
    threshold: float
    counterfactual: str
    model: str


class AlertSummary(Struct, frozen=True, kw_only=True):
    """One alert."""

    alert_id: str
    session_id: str
    turn: int
    """At which it was raised …"""
    turns_of_session: int
    """… of how many."""
    judgement: AlertJudgement | None
    """When it was as grave as it became; None where no model judges."""
    severity: Severity
    """The highest it reached."""
    status: AlertStatus
    causes: list[str]
    reason: str
    evidence_turns: list[int]
    latency_ms: float | None
    """From the sending of its turn to its arrival at the demo, through the whole pipeline."""


def summarise_alerts(state: DemoState) -> list[AlertSummary]:
    """One for each, in the order of their raising."""
    return [
        AlertSummary(
            alert_id=alert_id,
            session_id=alert.latest.session_id,
            turn=alert.raised.turn,
            turns_of_session=len(state.sessions[alert.latest.session_id].conversation.turns),
            judgement=_judgement(alert.gravest.escalation),
            severity=alert.latest.severity,
            status=alert.latest.status,
            causes=alert.causes,
            reason=alert.gravest.reason,
            evidence_turns=[evidence.turn for evidence in alert.gravest.evidence],
            latency_ms=None if alert.latency_s is None else round(alert.latency_s * 1000, 1),
        )
        for alert_id, alert in state.alerts.items()
    ]


def late_alerts(state: DemoState) -> list[tuple[str, int, int]]:
    """Sessions whose first alert came later than `IN_TIME`, with its turn, and of how many."""
    first = {alert.raised.session_id: alert.raised.turn for alert in reversed(state.alerts.values())}
    turns = {session_id: len(state.sessions[session_id].conversation.turns) for session_id in first}
    return [(i, turn, turns[i]) for i, turn in first.items() if turn + 1 > IN_TIME * turns[i]]


def _judgement(escalation: Escalation | None) -> AlertJudgement | None:
    if escalation is None:
        return None
    return AlertJudgement(
        probability=escalation.probability,
        threshold=escalation.threshold,
        counterfactual=counterfactual(escalation),
        model=escalation.model,
    )
