"""Sessions that come back to topics they left, and whether those with alerts do so more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl
from scipy.stats import mannwhitneyu

from jobs.analyse.mining.anonymity import part_of, smaller_side
from jobs.analyse.mining.job import Asked, Figure, Finding, Shown, begun, figure
from jobs.analyse.mining.statistics import ByUser

_PER_TURNS = 100


class Cycling(NamedTuple):
    """What is said of it."""

    figures: Sequence[Figure]
    findings: Sequence[Finding]
    tables: Mapping[str, Shown]


def cycling(sessions: pl.DataFrame, asked: Asked) -> Cycling:
    """Count returns (A, B, then A again) of sessions.

    Args:
        sessions: One row per session of the period: `session_id, user_id, app_id, topics, turns, returns, alerted`.
        asked: The period and rules.
    """
    rated = sessions.with_columns(rate=_PER_TURNS * pl.col("returns") / pl.col("turns").clip(lower_bound=1))
    users = rated["user_id"].n_unique()
    figures = [
        figure(
            "topic_returns_per_100_turns",
            round(_PER_TURNS * int(rated["returns"].sum()) / max(1, int(rated["turns"].sum())), 2),
            "How often sessions come back to a topic that they left.",
            {"sessions": rated.height, "users": users},
            better="lower",
        ),
        figure(
            "cycling_sessions_ratio",
            round(rated.select((pl.col("returns") > 0).mean()).item() or 0.0, 4),
            "Share of sessions that come back to a topic at least once.",
            {"sessions": rated.height, "users": users},
            part=part_of(rated, pl.col("returns") > 0),
        ),
    ]
    meaning = "Returns to a topic that was left (A, B, then A again), by app and by whether the session has an alert."
    table = Shown("Topic cycling", meaning, _by_app(rated), within=("app_id",))
    return Cycling(figures, _findings(rated, asked), {"cycling": table})


def _by_app(rated: pl.DataFrame) -> pl.DataFrame:
    return (
        rated.group_by("app_id", "alerted")
        .agg(
            returns_per_session=pl.col("returns").mean().round(2),
            returns_per_100_turns=(_PER_TURNS * pl.col("returns").sum() / pl.col("turns").sum()).round(2),
            cycling_ratio=(pl.col("returns") > 0).mean().round(4),
            about_cycling_ratio=smaller_side(pl.col("returns") > 0),
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
        )
        .sort("app_id", "alerted")
    )


def _findings(rated: pl.DataFrame, asked: Asked) -> list[Finding]:
    """That alerting sessions cycle more, by the rate per turn: longer sessions have more of both.

    Of the test with sessions as independent and that of the ranks with users as the unit, the larger p-value counts.
    """
    k = max(asked.policy.anonymity.min_sessions, asked.policy.anonymity.min_users)
    sides = [rated.filter(pl.col("alerted") == each) for each in (True, False)]
    if min(side["user_id"].n_unique() for side in sides) < k:
        return []
    alerted, others = (side["rate"].to_numpy() for side in sides)
    test = mannwhitneyu(alerted, others, alternative="greater")
    more_often = float(test.statistic) / (len(alerted) * len(others))
    chance = max(
        float(test.pvalue),
        ByUser(rated["user_id"]).chance(rated["alerted"].to_numpy(), rated["rate"].rank().to_numpy()),
    )
    if chance > asked.policy.topics.significance:
        return []
    cycle = rated.filter("alerted", pl.col("returns") > 0).height
    return [
        Finding(
            title="Sessions with alerts go in circles",
            text=f"Per 100 turns they come back to a topic {alerted.mean():.1f} times, other sessions "
            f"{others.mean():.1f} times; of two sessions the one with an alert is ahead in {more_often:.0%} of pairs "
            f"(Mann-Whitney, p {chance:.2g}). {cycle:,} sessions with alerts come back at least once.",
            evidence="SELECT session_id, user_id, app_id, count(*) AS returns FROM topic_changes "  # noqa: S608
            f"WHERE {begun(asked.period)} AND cause IN ('returned', 'unpacked') "
            "AND session_id IN (SELECT session_id FROM alerts) GROUP BY ALL ORDER BY returns DESC",
            strength=round(2 * more_often - 1, 3),
        )
    ]
