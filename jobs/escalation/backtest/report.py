"""The result of a back-test, and its tables."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

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
from jobs.shared.output import OutputFormat, Printer
from models.policy.digest import policy_digest
from streams.http import pages

_SHOWN = {
    "alerts": "alerts",
    "alerts_per_day": "alerts per day",
    "precision": "precision",
    "recall": "recall",
    "false_alarm_ratio": "false-alarm rate",
    "median_delay_turns": "turns until the alert, median",
    "median_delay_ratio": "share of the session until then",
}
"""What the table and the page show of `BacktestFigures`, and its name there."""
_AREAS = {"roc_auc": "ROC-AUC", "first_turn_roc_auc": "ROC-AUC of the first user turn alone"}
"""Likewise of `Outcome`."""
_LABELLED_ALONE = ", of labelled sessions alone"
_INTERVALS = {"recall": "recall_interval", "false_alarm_ratio": "false_alarm_interval"}


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


def show(printed: Printer, report: Backtest) -> None:
    """Print it: all of it as JSON, a row for each policy and app as CSV, the main figures as tables."""
    if printed.form is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(report))
        return
    if printed.form is OutputFormat.CSV:
        printed.rows("backtest", _flat_rows(report))
        return
    printed.rows(f"{report.traffic}: {_said_of(report)}", compared_rows(report))
    printed.rows("by source", source_rows(report))
    for note in notes_on(report):
        printed.message(note)


def compared_rows(report: Backtest) -> list[dict[str, str]]:
    """A row for each figure, a column for each contender, and what the second changes."""
    among = among_labelled(report)
    rows = []
    for name, shown in {**_SHOWN, **_AREAS}.items():
        interval = _INTERVALS.get(name, "")
        row, values = {"": shown + (among if interval or name in _AREAS else "")}, []
        for outcome in report.outcomes:
            value = getattr(outcome if name in _AREAS else outcome.overall, name)
            values.append(value)
            row[outcome.policy] = cell(value) + between(getattr(outcome.overall, interval, None))
        rows.append(row | ({"change": _change(*values)} if len(values) > 1 else {}))
    return rows


def among_labelled(report: Backtest) -> str:
    """Stands behind figures that need labels, where only what had alerted could be given one."""
    return "" if report.span_days is None else _LABELLED_ALONE


def source_rows(report: Backtest) -> list[dict[str, str]]:
    """A row for each app: sessions, and for each policy alerts, recall and false-alarm rate."""
    several, among = len(report.outcomes) > 1, among_labelled(report)
    rows = []
    for app, first in report.outcomes[0].by_app.items():
        row = {"source": app, "sessions": str(first.sessions), "labelled": str(first.labelled)}
        for outcome in report.outcomes:
            figures, of = outcome.by_app[app], f" ({outcome.policy})" if several else ""
            row |= {
                f"alerts{of}": cell(figures.alerts),
                f"recall{among}{of}": cell(figures.recall),
                f"false alarms{among}{of}": cell(figures.false_alarm_ratio),
            }
        rows.append(row)
    return rows


def notes_on(report: Backtest) -> list[str]:
    """What a reader has to know beside the figures."""
    said: str = pages.macros("jobs/escalation/backtest/notes.md.j2").notes(report)
    return said.splitlines()


def cell(value: float | None) -> str:
    """A figure in a table; a dash for none.

    >>> cell(12), cell(0.25), cell(7.5), cell(None)
    ('12', '0.250', '7.50', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:,.2f}"


def between(interval: tuple[float, float] | None) -> str:
    """An interval beside its figure.

    >>> between((0.0299, 0.051)), between(None)
    (' (0.030-0.051)', '')
    """
    return "" if interval is None else f" ({cell(interval[0])}-{cell(interval[1])})"


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "–"
    change = after - before
    if not change:
        return "±0"
    return ("+" if change > 0 else "−") + cell(abs(change))


def _said_of(report: Backtest) -> str:
    figures = report.outcomes[0].overall
    return f"{figures.sessions} sessions, {figures.escalating} escalating, {figures.benign} benign"


def _flat_rows(report: Backtest) -> list[dict[str, Any]]:
    return [
        {"policy": outcome.policy, "source": source} | _flat(figures)
        for outcome in report.outcomes
        for source, figures in [("", outcome.overall), *outcome.by_app.items()]
    ]


def _flat(figures: BacktestFigures) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(figures)
    for interval, name in (("recall_interval", "recall"), ("false_alarm_interval", "false_alarm")):
        low, high = fields.pop(interval) or (None, None)
        fields |= {f"{name}_low": low, f"{name}_high": high}
    return fields
