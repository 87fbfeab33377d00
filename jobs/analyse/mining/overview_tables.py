"""Tables of the overview: the funnel, risk by day, days, apps, summaries.

Each row says how many sessions and users it is about; `about_…` says it of a count inside a row, like the three
alerting sessions of a busy day.
"""

from __future__ import annotations

import polars as pl

from jobs.analyse.mining.anonymity import smaller_side
from models.events import Mode
from models.policy.archive import AnonymityPolicy, OverviewMining

_SESSIONS, _USERS = pl.len().alias("sessions"), pl.col("user_id").n_unique().alias("users")
_RANKS = {mode: rank for rank, mode in enumerate(Mode)}
_PER = 1_000


def funnel(sessions: pl.DataFrame, rules: OverviewMining, k: AnonymityPolicy) -> pl.DataFrame:
    """Sessions that came to each stage: `stage`, `sessions`, `users`, `share_ratio` of all sessions.

    A stage that all but a few of the one before came to would tell of these few: it is left out.
    """
    stages = {
        "all sessions": pl.lit(value=True),
        "any risk": pl.col("peak_risk") >= rules.any_risk,
        "watch": pl.col("mode_rank") >= _RANKS[Mode.WATCH],
        "elevated": pl.col("mode_rank") >= _RANKS[Mode.ELEVATED],
        "alert": pl.col("alerts") > 0,
        "critical": (pl.col("mode_rank") >= _RANKS[Mode.CRITICAL]) | (pl.col("critical_alerts") > 0),
        "labelled right": pl.col("right_labels") > 0,
    }
    rows: list[pl.DataFrame] = []
    for stage, reached in stages.items():
        row = sessions.filter(reached).select(pl.lit(stage).alias("stage"), _SESSIONS, _USERS)
        if not rows or not 0 < abs(rows[-1]["sessions"][0] - row["sessions"][0]) < k.min_sessions:
            rows.append(row)
    return pl.concat(rows).with_columns(share_ratio=pl.col("sessions") / max(sessions.height, 1))


def risk_by_day(sessions: pl.DataFrame, rules: OverviewMining) -> pl.DataFrame:
    """Quantiles of peak risk: `day`, `quantile`, `peak_risk`, `sessions` and `users` at or above it.

    A quantile that few sessions reach is these sessions' own risk: by their number the row is shown or not.
    """
    scored = sessions.filter(pl.col("peak_risk").is_not_null())
    at = [
        scored.with_columns(
            peak=pl.col("peak_risk").quantile(quantile, interpolation="lower").over("day"),
        )
        .filter(pl.col("peak_risk") >= pl.col("peak"))
        .group_by("day")
        .agg(
            pl.lit(f"{quantile:.0%} lie below").alias("quantile"),
            pl.col("peak").first().round(4).alias("peak_risk"),
            _SESSIONS,
            _USERS,
        )
        for quantile in rules.risk_quantiles
    ]
    return pl.concat(at).sort("day", "quantile") if at else scored.clear()


def by_day(sessions: pl.DataFrame) -> pl.DataFrame:
    """Of each day: sessions, users, turns, megabytes, sessions that alerted, alerts per 1,000 sessions."""
    return _counted(sessions, "day").sort("day")


def by_app(sessions: pl.DataFrame) -> pl.DataFrame:
    """The same of each app, the one with the most sessions first."""
    return _counted(sessions, "app_id").sort(["sessions", "app_id"], descending=[True, False])


def _counted(sessions: pl.DataFrame, by: str) -> pl.DataFrame:
    alerting = pl.col("alerts") > 0
    return sessions.group_by(by).agg(
        _SESSIONS,
        _USERS,
        pl.col("turns").sum(),
        (pl.col("turns").mean().round(1)).alias("turns_per_session"),
        (pl.col("json_bytes").sum() / 1_000_000).round(2).alias("json_mb"),
        alerting.sum().alias("alerting_sessions"),
        (_PER * pl.col("alerts").sum() / pl.len()).round(2).alias("alerts_per_1000_sessions"),
        about_alerting_sessions=smaller_side(alerting),
        about_alerts_per_1000_sessions=smaller_side(alerting),
    )


def by_summariser(summaries: pl.DataFrame) -> pl.DataFrame:
    """Of each summariser: its summaries, and tokens before and after."""
    return (
        summaries.group_by("summarised_by")
        .agg(
            pl.col("session_id").n_unique().alias("sessions"),
            _USERS,
            pl.col("summaries").sum(),
            pl.col("tokens_before").sum(),
            pl.col("tokens_after").sum(),
        )
        .with_columns(tokens_saved=pl.col("tokens_before") - pl.col("tokens_after"))
        .sort(["summaries", "summarised_by"], descending=[True, False])
    )
