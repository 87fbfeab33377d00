"""Profiles, alerts and segments made up for the live page, in the forms in which the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs

from models.events import (
    AlertChanged,
    AlertStatus,
    Contribution,
    Escalation,
    EvidenceTurn,
    Mode,
    ModeTransition,
    Position,
    ProfileUpdated,
    RiskPoint,
    SegmentCompacted,
    Severity,
    SignalShare,
    Slope,
    TurnShare,
)
from models.events.topics import TURNS

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at_ms(at: datetime = AT) -> int:
    """As records are dated."""
    return int(at.timestamp() * 1_000)


def _common(session_id: str, app: str, user: str, at: datetime) -> dict[str, Any]:
    return {
        "id": f"{session_id}@{at.isoformat()}",
        "session_id": session_id,
        "user_id": user,
        "app_id": app,
        "timestamp": at,
        "source": Position(TURNS.name, 0, 0),
    }


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
    made = ProfileUpdated(
        **_common(session_id, app, user, at),
        open=True,
        turn_count=last + 1,
        last_turn=last,
        duplicate_turns=0,
        late_turns=0,
        started_at=AT - timedelta(minutes=10),
        peak_risk=max(scores, default=0.0),
        mean_risk=0.1,
        slope=Slope(0.05, 0.01, 3),
        mode=Mode.CALM,
        mode_transitions=[],
        question_count=0,
        imperative_count=0,
        topic_changes=0,
        repeated_topics={"parcels": 2},
        probing_attempts=0,
        hypothetical_count=0,
        meta_instruction_count=0,
        suspicion=0.0,
        score=scores[-1] if scores else 0.0,
        signals=[SignalShare("level", 0.5, 1.0)],
        risk_points=points,
    )
    return structs.replace(made, **more)


def transition(turn: int, mode: Mode) -> ModeTransition:
    """A change of the mode."""
    return ModeTransition(turn, mode)


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
    escalation = Escalation(
        probability=0.91234567,
        log_odds=2.3,
        base_log_odds=-3.0,
        threshold=0.5,
        model="test",
        contributions=[Contribution("level", 0.9, 5.3, 0.05, alert_without=False)],
        turns=[TurnShare(0, 2.0), TurnShare(1, 3.3)],
        earlier_log_odds=0.0,
    )
    made = AlertChanged(
        **_common(session_id, app, user, at),
        alert_id=alert_id,
        fingerprint=session_id,
        status=AlertStatus.FIRING,
        severity=Severity.CRITICAL,
        cause="raised",
        reason="the risk rose",
        score=0.91234567,
        mode=Mode.CRITICAL,
        signals=[SignalShare("level", 0.9, 1.0)],
        slope=Slope(0.05, 0.01, 3),
        evidence=[EvidenceTurn(f"{session_id}_{turn}", turn, 0.9, "risky") for turn in evidence],
        turn=1,
        fired_at=at,
        notifications=1,
        policy_version="test",
        escalation=escalation if judged else None,
    )
    return structs.replace(made, **more)


def segment(
    session_id: str = "s", first: int = 0, last: int = 9, *, app: str = "a", at: datetime = AT
) -> SegmentCompacted:
    """A segment of ten turns."""
    return SegmentCompacted(
        **_common(session_id, app, "u", at),
        first_turn=first,
        last_turn=last,
        turns=list(range(first, last + 1)),
        summary="what was said",
        summarised_by="extractive",
        risk_mean=0.1,
        key_topics=["parcels"],
        started_at=at,
        ended_at=at,
        tokens_before=900,
        tokens_after=100,
        bytes_before=3_600,
        bytes_after=400,
    )
