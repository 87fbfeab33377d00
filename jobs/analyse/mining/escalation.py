"""Escalation: which shapes risk curves have, where they turn, and how soon sessions escalate.

Of each session the archive's engine gives its curve (at most `curve_points` points), when it escalated and when it
alerted; slopes, changes and resampled curves are made day by day, shapes and survival over the period. Turns are
counted as scored turns, which by default are the user's. A session escalates with its first turn in one of
`escalated_modes` or with its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import ibis
import polars as pl
from polars import selectors as cs

from jobs.analyse.mining.anonymity import ABOUT_TYPE, beyond, part_of, smaller_side
from jobs.analyse.mining.escalation_curves import described
from jobs.analyse.mining.escalation_shapes import THIRDS, curve_table, growing, shape_table, shaped
from jobs.analyse.mining.escalation_survival import Standing, faster_apps, standings, survival_table
from jobs.analyse.mining.job import Asked, Figure, Found, Frames, Job, Shown, about, figure
from jobs.analyse.mining.tables import Tables
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis.expr.types as ir

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


def app_table(apps: Sequence[Standing]) -> pl.DataFrame:
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


def find(frames: Frames, asked: Asked) -> Found:
    """Shapes, survival, slopes and changes of the period."""
    rules, sessions = asked.policy.escalation, frames["sessions"]
    earlier = asked.parts(asked.period.earlier).get("sessions", pl.DataFrame())
    now, before = shaped(sessions, earlier, rules)
    shapes, apps = shape_table(now, before), standings(sessions, asked.policy)
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
    return Found(
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
