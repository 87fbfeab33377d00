"""The result of a back-test, and how it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from jobs.backtest.figures import (
    Difference,
    Figures,
    SweepPoint,
    differences,
    figures_by_app,
    figures_of,
    span_of,
    sweep,
)
from jobs.backtest.judging import Judged
from jobs.output import Output, OutputFormat
from models.policy import Policy
from models.policy_digest import policy_digest

_SHOWN = {
    "alerts": "alerts",
    "alerts_per_day": "alerts per day",
    "precision": "precision",
    "recall": "recall",
    "false_alarm_ratio": "false-alarm rate",
    "median_delay_turns": "turns until the alert, median",
    "median_delay_ratio": "share of the session until then",
}
"""What the table and the page show of `Figures`, and its name there."""


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
    """What one policy did.

    Attributes:
        policy: Its version; with its digest where both policies bear the same one.
        threshold: Score from which an alert is raised, where no app has its own.
        by_app: By app, which in a labelled file is the source.
        curve: Recall against false alarms by threshold.
    """

    policy: str
    digest: str
    threshold: float
    overall: Figures
    by_app: dict[str, Figures]
    curve: list[SweepPoint]
    first_alerts: list[FirstAlert]


class Backtest(Struct, frozen=True):
    """Policies side by side over the same sessions.

    Attributes:
        traffic: What was judged.
        begins: First turn; None where times are made up.
        span_days: Event time to the last one.
        dead_letters: Records that could not be read or folded.
        outcomes: In the order of the policies.
        differences: Sessions that two policies treat differently.
    """

    traffic: str
    begins: datetime | None
    span_days: float | None
    dead_letters: int
    outcomes: list[Outcome]
    differences: list[Difference]


def backtest_of(
    traffic: str, policies: Sequence[Policy], judged: Sequence[Sequence[Judged]], *, timed: bool, dead_letters: int
) -> Backtest:
    """Make the report.

    Args:
        traffic: Its name.
        policies: One or two.
        judged: For each of them the same sessions, at least one.
        timed: Whether event times mean anything.
        dead_letters: As of `Backtest`.
    """
    span = span_of(judged[0]) if timed else None
    return Backtest(
        traffic=traffic,
        begins=judged[0][0].started_at if timed else None,
        span_days=None if span is None else round(span / timedelta(days=1), 4),
        dead_letters=dead_letters,
        outcomes=[
            _outcome(name, policy, sessions, span)
            for name, policy, sessions in zip(_names(policies), policies, judged, strict=True)
        ],
        differences=differences(*judged) if len(judged) > 1 else [],
    )


def show(printed: Output, report: Backtest) -> None:
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
    """A row for each figure, a column for each policy, and what the second changes."""
    rows = []
    for name, shown in _SHOWN.items():
        values = [getattr(outcome.overall, name) for outcome in report.outcomes]
        row = {"": shown} | {
            outcome.policy: cell(value) for outcome, value in zip(report.outcomes, values, strict=True)
        }
        rows.append(row | ({"change": _change(*values)} if len(values) > 1 else {}))
    return rows


def source_rows(report: Backtest) -> list[dict[str, str]]:
    """A row for each app: sessions, and for each policy alerts, recall and false-alarm rate."""
    several = len(report.outcomes) > 1
    rows = []
    for app, first in report.outcomes[0].by_app.items():
        row = {"source": app, "sessions": str(first.sessions), "labelled": str(first.labelled)}
        for outcome in report.outcomes:
            figures, of = outcome.by_app[app], f" ({outcome.policy})" if several else ""
            row |= {
                f"alerts{of}": cell(figures.alerts),
                f"recall{of}": cell(figures.recall),
                f"false alarms{of}": cell(figures.false_alarm_ratio),
            }
        rows.append(row)
    return rows


def notes_on(report: Backtest) -> list[str]:
    """What a reader has to know beside the figures."""
    figures = report.outcomes[0].overall
    notes = []
    if not figures.labelled:
        notes.append("No session is labelled, so nobody can say which alerts are right: `turntide alerts label`")
    elif figures.labelled < figures.sessions:
        notes.append(
            f"{figures.labelled} of {figures.sessions} sessions are labelled. Labels are given where a policy alerted: "
            "recall and false-alarm rate are of those sessions, not of all traffic"
        )
    if report.span_days is None:
        notes.append("The file has no times: turns are taken as a minute apart, and there is no rate by day")
    if report.dead_letters:
        notes.append(f"{report.dead_letters} records could not be read or folded")
    if len(report.outcomes) > 1:
        notes.append(f"{len(report.differences)} sessions alert at another turn, or under one of the policies only")
    return notes


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


def _outcome(name: str, policy: Policy, sessions: Sequence[Judged], span: timedelta | None) -> Outcome:
    return Outcome(
        policy=name,
        digest=policy_digest(policy),
        threshold=policy.modes.elevated.enter,
        overall=figures_of(sessions, span),
        by_app=figures_by_app(sessions, span),
        curve=sweep(sessions),
        first_alerts=[
            FirstAlert(
                session_id=each.session_id,
                app_id=each.app_id,
                escalating=each.escalating,
                alert_id=first.alert_id,
                turn=first.turn,
                turns_seen=first.turns_seen,
                turns=each.turns,
                score=first.score,
            )
            for each in sessions
            if (first := each.first) is not None
        ],
    )


def _names(policies: Sequence[Policy]) -> list[str]:
    versions = [policy.version for policy in policies]
    if len(set(versions)) == len(versions):
        return versions
    return [f"{policy.version} {policy_digest(policy)[:6]}" for policy in policies]


def _flat_rows(report: Backtest) -> list[dict[str, Any]]:
    return [
        {"policy": outcome.policy, "source": source} | _flat(figures)
        for outcome in report.outcomes
        for source, figures in [("", outcome.overall), *outcome.by_app.items()]
    ]


def _flat(figures: Figures) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(figures)
    low, high = fields.pop("false_alarm_interval") or (None, None)
    return fields | {"false_alarm_low": low, "false_alarm_high": high}
