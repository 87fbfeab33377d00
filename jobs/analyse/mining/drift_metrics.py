"""Metrics compared by drift: measures of a session, each with a name, a meaning and the query that shows it."""

from __future__ import annotations

from typing import NamedTuple

from streams.archive.catalog import literal

MODE = "mode"
ALL_APPS = "all apps"
_SIGNAL = "signal_"


class Metric(NamedTuple):
    """A measure of a session.

    Attributes:
        name: Column, with its unit.
        title: In plain words.
        view: Which view the evidence reads, and …
        value: … what it computes of a session's rows.
    """

    name: str
    title: str
    view: str
    value: str


METRICS = (
    Metric("mean_risk", "mean risk of a session", "risk_points", "avg(risk)"),
    Metric("peak_risk", "highest risk of a session", "risk_points", "max(risk)"),
    Metric("score", "latest score of a session", "profiles", "any_value(score)"),
    Metric("turns", "turns of a session", "turns", "count(*)"),
    Metric("user_turn_bytes", "length of users' turns in bytes", "turns", "avg(content_bytes) FILTER (role = 'user')"),
    Metric("topics", "topics of a session", "topics", "count(*)"),
    Metric("latency_s", "seconds from event to receipt", "turns", "avg(epoch(appended_at) - epoch(timestamp))"),
)
"""Measures with a column of their own; signals come besides as `signal_<name>`."""


def metric_of(name: str) -> Metric:
    """The measure of a column."""
    if name == MODE:
        return Metric(MODE, "mode of a session", "profiles", "any_value(mode)")
    if name.startswith(_SIGNAL):
        signal = name.removeprefix(_SIGNAL)
        value = f"any_value(list_filter(signals, s -> s.name = {literal(signal)})[1].value)"
        return Metric(name, f"signal {signal.replace('_', ' ')} of a session", "profiles", value)
    return next(metric for metric in METRICS if metric.name == name)


def measured(columns: list[str]) -> list[str]:
    """Measures of numbers among the columns of a frame, in order."""
    known = [metric.name for metric in METRICS if metric.name in columns]
    return known + sorted(name for name in columns if name.startswith(_SIGNAL))
