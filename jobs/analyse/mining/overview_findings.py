"""Findings of the overview: a day or an app with far more alerting sessions than the rest, a change of their share.

Shares are compared with users as the unit (`by_user`), corrected for all days, or all apps, together (Benjamini and
Hochberg). The strength is the part of the greater share that the other does not explain: 1 - rest / share.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

import polars as pl

from jobs.analyse.mining.job import Finding, Period
from jobs.analyse.mining.statistics import ByUser, false_discovery_rates
from models.policy.archive import ArchivePolicy, OverviewMining

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
    least = max(policy.anonymity.min_sessions, policy.anonymity.min_users)
    days = [_of_day(each, least) for each in _standing_out(sessions, "day", rules)]
    apps = [_of_app(each, period, least) for each in _standing_out(sessions, "app_id", rules)]
    return [*days, *apps, *_changed(sessions, earlier, period, rules, least)]


class _AlertingGroup(NamedTuple):
    """Sessions of a day or an app, and how many of them alerted; the same of the rest."""

    name: object
    sessions: int
    alerting: int
    rest: int
    rest_alerting: int

    @property
    def share(self) -> float:
        return self.alerting / self.sessions

    @property
    def share_of_rest(self) -> float:
        return self.rest_alerting / self.rest


def _standing_out(sessions: pl.DataFrame, by: str, rules: OverviewMining) -> Iterator[_AlertingGroup]:
    """Groups with more alerting sessions than the rest."""
    groups = [
        _AlertingGroup(*row)
        for row in sessions.group_by(by)
        .agg(pl.len().alias("sessions"), (pl.col("alerts") > 0).sum().alias("alerting"))
        .with_columns(
            rest=sessions.height - pl.col("sessions"),
            rest_alerting=pl.col("alerting").sum() - pl.col("alerting"),
        )
        .filter(pl.col("rest") > 0)
        .sort(by)
        .iter_rows()
    ]
    users, alerting = ByUser(sessions["user_id"]), (sessions["alerts"] > 0).to_numpy()
    rates = false_discovery_rates(
        [users.share_chance((sessions[by] == group.name).to_numpy(), alerting) for group in groups]
    )
    for group, rate in zip(groups, rates, strict=True):
        if rate <= rules.significance and group.share >= rules.times_the_rest * group.share_of_rest:
            yield group


def _of_day(group: _AlertingGroup, least: int) -> Finding:
    return Finding(
        title=f"Most alerts on {group.name}",
        text=f"{group.alerting:,} of the {group.sessions:,} sessions that began on this day alerted "
        f"({_percent_text(group.share)}), on the other days {_rest_text(group, least)}.",
        evidence=_alerts_of(f"min(date) = DATE '{group.name}'"),
        strength=_strength(group.share, group.share_of_rest),
    )


def _of_app(group: _AlertingGroup, period: Period, least: int) -> Finding:
    name = str(group.name).replace("'", "''")
    return Finding(
        title=f"More alerts in app {group.name}",
        text=f"{group.alerting:,} of its {group.sessions:,} sessions alerted ({_percent_text(group.share)}), in the "
        f"other apps {_rest_text(group, least)}.",
        evidence=_alerts_of(_began(period), f"a.app_id = '{name}' AND "),
        strength=_strength(group.share, group.share_of_rest),
    )


def _changed(
    sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, rules: OverviewMining, least: int
) -> Iterator[Finding]:
    """More, or fewer, alerting sessions than in the earlier period."""
    if sessions.is_empty() or earlier.is_empty():
        return
    both = pl.concat(
        [frame.select("user_id", "alerts", here=pl.lit(here)) for frame, here in ((sessions, True), (earlier, False))]
    )
    chance = ByUser(both["user_id"]).share_chance(both["here"].to_numpy(), (both["alerts"] > 0).to_numpy())
    now, before = _alerting(sessions), _alerting(earlier)
    share, was = now / sessions.height, before / earlier.height
    greater, less = max(share, was), min(share, was)
    if chance > rules.significance or greater < rules.times_the_rest * less:
        return
    yield Finding(
        title=f"{'More' if share > was else 'Fewer'} sessions alert than before",
        text=f"{_counted(now, sessions.height, least)} alerted, in the {period.days} days before "
        f"{_counted(before, earlier.height, least)}. The evidence are the alerts of all these.",
        evidence=_alerts_of(_began(Period(period.earlier.since, period.until))),
        strength=_strength(greater, less),
    )


def _alerting(sessions: pl.DataFrame) -> int:
    return int((sessions["alerts"] > 0).sum())


def _strength(share: float, rest: float) -> float:
    return 1 - rest / share


def _rest_text(group: _AlertingGroup, least: int) -> str:
    return f"fewer than {least} sessions" if 0 < group.rest_alerting < least else _percent_text(group.share_of_rest)


def _counted(alerting: int, of: int, least: int) -> str:
    if 0 < alerting < least:
        return f"fewer than {least} of {of:,} sessions"
    return f"{alerting:,} of {of:,} sessions ({_percent_text(alerting / of)})"


def _percent_text(share: float) -> str:
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
