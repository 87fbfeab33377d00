"""The result of a back-test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter

import msgspec
from msgspec import Struct, structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.figures import (
    BacktestFigures,
    Reliable,
    SessionDifference,
    SweepPoint,
    area_under,
    areas_by_app,
    corners,
    delays_of,
    differences,
    figures_by_app,
    figures_of,
    reliability_of,
    span_of,
    sweep,
)
from jobs.escalation.backtest.judging import JudgedSession
from models.policy.digest import policy_digest


class FirstAlert(Struct, frozen=True):
    """Of a session that alerted."""

    session_id: str
    app_id: str
    escalating: bool | None
    alert_id: str
    turn: int
    turns_seen: int
    turns: int
    score: float


class Outcome(Struct, frozen=True):
    """What one contender did.

    Attributes:
        policy: What tells it from the other: the policy's version, or its scorer, or both, or the policy's digest.
        scorer: Name with version, and digest of its file.
        threshold: Score from which an alert is raised, where no app has its own.
        by_app: By app, which in a labelled file is the source.
        roc_auc: Of the highest scores.
        roc_auc_by_app: Of each app's escalating sessions against all benign ones.
        curve: Recall against false alarms by threshold.
        first_turn_roc_auc: Of the scorer's risk of the first user turn alone: the control of what memory adds.
        first_turn: Its curve.
        delays: Escalating sessions by the tenth of their turns in which they alerted.
        base_rate: Share of escalating sessions that its probabilities assume; None: its scores are no probabilities.
        reliability: At that share; empty without one.
        learnt_from: Sources of this traffic that its scorer was trained on.
    """

    policy: str
    scorer: str
    digest: str
    threshold: float
    overall: BacktestFigures
    by_app: dict[str, BacktestFigures]
    roc_auc: float | None
    roc_auc_by_app: dict[str, float]
    curve: list[SweepPoint]
    first_turn_roc_auc: float | None
    first_turn: list[SweepPoint]
    delays: list[int]
    base_rate: float | None
    reliability: list[Reliable]
    learnt_from: list[str]
    first_alerts: list[FirstAlert]


class Backtest(Struct, frozen=True):
    """Contenders side by side over the same sessions.

    Attributes:
        traffic: What was judged.
        begins: First turn; None where times are made up.
        span_days: Event time to the last one; None likewise. Where there is one, labels come from people who saw an
            alert: recall, false alarms and curves are of sessions that have alerted before, not of all traffic.
        dead_letters: Records that could not be read or folded.
        outcomes: In the order of the contenders.
        differing: Sessions that two of them treat differently.
        differences: These sessions.
    """

    traffic: str
    begins: datetime | None
    span_days: float | None
    dead_letters: int
    outcomes: list[Outcome]
    differing: int
    differences: list[SessionDifference]


def backtest_of(
    traffic: str,
    contenders: Sequence[Contender],
    judged: Sequence[Sequence[JudgedSession]],
    *,
    timed: bool,
    dead_letters: int,
) -> Backtest:
    """Make the report."""
    span = span_of(judged[0]) if timed else None
    different = differences(*judged) if len(judged) > 1 else []
    return Backtest(
        traffic=traffic,
        begins=judged[0][0].started_at if timed else None,
        span_days=None if span is None else round(span / timedelta(days=1), 4),
        dead_letters=dead_letters,
        outcomes=[
            _outcome(name, contender, sessions, span)
            for name, contender, sessions in zip(_names(contenders), contenders, judged, strict=True)
        ],
        differing=len(different),
        differences=different,
    )


def without_sessions(report: Backtest) -> Backtest:
    """The report without any session's name or score: figures that can be handed on, curves by their corners alone."""
    outcomes = [
        structs.replace(outcome, curve=corners(outcome.curve), first_turn=corners(outcome.first_turn), first_alerts=[])
        for outcome in report.outcomes
    ]
    return structs.replace(report, outcomes=outcomes, differences=[])


def _outcome(name: str, contender: Contender, sessions: Sequence[JudgedSession], span: timedelta | None) -> Outcome:
    policy, base_rate = contender.policy, contender.base_rate
    curve, first_turn = sweep(sessions), sweep(sessions, attrgetter("first_risk"))
    by_app = figures_by_app(sessions, span)
    return Outcome(
        policy=name,
        scorer=contender.scorer_name,
        digest=policy_digest(policy),
        threshold=policy.modes.elevated.enter,
        overall=figures_of(sessions, span),
        by_app=by_app,
        roc_auc=area_under(curve),
        roc_auc_by_app=areas_by_app(sessions),
        curve=curve,
        first_turn_roc_auc=area_under(first_turn),
        first_turn=first_turn,
        delays=delays_of(sessions),
        base_rate=base_rate,
        reliability=[] if base_rate is None else reliability_of(sessions, base_rate),
        learnt_from=contender.learnt_from([*by_app]) if span is None else [],
        first_alerts=[
            msgspec.convert({**structs.asdict(each.first), **structs.asdict(each)}, FirstAlert)
            for each in sessions
            if each.first is not None
        ],
    )


def _names(contenders: Sequence[Contender]) -> list[str]:
    """By what tells them apart: policy version, scorer, both, or where these are equal the policy's digest."""
    versions = [each.policy.version for each in contenders]
    scorers = [each.scorer_name for each in contenders]
    if len(set(scorers)) == 1:
        names = versions
    elif len(set(versions)) == 1:
        names = scorers
    else:
        names = [f"{version}, {scorer}" for version, scorer in zip(versions, scorers, strict=True)]
    if len(set(names)) == len(names):
        return names
    return [f"{each.policy.version} {policy_digest(each.policy)[:6]}" for each in contenders]
