"""An alert for people, in a few lines, and for programs, with everything that was judged."""

from __future__ import annotations

from msgspec import to_builtins

from models.events import AlertChanged, Escalation, EvidenceTurn
from streams.notify.wording import contribution_words, counterfactual, policy_words, strongest

_CONTRIBUTIONS = 5
"""Told to people; programs get all."""
_JUDGED = ("probability", "threshold", "model", "log_odds", "base_log_odds", "earlier_log_odds")


def explained(alert: AlertChanged) -> str:
    """What on-call needs of an alert, in a few lines of any terminal: what, why, on which grounds, and its id."""
    judged = alert.escalation
    grounds = _shares(alert) if judged is None else _judgement(judged)
    evidence = ", ".join(_evidence(turn, judged=judged is not None) for turn in alert.evidence)
    score = f"score {alert.score:.2f}"
    if judged is not None:
        score = f"probability {judged.probability:.2f} (alert from {judged.threshold:.2f})"
    head = (
        f"{alert.status.value} {alert.severity.value}  session {alert.session_id}  app {alert.app_id}  "
        f"turn {alert.turn}  {score}  at {alert.timestamp:%Y-%m-%d %H:%M:%S}Z"
    )
    return "\n".join(
        (
            head,
            f"  why      {alert.reason}",
            *grounds,
            f"  turns    {evidence or 'none'}",
            f"  by       {'' if judged is None else f'model {judged.model}, '}policy {policy_words(alert)}",
            f"  id       {alert.alert_id}",
        )
    )


def _shares(alert: AlertChanged) -> list[str]:
    shares = ", ".join(f"{signal.name} {signal.share:.0%}" for signal in alert.signals if signal.share > 0)
    return [f"  signals  {shares or 'none'}"]


def _judgement(escalation: Escalation) -> list[str]:
    shown = strongest(escalation.contributions, _CONTRIBUTIONS)
    said = [f"begins at {escalation.base_log_odds:+.1f}", *map(contribution_words, shown)]
    if left := len(escalation.contributions) - len(shown):
        rest = sum(each.log_odds for each in escalation.contributions) - sum(each.log_odds for each in shown)
        said.append(f"{left} more {rest:+.1f}")
    return [f"  signals  {'; '.join(said)}", f"  else     {counterfactual(escalation)}"]


def _evidence(turn: EvidenceTurn, *, judged: bool) -> str:
    return f"{turn.turn} ({turn.why}{f', {turn.log_odds:+.1f}' if judged else ''})"


def described(alert: AlertChanged) -> dict[str, object]:
    """An alert's latest change in one row, with the whole judgement: what adds up stays exact, in log-odds."""
    judged = alert.escalation
    return {
        "alert_id": alert.alert_id,
        "status": alert.status.value,
        "severity": alert.severity.value,
        "session_id": alert.session_id,
        "app_id": alert.app_id,
        "turn": alert.turn,
        "score": round(alert.score, 3),
        "mode": alert.mode.value,
        "reason": alert.reason,
        "signals": {signal.name: round(signal.share, 3) for signal in alert.signals},
        "evidence_turns": [turn.turn for turn in alert.evidence],
        "fired_at": alert.fired_at.isoformat(),
        "changed_at": alert.timestamp.isoformat(),
        "notifications": alert.notifications,
        "cause": alert.cause,
        "policy_version": alert.policy_version,
        "policy_digest": alert.policy_digest,
        **{name: judged and getattr(judged, name) for name in _JUDGED},
        "contributions": judged and to_builtins(judged.contributions),
        "turn_shares": judged and to_builtins(judged.turns),
        "counterfactual": judged and counterfactual(judged),
        "evidence": to_builtins(alert.evidence),
    }
