"""Findings of the overview: a day or an app with far more alerting sessions than the rest, a change of their share.

Shares are compared by Fisher's exact test (`scipy.stats.fisher_exact`, one-sided), corrected for all days, or all apps,
together (Benjamini and Hochberg, `scipy.stats.false_discovery_control`). The strength is the part of the greater share
that the other does not explain: 1 - rest / share.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import polars as pl
from scipy import stats

from jobs.mining.job import Finding, Period
from models.archive_policy import ArchivePolicy, OverviewMining

_PER = 1_000


def findings_of(sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, policy: ArchivePolicy) -> list[Finding]:
    """What stands out of a period, and against as many days before it.

    Args:
        sessions: A row per session: `day`, `app_id`, `alerts` …
        earlier: The same of the days before.
        period: The days of `sessions`.
        policy: What stands out.
    """
    rules = policy.overview
    days = [_of_day(*each) for each in _standing_out(sessions, "day", rules)]
    apps = [_of_app(*each, period) for each in _standing_out(sessions, "app_id", rules)]
    return [*days, *apps, *_changed(sessions, earlier, period, rules)]


def _standing_out(sessions: pl.DataFrame, by: str, rules: OverviewMining) -> Iterator[tuple[object, float, float]]:
    """Groups with more alerting sessions than the rest: the group, its share and that of the rest."""
    groups = (
        sessions.group_by(by)
        .agg(pl.len().alias("sessions"), (pl.col("alerts") > 0).sum().alias("alerting"))
        .with_columns(
            rest=sessions.height - pl.col("sessions"),
            rest_alerting=pl.col("alerting").sum() - pl.col("alerting"),
        )
        .filter(pl.col("rest") > 0)
        .sort(by)
    )
    if groups.is_empty():
        return
    counted = groups.select("alerting", "sessions", "rest_alerting", "rest").rows()
    chances = stats.false_discovery_control([_chance(*row) for row in counted])
    for name, row, chance in zip(groups[by], counted, chances, strict=True):
        share, rest = row[0] / row[1], row[2] / row[3]
        if chance <= rules.significance and share >= rules.times_the_rest * rest:
            yield name, share, rest


def _chance(alerting: int, sessions: int, rest_alerting: int, rest: int) -> float:
    """Of so many alerting sessions or more, if the group were like the rest."""
    table = [[alerting, sessions - alerting], [rest_alerting, rest - rest_alerting]]
    return float(stats.fisher_exact(table, alternative="greater").pvalue)


def _of_day(day: object, share: float, rest: float) -> Finding:
    return Finding(
        title=f"Most alerts on {day}",
        text=f"{_told(share)} of the sessions that began on this day alerted, on the other days {_told(rest)}.",
        evidence=_alerts_of(f"min(date) = DATE '{day}'"),
        strength=_strength(share, rest),
    )


def _of_app(app: object, share: float, rest: float, period: Period) -> Finding:
    name = str(app).replace("'", "''")
    return Finding(
        title=f"More alerts in app {app}",
        text=f"{_told(share)} of its sessions alerted, in the other apps {_told(rest)}.",
        evidence=_alerts_of(_began(period), f"a.app_id = '{name}' AND "),
        strength=_strength(share, rest),
    )


def _changed(sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, rules: OverviewMining) -> Iterator[Finding]:
    """More, or fewer, alerting sessions than in the earlier period."""
    if sessions.is_empty() or earlier.is_empty():
        return
    now, before = _alerting(sessions), _alerting(earlier)
    share, was = now / sessions.height, before / earlier.height
    risen = share > was
    higher, lower = ((now, sessions.height), (before, earlier.height))[:: 1 if risen else -1]
    greater, less = max(share, was), min(share, was)
    if _chance(*higher, *lower) > rules.significance or greater < rules.times_the_rest * less:
        return
    yield Finding(
        title=f"{'More' if risen else 'Fewer'} sessions alert than before",
        text=f"{_told(share)} of the sessions alerted, in the {period.days} days before {_told(was)}.",
        evidence=_alerts_of(_began(Period(period.earlier.since, period.until))),
        strength=_strength(greater, less),
    )


def _alerting(sessions: pl.DataFrame) -> int:
    return int((sessions["alerts"] > 0).sum())


def _strength(share: float, rest: float) -> float:
    return 1 - rest / share


def _told(share: float) -> str:
    return f"{_PER * share:,.1f} in 1,000"


def _began(period: Period) -> str:
    first, last = _sql(period.since), _sql(period.until)
    return f"min(date) BETWEEN {first} AND {last}"


def _sql(day: date) -> str:
    return f"DATE '{day}'"


def _alerts_of(began: str, besides: str = "") -> str:
    """Alerts of sessions by their first day."""
    return (
        "SELECT a.session_id, a.user_id, a.app_id, a.severity, a.fired_at, a.status\n"  # noqa: S608 - names are escaped
        "FROM alerts a\n"
        f"WHERE {besides}a.session_id IN (SELECT session_id FROM turns GROUP BY session_id HAVING {began})\n"
        "ORDER BY a.fired_at"
    )
