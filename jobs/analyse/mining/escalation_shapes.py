"""Clusters of risk curves, named by what their mean curve does and how high it gets."""

# ruff: noqa: S608 - days are dates, texts are quoted

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from jobs.analyse.mining.anonymity import beyond_cell, counted, shown_percent, smaller_side
from jobs.analyse.mining.job import Finding, MiningInput, begun
from jobs.analyse.mining.statistics import ByUser, false_discovery_rates
from models.policy.archive import EscalationMining

Floats = NDArray[np.float64]
THIRDS = ("first_third", "middle_third", "last_third")
"""Mean risk of each, as columns."""
_WHEN = ("early", "midway", "late")
_STARTS = 4
"""Of k-means; the best is taken."""
_PERCENT = 100
_ESCALATED = pl.col("escalated_at").is_not_null()


def name_of(curve: Floats, policy: EscalationMining) -> str:
    """What a curve does and how high it gets: by where it passes the middle between its lowest and its highest point.

    >>> rises = np.array([0.1] * 14 + [0.5] + [0.8] * 5)
    >>> name_of(rises, EscalationMining()), name_of(rises[::-1] / 2, EscalationMining())
    ('late rise, high', 'early peak, low')
    """
    low, high = float(curve.min()), float(curve.max())
    above = curve >= (low + high) / 2
    if high - low < policy.min_rise:
        does = "flat"
    elif above[-1] and above[0]:
        does = "dip"
    elif above[-1]:
        does = f"{_WHEN[_third(int(np.flatnonzero(~above)[-1]) + 1, len(curve))]} rise"
    else:
        does = f"{_WHEN[_third(int(curve.argmax()), len(curve))]} peak"
    return f"{does}, {'high' if high >= policy.high_risk else 'low'}"


def _third(index: int, of: int) -> int:
    return min(2, 3 * index // of)


def shaped(
    sessions: pl.DataFrame, earlier: pl.DataFrame, policy: EscalationMining
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both frames, narrowed to sessions with a curve, with the column `shape`.

    K-means on the resampled curves of both periods, so that a shape means the same in each. Clusters whose mean
    curves bear the same name are one shape.
    """
    now, before = (
        frame.filter(pl.col("curve").is_not_null()) if frame.width else pl.DataFrame(schema=sessions.schema)
        for frame in (sessions, earlier)
    )
    curves = _curves(pl.concat([now.select("curve"), before.select("curve")]), policy.resampled_points)
    if not len(curves):
        return now.with_columns(shape=pl.lit("")), before.with_columns(shape=pl.lit(""))
    clusters = min(policy.shapes, len(np.unique(curves, axis=0)))
    fitted = KMeans(n_clusters=clusters, n_init=_STARTS, random_state=0).fit(curves)
    names = np.array([name_of(centre, policy) for centre in fitted.cluster_centers_])[fitted.labels_]
    return now.with_columns(shape=pl.Series(names[: now.height])), before.with_columns(
        shape=pl.Series(names[now.height :])
    )


def _curves(frame: pl.DataFrame, points: int) -> Floats:
    return frame["curve"].explode(empty_as_null=False).to_numpy().reshape(-1, points).astype(np.float64)


def shape_table(now: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """One row per shape: how many sessions have it, how many of these escalate, and how many had it before."""
    then = before.group_by("shape").agg(
        sessions_before=pl.len(),
        # A session has one shape: the others are those without this one.
        about_before_percent=counted(pl.min_horizontal(pl.len(), _rest(before)), pl.col("user_id").n_unique()),
    )
    table = (
        now.group_by("shape")
        .agg(
            sessions=pl.len(),
            users=pl.col("user_id").n_unique(),
            escalated_percent=_ESCALATED.mean() * _PERCENT,
            about_escalated_percent=smaller_side(_ESCALATED),
        )
        .join(then, on="shape", how="left")
        .with_columns(pl.col("sessions_before").fill_null(0))
        .sort("sessions", "shape", descending=[True, False])
    )
    both = pl.concat([now.select("user_id", "shape", here=True), before.select("user_id", "shape", here=False)])
    users, here = ByUser(both["user_id"]), both["here"].to_numpy()
    chances = false_discovery_rates(
        [users.share_chance(here, (both["shape"] == shape).to_numpy()) for shape in table["shape"]]
    )
    return table.with_columns(
        sessions_percent=pl.col("sessions") / max(now.height, 1) * _PERCENT,
        before_percent=(pl.col("sessions_before") / before.height * _PERCENT)
        if before.height
        else pl.lit(None, pl.Float64),
        false_discovery_rate=pl.Series(chances, dtype=pl.Float64),
    ).drop("sessions_before")


def _rest(before: pl.DataFrame) -> pl.Expr:
    rest = before.height - pl.len()
    return pl.when(rest > 0).then(rest)


def curve_table(now: pl.DataFrame, policy: EscalationMining) -> pl.DataFrame:
    """Mean risk of each shape along the session, and the middle half of its sessions."""
    steps = pl.Series(np.linspace(0, _PERCENT, policy.resampled_points))
    long = now.select("shape", "session_id", "user_id", done_percent=pl.lit(steps.implode()).first(), risk="curve")
    return (
        long.explode("done_percent", "risk")
        .group_by("shape", "done_percent")
        .agg(
            mean_risk=pl.col("risk").mean(),
            quarter_below=pl.col("risk").quantile(0.25, "linear"),
            quarter_above=pl.col("risk").quantile(0.75, "linear"),
            sessions=pl.len(),
            users=pl.col("user_id").n_unique(),
        )
        .with_columns(about_quarter_below=beyond_cell(0.25), about_quarter_above=beyond_cell(0.75))
        .sort("shape", "done_percent")
    )


def growing(shapes: pl.DataFrame, now: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """Shapes that are no longer as rare as in the earlier period; flat low ones are no finding."""
    policy, k = asked.policy.escalation, asked.policy.anonymity
    significant = shapes.filter(
        pl.col("false_discovery_rate") <= policy.significance,
        pl.col("sessions_percent") >= pl.col("before_percent") * policy.growth_ratio,
        pl.col("shape") != "flat, low",
        (pl.col("sessions") >= k.min_sessions) & (pl.col("users") >= k.min_users),
    )
    columns = ("shape", "sessions_percent", "before_percent", "about_before_percent")
    for shape, share, before, part in significant.select(columns).iter_rows():
        of_shape = now.filter(pl.col("shape") == shape)
        alike = _alike(_curves(of_shape.select("curve"), policy.resampled_points).mean(axis=0))
        # DuckDB and Polars both read it.
        found = now.filter(pl.sql_expr(alike))
        right = found.filter(pl.col("shape") == shape).height
        yield Finding(
            title=f"More sessions with the risk curve '{shape}'",
            text=(
                f"{share:.1f} % of the sessions with a curve have this shape, {shown_percent(before, part, k)} in the "
                f"{asked.period.days} days before. The evidence are the {found.height:,} sessions whose thirds lie as "
                f"those of its mean curve do: {right / of_shape.height:.0%} of those with the shape are among them, "
                f"and {right / max(1, found.height):.0%} of them have it."
            ),
            evidence=_evidence(alike, asked),
            strength=1.0 - before / share,
        )


def _alike(mean: Floats) -> str:
    """Condition: the thirds of a session lie above and below a middle as those of the mean curve do."""
    thirds = [float(part.mean()) for part in np.array_split(mean, len(THIRDS))]
    middle = (min(thirds) + max(thirds)) / 2
    return " AND ".join(
        f"{name} {'>=' if risk >= middle else '<'} {middle:.2f}" for name, risk in zip(THIRDS, thirds, strict=True)
    )


def _evidence(alike: str, asked: MiningInput) -> str:
    means = ", ".join(f"avg(risk) FILTER (third = {n}) AS {name}" for n, name in enumerate(THIRDS, start=1))
    return (
        "WITH points AS (SELECT session_id, user_id, app_id, risk, "
        "ntile(3) OVER (PARTITION BY session_id ORDER BY turn) AS third "
        f"FROM risk_points WHERE {begun(asked.period)}) "
        f"SELECT session_id, user_id, app_id, {means} FROM points GROUP BY ALL "
        f"HAVING count(*) >= {asked.policy.escalation.min_turns} AND {alike}"
    )
