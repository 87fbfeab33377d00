"""Synthetic outputs of the roles for a session: made up, but of the true kinds, sizes and proportions.

As in `turntide demo`, each turn goes on to its user's memory. A profile stands for an exchange: a role with much to do
folds several turns of a session at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from models.events import (
    AlertChanged,
    AlertStatus,
    EpisodeClosed,
    EvidenceTurn,
    FactCategory,
    FactChanged,
    Mode,
    ModeTransition,
    ProfileUpdated,
    RiskPoint,
    SegmentCompacted,
    Severity,
    SignalShare,
    Slope,
    TopicChanged,
    Turn,
    UserTurnAdded,
    WindowClosed,
)
from models.events.base import OutputFields

PROFILE_TURNS, SEGMENT_TURNS, TOPIC_TURNS, WINDOW_TURNS, FACT_TURNS = 2, 10, 12, 8, 100
_SIGNALS = (
    "level",
    "trajectory",
    "persistence",
    "anomaly",
    "suspicion",
    "repeated_probing",
    "topic_cycling",
    "information_gathering",
)
_MODES = ((0.75, Mode.CRITICAL), (0.5, Mode.ELEVATED), (0.3, Mode.WATCH), (0.0, Mode.CALM))
_SUMMARY_CHARS = 160
_TOPIC_SUMMARY_CHARS = 250
_WINDOW = timedelta(minutes=5)


class Course(Struct):
    """What is remembered of a session between its turns."""

    subject: list[str]
    started_at: datetime
    peak: float = 0.0
    total: float = 0.0
    scored: int = 0
    mode: Mode = Mode.CALM
    transitions: list[ModeTransition] = []
    points: list[RiskPoint] = []
    topics: int = 0
    alert: AlertChanged | None = None
    alerts: int = 0

    def see(self, turn: Turn, risk: float, level: float) -> None:
        """Take a turn of the user."""
        self.peak, self.total, self.scored = max(self.peak, risk), self.total + risk, self.scored + 1
        mode = next(mode for least, mode in _MODES if level >= least)
        if mode is not self.mode:
            self.mode, self.transitions = mode, [*self.transitions[-9:], ModeTransition(turn.turn, mode)]
        self.points.append(RiskPoint(turn.turn, turn.timestamp, round(risk, 4), round(level, 4), mode, "rules"))

    @property
    def mean(self) -> float:
        """Mean risk."""
        return self.total / max(1, self.scored)


def told(
    course: Course, turn: Turn, level: float, said: OutputFields, ids: Iterator[str], *, last: bool
) -> Iterator[Struct]:
    """What follows from a turn.

    Args:
        course: The session until this turn, which it has seen.
        turn: The turn.
        level: Its risk without noise.
        said: What every output begins with; its id is replaced.
        ids: Gives ids.
        last: Whether it ends the session.
    """
    number = turn.turn + 1
    yield _forwarded(turn, {**said, "id": next(ids)})
    if last or number % PROFILE_TURNS == 0:
        yield _profile(course, turn, level, {**said, "id": next(ids)}, open_=not last)
        course.points = []
    if number % SEGMENT_TURNS == 0:
        yield _segment(course, turn, {**said, "id": next(ids)})
    if number % WINDOW_TURNS == 0:
        yield _window(course, turn, {**said, "id": next(ids)})
    if number % TOPIC_TURNS == 1:
        yield _topic(course, turn, {**said, "id": next(ids)}, topic_id=next(ids))
    if number % FACT_TURNS == FACT_TURNS // 4:
        yield _fact(course, turn, {**said, "id": next(ids)})
    if course.mode is Mode.CRITICAL and course.alert is None:
        course.alert, course.alerts = _alert(course, turn, level, {**said, "id": next(ids)}), course.alerts + 1
        yield course.alert
    elif course.alert is not None and (last or course.mode is Mode.CALM):
        yield _alert(course, turn, level, {**said, "id": next(ids)}, of=course.alert)
        course.alert = None
    if last:
        yield _episode(course, turn, {**said, "id": next(ids)})


def _signals(level: float) -> list[SignalShare]:
    return [
        SignalShare(name, round(level / (n + 1), 4), round(0.6 / (n + 1) ** 1.5, 6)) for n, name in enumerate(_SIGNALS)
    ]


def _slope(course: Course) -> Slope:
    return Slope((course.peak - course.mean) / (course.scored + 1), course.mean / (course.scored + 7), 20)


def _forwarded(turn: Turn, said: OutputFields) -> UserTurnAdded:
    return UserTurnAdded(**said, turn=turn.turn, role=turn.role, content=turn.content)


def _profile(course: Course, turn: Turn, level: float, said: OutputFields, *, open_: bool) -> ProfileUpdated:
    return ProfileUpdated(
        **said,
        open=open_,
        turn_count=turn.turn + 1,
        last_turn=turn.turn,
        duplicate_turns=0,
        late_turns=0,
        started_at=course.started_at,
        peak_risk=course.peak,
        mean_risk=course.mean,
        slope=_slope(course),
        mode=course.mode,
        mode_transitions=course.transitions,
        question_count=turn.turn // 5,
        imperative_count=turn.turn // 11,
        topic_changes=course.topics,
        repeated_topics={word: turn.turn // (8 * (n + 1)) + 1 for n, word in enumerate(course.subject)},
        probing_attempts=0,
        hypothetical_count=turn.turn // 40,
        meta_instruction_count=0,
        suspicion=round(level / 10, 4),
        score=round(level, 4),
        signals=_signals(level),
        risk_points=course.points,
    )


def _segment(course: Course, turn: Turn, said: OutputFields) -> SegmentCompacted:
    turns = list(range(turn.turn + 1 - SEGMENT_TURNS, turn.turn + 1))
    return SegmentCompacted(
        **said,
        first_turn=turns[0],
        last_turn=turns[-1],
        turns=turns,
        summary=turn.content[:_SUMMARY_CHARS],
        summarised_by="extractive",
        risk_mean=course.mean,
        key_topics=course.subject,
        started_at=turn.timestamp - _WINDOW,
        ended_at=turn.timestamp,
        tokens_before=1_200,
        tokens_after=40,
        bytes_before=5_000 + turn.turn,
        bytes_after=_SUMMARY_CHARS,
    )


def _window(course: Course, turn: Turn, said: OutputFields) -> WindowClosed:
    start = turn.timestamp - (turn.timestamp - datetime.min.replace(tzinfo=turn.timestamp.tzinfo)) % _WINDOW
    return WindowClosed(
        **said,
        scope="session",
        window_start=start,
        window_end=start + _WINDOW,
        turns=WINDOW_TURNS,
        turns_per_minute=WINDOW_TURNS / 5,
        risk_sum=course.mean * WINDOW_TURNS / 2,
        risk_max=course.peak,
        scored_turns=WINDOW_TURNS // 2,
        alerts=0,
        late_turns=0,
    )


def _topic(course: Course, turn: Turn, said: OutputFields, *, topic_id: str) -> TopicChanged:
    course.topics += 1
    turns = list(range(max(0, turn.turn + 1 - TOPIC_TURNS), turn.turn + 1))
    return TopicChanged(
        **said,
        topic_id=topic_id,
        title=" ".join(course.subject[:3]),
        cause="started" if turn.turn == 0 else "left",
        detail="",
        active=True,
        kept=True,
        turn=turn.turn,
        message_count=len(turns),
        access_count=course.topics,
        importance=0.5,
        priority=round(course.mean, 4),
        half_life_days=1.0,
        memory_type="short-term",
        tags=[],
        created_at=turn.timestamp - _WINDOW,
        last_active_at=turn.timestamp,
        active_turns=turns,
        packed_turns=[],
        released_messages=0,
        packed_bytes=0,
        summary=turn.content[:_TOPIC_SUMMARY_CHARS],
        summarised_by="extractive",
        session_topics=course.topics,
        compaction=None,
    )


def _fact(course: Course, turn: Turn, said: OutputFields) -> FactChanged:
    return FactChanged(
        **said,
        category=FactCategory.PREFERENCE,
        key=course.subject[0],
        value=" ".join(course.subject),
        confidence=0.8,
        importance=0.7,
        active=True,
        cause="stored",
        valid_from=turn.timestamp,
        valid_until=None,
        turn=turn.turn,
        extracted_by="rules",
        history=[],
    )


def _alert(
    course: Course, turn: Turn, level: float, said: OutputFields, *, of: AlertChanged | None = None
) -> AlertChanged:
    return AlertChanged(
        **said,
        alert_id=of.alert_id if of is not None else said["id"],
        fingerprint=f"{turn.session_id}-rising",
        status=AlertStatus.RESOLVED if of is not None else AlertStatus.FIRING,
        severity=Severity.WARNING,
        cause="resolved" if of is not None else "raised",
        reason="risk rises steadily",
        score=round(level, 4),
        mode=course.mode,
        signals=_signals(level),
        slope=_slope(course),
        evidence=_evidence(course.points, turn.session_id),
        turn=turn.turn,
        fired_at=of.fired_at if of is not None else turn.timestamp,
        notifications=1,
        policy_version="1",
    )


def _evidence(points: Sequence[RiskPoint], session_id: str) -> list[EvidenceTurn]:
    return [EvidenceTurn(f"{session_id}_{each.turn}", each.turn, each.risk, "high risk") for each in points[-5:]]


def _episode(course: Course, turn: Turn, said: OutputFields) -> EpisodeClosed:
    return EpisodeClosed(
        **said,
        reason="ended",
        first_turn=0,
        last_turn=turn.turn,
        turn_count=turn.turn + 1,
        summary=turn.content[:_TOPIC_SUMMARY_CHARS],
        key_topics=course.subject,
        started_at=course.started_at,
        ended_at=turn.timestamp,
        peak_risk=course.peak,
        mean_risk=course.mean,
        mode=course.mode,
        alerts=course.alerts,
    )
