"""Read model of one session and its alerts, rendered as rows of the live page. No text of a turn."""

from dataclasses import dataclass, field
from datetime import datetime

from msgspec import structs

from models.events import AlertChanged, AlertStatus, ProfileUpdated, SegmentCompacted, Severity
from models.risk.telling import sentence
from streams.api.answers import answered
from streams.api.live.messages import AlertNote, AlertRow, Row, RowAlert

SPARK_POINTS = 40
MOST_SEGMENTS = 100
"""Of a session, the last ones."""
MOST_NOTES = 20
"""Of an alert, the last ones."""
MOST_ALERTS = 8
"""Of a session, the last ones."""
_DIGITS = 4


@dataclass(slots=True)
class KnownAlert:
    """An alert as its last change has it; `at_ms` is that record's time, `label` and `notes` are what people said."""

    event: AlertChanged
    at_ms: int
    trace_id: str | None
    label: bool | None
    notes: list[AlertNote] = field(default_factory=list)

    def row(self) -> AlertRow:
        """As it is told."""
        event, judged = self.event, self.event.escalation
        return answered(
            AlertRow,
            event,
            severity=event.severity.value,
            status=event.status.value,
            category=event.category.value,
            sentence=sentence(event),
            score=round(event.score, _DIGITS),
            probability=None if judged is None else round(judged.probability, _DIGITS),
            evidence=[each.turn for each in event.evidence],
            updated_at=event.timestamp,
            trace_id=self.trace_id,
            label=self.label,
        )


@dataclass(slots=True)
class KnownSession:
    """What is kept of one session.

    Attributes:
        at_ms: Time of the last record that told of it.
        profile: The last one; None while only alerts or segments are known.
        points: Turn → score after it, of the last turns.
        segments: By their first turn.
        alerts: By id, the last that changed last.
    """

    user_id: str
    at_ms: int = 0
    started_at: datetime | None = None
    profile: ProfileUpdated | None = None
    points: dict[int, float] = field(default_factory=dict)
    segments: dict[int, SegmentCompacted] = field(default_factory=dict)
    alerts: dict[str, KnownAlert] = field(default_factory=dict)

    @property
    def firing(self) -> bool:
        """Whether an alert is not resolved."""
        return any(each.event.status is not AlertStatus.RESOLVED for each in self.alerts.values())

    def take_profile(self, profile: ProfileUpdated) -> None:
        """Become as the profile says; one that began at another time is of another life of the session."""
        if self.started_at != profile.started_at:
            self.started_at, self.points = profile.started_at, {}
            self.segments = {n: each for n, each in self.segments.items() if each.started_at >= profile.started_at}
        for point in profile.risk_points:
            self.points.pop(point.turn, None)
            self.points[point.turn] = round(point.score, _DIGITS)
        for turn in list(self.points)[:-SPARK_POINTS]:
            del self.points[turn]
        self.user_id = profile.user_id
        self.profile = structs.replace(profile, risk_points=[], signals=[], repeated_topics={})

    def take_segment(self, segment: SegmentCompacted) -> None:
        """Note where a segment is, and what it saved."""
        self.segments[segment.first_turn] = structs.replace(segment, summary="", key_topics=[], turns=[])
        for first in list(self.segments)[:-MOST_SEGMENTS]:
            del self.segments[first]

    def row(self) -> Row | None:
        """As it is told; None while there is no profile."""
        profile = self.profile
        if profile is None:
            return None
        return answered(
            Row,
            profile,
            risk=round(profile.score, _DIGITS),
            peak_risk=round(profile.peak_risk, _DIGITS),
            slope=round(profile.slope.per_turn, _DIGITS),
            mode=profile.mode.value,
            turns=profile.turn_count,
            updated_at=profile.timestamp,
            spark=[self.points[turn] for turn in sorted(self.points)],
            alert=self._alert(),
        )

    def _alert(self) -> RowAlert | None:
        """The gravest that is not resolved, of several the latest; else the last."""
        events = [each.event for each in self.alerts.values()]
        if not events:
            return None
        firing = [each for each in events if each.status is not AlertStatus.RESOLVED]
        gravest = max(firing, key=lambda each: (each.severity is Severity.CRITICAL, each.fired_at), default=None)
        shown = gravest or events[-1]
        return RowAlert(alert_id=shown.alert_id, severity=shown.severity.value, status=shown.status.value)
