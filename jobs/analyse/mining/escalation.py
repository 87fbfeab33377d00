"""Escalation: which shapes risk curves have, where they turn, and how soon sessions escalate.

Of each session the archive's engine gives its curve (at most `curve_points` points), when it escalated and when it
alerted; slopes, changes and resampled curves are made day by day, shapes and survival over the period. Turns are
counted as scored turns, which by default are the user's. A session escalates with its first turn in one of
`escalated_modes` or with its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import ibis
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors as cs
from ruptures import KernelCPD
from scipy import stats

from jobs.analyse.mining.anonymity import ABOUT_TYPE, beyond, part_of, smaller_side
from jobs.analyse.mining.escalation_shapes import THIRDS, curve_table, growing, shape_table, shaped
from jobs.analyse.mining.escalation_survival import AppComparison, app_comparisons, faster_apps, survival_table
from jobs.analyse.mining.job import Figure, Frames, Job, JobFindings, MiningInput, Shown, about, figure
from jobs.analyse.mining.tables import Tables
from models.policy.archive import ArchivePolicy, EscalationMining

if TYPE_CHECKING:
    import ibis.expr.types as ir

Floats = NDArray[np.float64]
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "session_id": pl.String,
    "curve": pl.List(pl.Float64),
    "slope": pl.Float64,
    "slope_low": pl.Float64,
    "slope_high": pl.Float64,
    "changes": pl.Int64,
    "change_at": pl.Int64,
    "change_done": pl.Float64,
    "change_rise": pl.Float64,
}
_MAD_TO_SD = 1.4826
"""Median absolute deviation to standard deviation, of normal noise."""


class RiskRise(NamedTuple):
    """Where the risk of a session turns upwards for the first time: the point's index, and by how much."""

    point: int
    rise: float


def described(points: pl.DataFrame, policy: EscalationMining) -> pl.DataFrame:
    """One row per session of `points` with its resampled curve, its slope and its first change upwards.

    Slope (risk per scored turn) and changes are null for curves that move less than `policy.min_rise`. About 0.8 ms
    for each curve that moves, of which Theil and Sen's slope takes 0.65; nothing for the rest.

    Args:
        points: `session_id`, `point` from 0 on, `nth` (scored turns before it), `risk`.
        policy: What is a rise.
    """
    if points.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    points = points.sort("session_id", "point")
    sessions = points.group_by("session_id", maintain_order=True).agg(length=pl.len())
    lengths = sessions["length"].to_numpy().astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    risk, nth = points["risk"].to_numpy(), points["nth"].to_numpy()
    curves = resampled(risk, starts, lengths, policy.resampled_points)
    moves = np.maximum.reduceat(risk, starts) - np.minimum.reduceat(risk, starts) >= policy.min_rise
    rows = [
        {"session_id": session_id, **_moving(risk[start:end], nth[start:end], policy)}
        for session_id, start, end in zip(
            sessions["session_id"].filter(pl.Series(moves)), starts[moves], (starts + lengths)[moves], strict=True
        )
    ]
    moving = pl.DataFrame(rows, schema={name: kind for name, kind in _SCHEMA.items() if name != "curve"})
    shapes = sessions.select("session_id", curve=pl.Series(curves, dtype=pl.List(pl.Float64)))
    return shapes.join(moving, on="session_id", how="left", maintain_order="left").select(*_SCHEMA)


def resampled(risk: Floats, starts: NDArray[np.int64], lengths: NDArray[np.int64], points: int) -> Floats:
    """Every curve at equally spaced places from its first to its last point, by lines between its points.

    Returns:
        `(n_sessions, points)`.
    """
    places = np.linspace(0.0, 1.0, points)[None, :] * (lengths[:, None] - 1)
    before = np.floor(places).astype(np.int64)
    after = np.minimum(before + 1, lengths[:, None] - 1)
    weight = places - before
    lines: Floats = risk[starts[:, None] + before] * (1 - weight) + risk[starts[:, None] + after] * weight
    return lines


def _moving(risk: Floats, nth: NDArray[np.int64], policy: EscalationMining) -> dict[str, float | int | None]:
    slope = stats.theilslopes(risk, nth, alpha=policy.confidence)
    changes = change_points(risk, policy)
    rise = first_rise(risk, changes, policy.min_rise)
    return {
        "slope": float(slope.slope),
        "slope_low": float(slope.low_slope),
        "slope_high": float(slope.high_slope),
        "changes": len(changes),
        "change_at": None if rise is None else int(nth[rise.point]) + 1,
        "change_done": None if rise is None else rise.point / len(risk),
        "change_rise": None if rise is None else rise.rise,
    }


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


def first_rise(risk: Floats, changes: list[int], min_rise: float) -> RiskRise | None:
    """The first change after which the mean is higher by `min_rise` or more; None if it never is."""
    bounds = [0, *changes, len(risk)]
    means = [float(risk[start:end].mean()) for start, end in pairwise(bounds)]
    for n, change in enumerate(changes):
        if means[n + 1] - means[n] >= min_rise:
            return RiskRise(change, means[n + 1] - means[n])
    return None


_PERCENT = 100
_SLOPE_STEP = 0.1
"""Width of a bar of slopes, risk over the session."""
_DONE_STEP = 10
"""Width of a bar of changes, percent of a session."""
_ESCALATED, _RISING = pl.col("escalated_at").is_not_null(), pl.col("slope_low") > 0
_COUNTED = (pl.len().alias("sessions"), pl.col("user_id").n_unique().alias("users"))


def figures_of(sessions: pl.DataFrame, curves: pl.DataFrame) -> list[Figure]:
    """Headline numbers.

    Args:
        sessions: All of the period with a scored turn.
        curves: Those with a curve.
    """
    escalated = sessions.filter(_ESCALATED)
    led = curves.filter(pl.col("change_at") <= pl.col("alerted_at"))
    return [
        _share(
            "escalated_sessions_percent",
            _ESCALATED,
            sessions,
            "Sessions that reached an escalated mode or alerted.",
        ),
        _median(
            "median_turns_to_escalation",
            escalated["escalated_at"],
            escalated,
            "Scored turns until escalation, of sessions that escalate.",
            better="higher",
        ),
        _median(
            "median_turns_from_change_to_alert",
            led["alerted_at"] - led["change_at"],
            led,
            "Scored turns from the first upward change of the risk to the alert, where the change came first.",
            better="lower",
        ),
        _share("rising_sessions_percent", _RISING, curves, "Sessions whose risk surely rises (interval of its slope)."),
    ]


def _share(name: str, holds: pl.Expr, whole: pl.DataFrame, meaning: str) -> Figure:
    return figure(
        name,
        round(_PERCENT * whole.filter(holds).height / whole.height, 2) if whole.height else None,
        meaning,
        about(whole),
        better="lower",
        part=part_of(whole, holds),
    )


def _median(
    name: str, turns: pl.Series, of: pl.DataFrame, meaning: str, *, better: Literal["higher", "lower"]
) -> Figure:
    middle = turns.median()
    return figure(
        name,
        float(middle) if isinstance(middle, int | float) else None,
        meaning,
        about(of),
        better=better,
        part=beyond(about(of)),
    )


def app_table(apps: Sequence[AppComparison]) -> pl.DataFrame:
    """One row per app."""
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "app_id": pl.String,
        "sessions": pl.Int64,
        "users": pl.Int64,
        "escalated": pl.Int64,
        "escalated_percent": pl.Float64,
        "others_percent": pl.Float64,
        "median_turns": pl.Float64,
        "false_discovery_rate": pl.Float64,
        "faster": pl.Boolean,
        "about_escalated_percent": ABOUT_TYPE,
        "about_others": ABOUT_TYPE,
    }
    return (
        pl.DataFrame(apps, schema=schema, orient="row")
        .with_columns(about_others_percent="about_escalated_percent")
        .drop("escalated", "about_others")
    )


def slope_table(curves: pl.DataFrame) -> pl.DataFrame:
    """Sessions by their slope over the whole session, in steps."""
    rise = pl.col("slope") * pl.col("scored")
    return (
        curves.filter(pl.col("slope").is_not_null())
        .group_by(rise_from=(rise / _SLOPE_STEP).floor() * _SLOPE_STEP)
        .agg(
            *_COUNTED,
            surely_rising_percent=_RISING.mean() * _PERCENT,
            about_surely_rising_percent=smaller_side(_RISING),
        )
        .with_columns(pl.col("rise_from").round(2), rise_to=(pl.col("rise_from") + _SLOPE_STEP).round(2))
        .sort("rise_from")
    )


def change_table(curves: pl.DataFrame) -> pl.DataFrame:
    """Sessions by where their risk turns upwards first."""
    done = pl.col("change_done") * _PERCENT
    return (
        curves.filter(pl.col("change_done").is_not_null())
        .group_by(done_percent_from=(done / _DONE_STEP).floor().cast(pl.Int64) * _DONE_STEP)
        .agg(
            *_COUNTED,
            mean_rise=pl.col("change_rise").mean(),
            escalated_percent=_ESCALATED.mean() * _PERCENT,
            about_escalated_percent=smaller_side(_ESCALATED),
        )
        .with_columns(done_percent_to=pl.col("done_percent_from") + _DONE_STEP)
        .sort("done_percent_from")
    )


def rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Percents to one digit, everything else to three figures: as it is shown."""
    percents = cs.ends_with("percent") & cs.float()
    return table.with_columns(percents.round(1), (cs.float() - percents).round_sig_figs(3))


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    """A row per session, and its curve in points."""
    points = _numbered(tables["risk_points"])
    return {"sessions": _sessions(points, tables, policy), "points": _points(points, policy)}


def _numbered(points: ir.Table) -> ir.Table:
    """Scored turns with their number in the session, from 0 on, and how many there are."""
    in_order = ibis.window(group_by="session_id", order_by="turn")
    points = points.mutate(
        nth=ibis.row_number().over(in_order).cast("int64"), third=ibis.ntile(len(THIRDS)).over(in_order)
    )
    return points.mutate(scored=points.count().over(ibis.window(group_by="session_id")).cast("int64"))


def _sessions(points: ir.Table, tables: Tables, policy: ArchivePolicy) -> ir.Table:
    changes = tables["alert_changes"]
    alerts = changes.group_by("session_id").agg(alert_turn=changes.turn.min())
    points = points.left_join(alerts, "session_id").drop("session_id_right")
    escalated = points["mode"].isin([mode.value for mode in policy.escalation.escalated_modes])
    return points.group_by("day", "session_id").agg(
        user_id=points.user_id.min(),
        app_id=points.app_id.min(),
        scored=points.scored.max(),
        moded_at=points.nth.min(where=escalated) + 1,
        alerted_at=points.nth.max(where=points.turn <= points.alert_turn) + 1,
        **{name: points.risk.mean(where=points.third == n) for n, name in enumerate(THIRDS)},
    )


def _points(points: ir.Table, policy: ArchivePolicy) -> ir.Table:
    rules = policy.escalation
    long = points.filter(points.scored >= rules.min_turns)
    share = long.nth * ibis.least(long.scored, rules.curve_points) / long.scored
    long = long.mutate(point=share.floor().cast("int64"))
    return long.group_by("day", "session_id", "point").agg(nth=long.nth.min(), risk=long.risk.mean())


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row per session with all that is known of its curve."""
    curves = described(frames["points"], policy.escalation)
    sessions = (
        frames["sessions"].with_columns(escalated_at=pl.min_horizontal("moded_at", "alerted_at")).drop("moded_at")
    )
    return {"sessions": sessions.join(curves, on="session_id", how="left", maintain_order="left")}


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Shapes, survival, slopes and changes of the period."""
    rules, sessions = asked.policy.escalation, frames["sessions"]
    earlier = asked.parts(asked.period.earlier).get("sessions", pl.DataFrame())
    now, before = shaped(sessions, earlier, rules)
    shapes, apps = shape_table(now, before), app_comparisons(sessions, asked.policy)
    tables = {
        "shapes": Shown(
            "Shapes of risk curves",
            f"Sessions with at least {rules.min_turns} scored turns, clustered by their curve.",
            shapes,
        ),
        "shape_curves": Shown(
            "Mean curve of each shape", "Risk along the session, with the middle half.", curve_table(now, rules)
        ),
        "survival": Shown(
            "Sessions that have not escalated",
            "Share still calm after so many scored turns (Kaplan-Meier); sessions and users still there.",
            survival_table(sessions, asked.policy),
        ),
        "apps": Shown("Escalation by app", "Each app against all others (log-rank test).", app_table(apps)),
        "slopes": Shown(
            "Slopes of risk",
            "Theil-Sen slope of curves that move, as risk over the whole session; surely rising: interval above 0.",
            slope_table(now),
        ),
        "changes": Shown(
            "Where risk turns upwards", "First change point upwards, by share of the session.", change_table(now)
        ),
    }
    return JobFindings(
        figures=figures_of(sessions, now),
        findings=[*faster_apps(apps, asked), *growing(shapes, now, asked)],
        tables={name: table._replace(frame=rounded(table.frame)) for name, table in tables.items()},
        notes=[f"Sessions with fewer than {rules.min_turns} scored turns count in survival alone: they have no curve."],
    )


JOB = Job(
    name="escalation",
    title="Escalation",
    question="How does risk rise in sessions, and how soon?",
    grouped="session",
    reads=("risk_points", "alerts"),
    version=2,
    heavy=heavy,
    refine=refine,
    find=find,
)
