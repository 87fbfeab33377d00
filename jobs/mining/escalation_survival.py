"""How long sessions go without escalating: Kaplan and Meier's estimate, and apps held against each other.

A session that ends calm is censored at its last scored turn: it might have escalated later.
"""

# ruff: noqa: S608 - days are dates, texts are quoted

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from jobs.mining.comparing import begun, quoted
from jobs.mining.job import Asked, Finding
from models.archive_policy import ArchivePolicy

ALL_APPS = "all apps"
_PERCENT = 100
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "app": pl.String,
    "scored_turn": pl.Int64,
    "calm_percent": pl.Float64,
    "low_percent": pl.Float64,
    "high_percent": pl.Float64,
    "sessions": pl.Int64,
    "users": pl.Int64,
}


class Standing(NamedTuple):
    """How an app does against the others."""

    app_id: str
    sessions: int
    users: int
    escalated: int
    escalated_percent: float
    others_percent: float
    median_turns: float | None
    """Scored turns until escalation, of sessions that escalate."""
    false_discovery_rate: float
    faster: bool | None
    """Than the others; None: no difference that chance would not give."""


def _times(sessions: pl.DataFrame) -> stats.CensoredData:
    """Scored turns until escalation, or until the end without it."""
    escalated = sessions["escalated_at"].drop_nulls().to_numpy()
    calm = sessions.filter(pl.col("escalated_at").is_null())["scored"].to_numpy()
    return stats.CensoredData(uncensored=escalated, right=calm)


def survival_table(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Share of sessions that have not escalated by a scored turn, of all apps and of the largest ones.

    From the second row of an app on, at least k sessions left between a row and the one before, so that no single
    session's length can be told. `sessions` and `users` are those still there at that turn. Intervals: log-log
    (`scipy.stats.ecdf`), Greenwood's variance.
    """
    frames = [_curve(ALL_APPS, sessions, policy)]
    frames += [_curve(app, sessions.filter(pl.col("app_id") == app), policy) for app in _largest(sessions, policy)]
    return pl.concat(frames)


def _curve(name: str, sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    if sessions.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    estimate = stats.ecdf(_times(sessions)).sf
    with warnings.catch_warnings():
        # It has no variance to go by before the first escalation, nor where all have escalated.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = estimate.confidence_interval(policy.escalation.confidence, method="log-log")
    ends = sessions.select("user_id", at=pl.coalesce("escalated_at", "scored"))
    turns = np.insert(estimate.quantiles, 0, 0.0)
    steps = pl.DataFrame(
        {
            "app": [name] * len(turns),
            "scored_turn": turns.astype(np.int64),
            "calm_percent": _percent(estimate.probabilities),
            "low_percent": _percent(interval.low.probabilities),
            "high_percent": _percent(interval.high.probabilities),
            "sessions": _remaining(ends["at"], turns),
            "users": _remaining(ends.group_by("user_id").agg(pl.col("at").max())["at"], turns),
        },
        schema=_SCHEMA,
        nan_to_null=True,
    )
    least = max(policy.anonymity.min_sessions, policy.anonymity.min_users)
    left = (sessions.height - _remaining(ends["at"], turns + 1)) // least
    return steps.filter(np.diff(left, prepend=-1) > 0)


def _percent(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """At the start, where all are calm, and at each step."""
    return np.insert(share, 0, 1.0) * _PERCENT


def _remaining(ends: pl.Series, turns: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many have not ended before each turn."""
    found: NDArray[np.int64] = len(ends) - np.searchsorted(ends.sort().to_numpy(), turns, side="left")
    return found


def _largest(sessions: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    """Apps with enough sessions and users, the largest first."""
    apps = sessions.group_by("app_id").agg(sessions=pl.len(), users=pl.col("user_id").n_unique())
    enough = apps.filter(
        pl.col("sessions") >= policy.anonymity.min_sessions, pl.col("users") >= policy.anonymity.min_users
    )
    return enough.sort("sessions", "app_id", descending=[True, False])["app_id"].head(policy.escalation.apps).to_list()


def standings(sessions: pl.DataFrame, policy: ArchivePolicy) -> list[Standing]:
    """Each of the largest apps against all others: log-rank test, corrected for the number of apps."""
    compared = []
    for app in _largest(sessions, policy):
        of_app = pl.col("app_id") == app
        own, others = sessions.filter(of_app), sessions.filter(~of_app)
        if others.is_empty() or sessions["escalated_at"].is_null().all():
            compared.append((app, own, others, 0.0, 1.0))
        else:
            test = stats.logrank(_times(own), _times(others))
            compared.append((app, own, others, float(test.statistic), float(test.pvalue)))
    if not compared:
        return []
    rates = stats.false_discovery_control([chance for *_, chance in compared])
    return [
        Standing(
            app_id=app,
            sessions=own.height,
            users=own["user_id"].n_unique(),
            escalated=own.height - own["escalated_at"].null_count(),
            escalated_percent=_escalated_percent(own),
            others_percent=_escalated_percent(others),
            median_turns=_median(own["escalated_at"]),
            false_discovery_rate=float(rate),
            # More escalations than the pooled risk would give: a positive statistic.
            faster=statistic > 0 if rate <= policy.escalation.significance else None,
        )
        for (app, own, others, statistic, _), rate in zip(compared, rates, strict=True)
    ]


def _escalated_percent(sessions: pl.DataFrame) -> float:
    return _PERCENT * (1 - sessions["escalated_at"].null_count() / sessions.height) if sessions.height else 0.0


def _median(turns: pl.Series) -> float | None:
    middle = turns.median()
    return float(middle) if isinstance(middle, int | float) else None


def faster_apps(apps: list[Standing], asked: Asked) -> Iterator[Finding]:
    """Apps whose sessions escalate sooner or more often than those of the others."""
    policy = asked.policy.escalation
    modes = ", ".join(quoted(mode) for mode in policy.escalated_modes)
    for app in apps:
        if not app.faster or app.escalated_percent < policy.growth_ratio * app.others_percent:
            continue
        yield Finding(
            title=f"Sessions of {app.app_id} escalate faster than others",
            text=(
                f"{app.escalated_percent:.1f} % of its sessions escalate, half of these by scored turn "
                f"{app.median_turns:.0f}; of the other apps' sessions {app.others_percent:.1f} % (log-rank test, false "
                f"discovery rate {app.false_discovery_rate:.2g})."
            ),
            evidence=(
                "SELECT session_id, user_id, app_id, min(turn) AS escalated_turn FROM risk_points "
                f"WHERE app_id = {quoted(app.app_id)} AND mode IN ({modes}) AND {begun(asked.period)} GROUP BY ALL"
            ),
            strength=1.0 - app.others_percent / app.escalated_percent,
        )
