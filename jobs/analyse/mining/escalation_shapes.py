"""Risk curves: what each does, and clusters of them named by what their mean curve does and how high it gets."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray
from ruptures import KernelCPD
from scipy import stats
from sklearn.cluster import KMeans

from jobs.analyse.mining.coverage import COUNTED, beyond_cell, counted, enough, percent, share
from jobs.analyse.mining.job import Finding, MiningInput
from jobs.analyse.mining.statistics import PERCENT, ByUser, Floats
from jobs.analyse.mining.wording import finding
from models.policy.archive import EscalationMining

ESCALATED = pl.col("escalated_at").is_not_null()
THIRDS = ("first_third", "middle_third", "last_third")
"""Mean risk of each, as columns."""
_WHEN = ("early", "midway", "late")
_STARTS = 4
"""Of k-means; the best is taken."""
_MAD_TO_SD = 1.4826
"""Median absolute deviation to standard deviation, of normal noise."""
_MOVING: dict[str, pl.DataType | type[pl.DataType]] = {
    "session_id": pl.String,
    **dict.fromkeys(("slope", "slope_low", "slope_high"), pl.Float64),
    **dict.fromkeys(("changes", "change_at"), pl.Int64),
    **dict.fromkeys(("change_done", "change_rise"), pl.Float64),
}


def described(points: pl.DataFrame, policy: EscalationMining) -> pl.DataFrame:
    """One row per session of `points` with its resampled curve, its slope and its first change upwards.

    Slope (risk per scored turn) and changes are null for curves that move less than `policy.min_rise`. About 0.8 ms
    for each curve that moves, of which Theil and Sen's slope takes 0.65; nothing for the rest. Of `session_id`,
    `point` from 0 on, `nth` (scored turns before it) and `risk`.
    """
    sessions = (
        points.sort("session_id", "point")
        .group_by("session_id", maintain_order=True)
        .agg("nth", "risk", moves=pl.col("risk").max() - pl.col("risk").min() >= policy.min_rise)
    )
    # Each at equally spaced places from its first to its last point, by lines between its points.
    curves = [
        np.interp(np.linspace(0.0, len(risk) - 1, policy.resampled_points), np.arange(len(risk)), risk.to_numpy())
        for risk in sessions["risk"]
    ]
    moving = [
        (session_id, *_moving(np.array(risk), np.array(nth), policy))
        for session_id, nth, risk in sessions.filter("moves").select("session_id", "nth", "risk").iter_rows()
    ]
    return sessions.select("session_id", curve=pl.Series(curves, dtype=pl.List(pl.Float64))).join(
        pl.DataFrame(moving, schema=_MOVING, orient="row"), on="session_id", how="left", maintain_order="left"
    )


def _moving(risk: Floats, nth: NDArray[np.int64], policy: EscalationMining) -> tuple[float | int | None, ...]:
    """What `_MOVING` names beside the session; the change is the first one upwards by `policy.min_rise`."""
    slope = stats.theilslopes(risk, nth, alpha=policy.confidence)
    changes = change_points(risk, policy)
    means = [float(risk[start:end].mean()) for start, end in pairwise([0, *changes, len(risk)])]
    rises = ((at, after - before) for at, (before, after) in zip(changes, pairwise(means), strict=True))
    found = next(((at, rise) for at, rise in rises if rise >= policy.min_rise), None)
    first = (None, None, None) if found is None else (int(nth[found[0]]) + 1, found[0] / len(risk), found[1])
    return float(slope.slope), float(slope.low_slope), float(slope.high_slope), len(changes), *first


def change_points(risk: Floats, policy: EscalationMining) -> list[int]:
    """Indices at which the mean of the risk changes: the cut of least squared error, each change at a price.

    PELT (Killick et al. 2012) in C by `ruptures.KernelCPD` with the linear kernel: 6 µs for 20 points, 60 for 100. The
    price is `policy.change_penalty * variance * log(points)`; the variance is that of the noise, told by the median
    difference of neighbours, so that the changes themselves do not count.
    """
    if len(risk) < 2 * policy.segment_turns:
        return []
    noise = _MAD_TO_SD * float(np.median(np.abs(np.diff(risk)))) / np.sqrt(2.0)
    penalty = policy.change_penalty * max(noise, policy.noise_floor) ** 2 * np.log(len(risk))
    found = KernelCPD(kernel="linear", min_size=policy.segment_turns).fit(risk).predict(pen=penalty)
    return [int(end) for end in found[:-1]]


def name_of(curve: Floats, policy: EscalationMining) -> str:
    """What a curve does and how high it gets: by where it passes the middle between its lowest and its highest point.

    >>> rises = np.array([0.1] * 14 + [0.5] + [0.8] * 5)
    >>> name_of(rises, EscalationMining()), name_of(rises[::-1] / 2, EscalationMining())
    ('late rise, high', 'early peak, low')
    """
    low, high = float(curve.min()), float(curve.max())
    above = curve >= (low + high) / 2
    turns = int(np.flatnonzero(~above)[-1]) + 1 if above[-1] and not above.all() else int(curve.argmax())
    when = _WHEN[min(2, 3 * turns // len(curve))]
    if high - low < policy.min_rise:
        does = "flat"
    elif above[-1] and above[0]:
        does = "dip"
    elif above[-1]:
        does = f"{when} rise"
    else:
        does = f"{when} peak"
    return f"{does}, {'high' if high >= policy.high_risk else 'low'}"


def shaped(
    sessions: pl.DataFrame, earlier: pl.DataFrame, policy: EscalationMining
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both frames, narrowed to sessions with a curve, with the column `shape`.

    K-means on the resampled curves of both periods, so that a shape means the same in each. Clusters whose mean
    curves bear the same name are one shape.
    """
    now, before = (frame.filter(pl.col("curve").is_not_null()) for frame in (sessions, earlier))
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
    rest = (before.height - pl.len()).replace(0, None)
    then = before.group_by("shape").agg(
        sessions_before=pl.len(),
        # A session has one shape: the others are those without this one.
        about_before_percent=counted(pl.min_horizontal(pl.len(), rest), pl.col("user_id").n_unique()),
    )
    table = (
        now.group_by("shape")
        .agg(*COUNTED, *share("escalated_percent", ESCALATED, scale=PERCENT))
        .join(then, on="shape", how="left")
        .with_columns(pl.col("sessions_before").fill_null(0))
        .sort("sessions", "shape", descending=[True, False])
    )
    both = pl.concat([now.select("user_id", "shape", here=True), before.select("user_id", "shape", here=False)])
    users, here = ByUser(both["user_id"]), both["here"].to_numpy()
    rates = users.share_rates(((both["shape"] == shape).to_numpy() for shape in table["shape"]), here)
    return table.with_columns(
        sessions_percent=pl.col("sessions") / max(now.height, 1) * PERCENT,
        before_percent=(pl.col("sessions_before") / before.height * PERCENT)
        if before.height
        else pl.lit(None, pl.Float64),
        false_discovery_rate=pl.Series(rates, dtype=pl.Float64),
    ).drop("sessions_before")


def curve_table(now: pl.DataFrame, policy: EscalationMining) -> pl.DataFrame:
    """Mean risk of each shape along the session, and the middle half of its sessions."""
    steps = pl.Series(np.linspace(0, PERCENT, policy.resampled_points))
    long = now.select("shape", "session_id", "user_id", done_percent=pl.lit(steps.implode()).first(), risk="curve")
    return (
        long.explode("done_percent", "risk")
        .group_by("shape", "done_percent")
        .agg(
            mean_risk=pl.col("risk").mean(),
            quarter_below=pl.col("risk").quantile(0.25, "linear"),
            quarter_above=pl.col("risk").quantile(0.75, "linear"),
            sessions=COUNTED[0],
            users=COUNTED[1],
        )
        .with_columns(about_quarter_below=beyond_cell(0.25), about_quarter_above=beyond_cell(0.75))
        .sort("shape", "done_percent")
    )


def growing(shapes: pl.DataFrame, now: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """Shapes that are no longer as rare as in the earlier period; flat low ones are no finding."""
    policy = asked.policy.escalation
    significant = shapes.filter(
        pl.col("false_discovery_rate") <= policy.significance,
        pl.col("sessions_percent") >= pl.col("before_percent") * policy.growth_ratio,
        pl.col("shape") != "flat, low",
        enough(asked.policy.anonymity),
    )
    columns = ("shape", "sessions_percent", "before_percent", "about_before_percent")
    for shape, here, before, part in significant.select(columns).iter_rows():
        of_shape = now.filter(pl.col("shape") == shape)
        alike = _alike(_curves(of_shape, policy.resampled_points).mean(axis=0))
        # DuckDB and Polars both read it.
        found = now.filter(pl.sql_expr(alike))
        right = found.filter(pl.col("shape") == shape).height
        yield finding(
            "growing_shape",
            asked.period,
            strength=1.0 - before / here,
            shares=(percent(before, part),),
            shape=shape,
            here=here,
            found=found.height,
            recall=right / of_shape.height,
            precision=right / max(1, found.height),
            rules=policy,
            alike_sql=alike,
        )


def _alike(mean: Floats) -> str:
    """Condition: the thirds of a session lie above and below a middle as those of the mean curve do."""
    thirds = [float(part.mean()) for part in np.array_split(mean, len(THIRDS))]
    middle = (min(thirds) + max(thirds)) / 2
    return " AND ".join(
        f"{name} {'>=' if risk >= middle else '<'} {middle:.2f}" for name, risk in zip(THIRDS, thirds, strict=True)
    )
