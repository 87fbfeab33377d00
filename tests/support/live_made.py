"""Profiles, alerts and segments made up for the live page, in the forms in which the log has them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from models.events import (
    AlertChanged,
    AlertStatus,
    Contribution,
    Escalation,
    EvidenceTurn,
    Mode,
    ProfileUpdated,
    RiskPoint,
    SegmentCompacted,
    Severity,
    SignalShare,
    Slope,
    TurnShare,
)
from tests.support.blank_events import blank

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at_ms(at: datetime = AT) -> int:
    """As records are dated."""
    return int(at.timestamp() * 1_000)


def profile(
    session_id: str = "s",
    *,
    app: str = "a",
    user: str = "u",
    at: datetime = AT,
    scores: Sequence[float] = (0.1, 0.3),
    first: int = 0,
    **more: Any,
) -> ProfileUpdated:
    """A profile with the scores of its last turns, from turn `first` on."""
    last = first + len(scores) - 1
    points = [RiskPoint(first + n, at, score, score, Mode.CALM, "model") for n, score in enumerate(scores)]
    given: dict[str, Any] = {
        "open": True,
        "turn_count": last + 1,
        "last_turn": last,
        "started_at": AT - timedelta(minutes=10),
        "peak_risk": max(scores, default=0.0),
        "slope": Slope(0.05, 0.01, 3),
        "repeated_topics": {"parcels": 2},
        "score": scores[-1] if scores else 0.0,
        "signals": [SignalShare("level", 0.5, 1.0)],
        "risk_points": points,
    }
    return blank(ProfileUpdated, session_id=session_id, user_id=user, app_id=app, timestamp=at, **given | more)


def alert(
    session_id: str = "s",
    alert_id: str = "alert-1",
    *,
    app: str = "a",
    user: str = "u",
    at: datetime = AT,
    evidence: Sequence[int] = (1,),
    judged: bool = True,
    **more: Any,
) -> AlertChanged:
    """A critical alert that fires."""
    escalation = blank(
        Escalation,
        probability=0.91234567,
        contributions=[Contribution("level", 0.9, 5.3, 0.05, alert_without=False)],
        turns=[TurnShare(0, 2.0), TurnShare(1, 3.3)],
    )
    given: dict[str, Any] = {
        "fingerprint": session_id,
        "status": AlertStatus.FIRING,
        "severity": Severity.CRITICAL,
        "cause": "raised",
        "reason": "the risk rose",
        "score": 0.91234567,
        "mode": Mode.CRITICAL,
        "signals": [SignalShare("level", 0.9, 1.0)],
        "slope": Slope(0.05, 0.01, 3),
        "evidence": [EvidenceTurn(f"{session_id}_{turn}", turn, 0.9, "risky") for turn in evidence],
        "turn": 1,
        "fired_at": at,
        "escalation": escalation if judged else None,
    }
    names = {"session_id": session_id, "user_id": user, "app_id": app, "alert_id": alert_id}
    return blank(AlertChanged, timestamp=at, **names, **given | more)


def segment(
    session_id: str = "s", first: int = 0, last: int = 9, *, app: str = "a", at: datetime = AT
) -> SegmentCompacted:
    """A segment of ten turns."""
    return blank(
        SegmentCompacted,
        session_id=session_id,
        app_id=app,
        timestamp=at,
        first_turn=first,
        last_turn=last,
        turns=list(range(first, last + 1)),
        summary="what was said",
        key_topics=["parcels"],
        started_at=at,
        ended_at=at,
        tokens_before=900,
        tokens_after=100,
    )
