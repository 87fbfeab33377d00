"""Tables of a back-test's result."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.escalation.backtest.figures import BacktestFigures
from jobs.escalation.backtest.report import Backtest
from jobs.shared.output import OutputFormat, Printer
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
