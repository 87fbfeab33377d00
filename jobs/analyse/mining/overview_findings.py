"""Findings of the overview: a day or an app with far more alerting sessions than the rest, a change of their share.

Shares are compared with users as the unit (`ByUser`), corrected for all days, or all apps, together (Benjamini and
Hochberg). The strength is the part of the greater share that the other does not explain: 1 - rest / share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from jobs.analyse.mining.coverage import PartialShare
from jobs.analyse.mining.job import SHARE, Finding, Period
from jobs.analyse.mining.statistics import ByUser, false_discovery_rates
from models.policy.archive import ArchivePolicy, OverviewMining
from streams.archive.catalog import literal

_PER = 1_000
_ALERTING = pl.col("alerts") > 0


class _Alerting(NamedTuple):
    """How many of some sessions alerted."""

    alerting: int
    sessions: int

    @property
    def share(self) -> float:
        return self.alerting / self.sessions

    @property
    def text(self) -> str:
        return f"{_PER * self.share:,.1f} in 1,000"

    def shown(self, text: str, instead: str) -> PartialShare:
        """A text with this share, which tells of the sessions that alerted."""
        few = {"sessions": self.alerting, "users": self.alerting} if self.alerting else None
        return PartialShare(text, few, instead)  # type: ignore[arg-type]


def findings_of(sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, policy: ArchivePolicy) -> list[Finding]:
    """What stands out of a period's sessions, and against those of as many days before it."""
    fewer = f"fewer than {max(policy.anonymity.min_sessions, policy.anonymity.min_users)}"
    found = []
    for day, group, rest in _standing_out(sessions, "day", policy.overview):
        found.append(
            Finding(
                title=f"Most alerts on {day}",
                text=f"{group.alerting:,} of the {group.sessions:,} sessions that began on this day alerted "
                f"({group.text}), on the other days {SHARE}.",
                shares=(rest.shown(rest.text, f"{fewer} sessions"),),
                evidence=_alerts_of(f"min(date) = DATE '{day}'"),
                strength=1 - rest.share / group.share,
            )
        )
    for app, group, rest in _standing_out(sessions, "app_id", policy.overview):
        found.append(
            Finding(
                title=f"More alerts in app {app}",
                text=f"{group.alerting:,} of its {group.sessions:,} sessions alerted ({group.text}), in the other apps "
                f"{SHARE}.",
                shares=(rest.shown(rest.text, f"{fewer} sessions"),),
                evidence=_alerts_of(_began(period), f"a.app_id = {literal(str(app))} AND "),
                strength=1 - rest.share / group.share,
            )
        )
    return [*found, *_changed(sessions, earlier, period, policy.overview, fewer)]


def _standing_out(
    sessions: pl.DataFrame, by: str, rules: OverviewMining
) -> Iterator[tuple[object, _Alerting, _Alerting]]:
    """Days or apps with more alerting sessions than the rest, and the rest."""
    counts = sessions.group_by(by).agg(alerting=_ALERTING.sum(), sessions=pl.len()).sort(by)
    counts = counts.filter(pl.col("sessions") < sessions.height)
    users, alerting = ByUser(sessions["user_id"]), (sessions["alerts"] > 0).to_numpy()
    chances = [users.share_chance((sessions[by] == name).to_numpy(), alerting) for name in counts[by]]
    for (name, hits, of), rate in zip(counts.iter_rows(), false_discovery_rates(chances), strict=True):
        group, rest = _Alerting(hits, of), _Alerting(int(alerting.sum()) - hits, sessions.height - of)
        if rate <= rules.significance and group.share >= rules.times_the_rest * rest.share:
            yield name, group, rest


def _changed(
    sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, rules: OverviewMining, fewer: str
) -> Iterator[Finding]:
    """More, or fewer, alerting sessions than in the earlier period."""
    if sessions.is_empty() or earlier.is_empty():
        return
    both = pl.concat(
        [frame.select("user_id", "alerts", here=pl.lit(here)) for frame, here in ((sessions, True), (earlier, False))]
    )
    chance = ByUser(both["user_id"]).share_chance(both["here"].to_numpy(), (both["alerts"] > 0).to_numpy())
    now, before = (_Alerting(int((each["alerts"] > 0).sum()), each.height) for each in (sessions, earlier))
    less, greater = sorted((now.share, before.share))
    if chance > rules.significance or greater < rules.times_the_rest * less:
        return
    yield Finding(
        title=f"{'More' if now.share > before.share else 'Fewer'} sessions alert than before",
        text=f"{SHARE} alerted, in the {period.days} days before {SHARE}. The evidence are the alerts of all these.",
        shares=tuple(
            each.shown(
                f"{each.alerting:,} of {each.sessions:,} sessions ({each.text})",
                f"{fewer} of {each.sessions:,} sessions",
            )
            for each in (now, before)
        ),
        evidence=_alerts_of(_began(Period(period.earlier.since, period.until))),
        strength=1 - less / greater,
    )


def _began(period: Period) -> str:
    return f"min(date) BETWEEN DATE '{period.since}' AND DATE '{period.until}'"


def _alerts_of(began: str, besides: str = "") -> str:
    """Alerts of sessions by their first day."""
    return (
        "SELECT a.session_id, a.user_id, a.app_id, a.severity, a.fired_at, a.status\n"  # noqa: S608 - names are escaped
        "FROM alerts a\n"
        f"WHERE {besides}a.session_id IN (SELECT session_id FROM turns GROUP BY session_id HAVING {began})\n"
        "ORDER BY a.fired_at"
    )
