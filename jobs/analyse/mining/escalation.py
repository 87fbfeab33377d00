"""Escalation: which shapes risk curves have, where they turn, and how soon sessions escalate.

Of each session the archive's engine gives its curve (at most `curve_points` points), when it escalated and when it
alerted; slopes, changes and resampled curves are made day by day, shapes and survival over the period. Turns are
counted as scored turns, which by default are the user's. A session escalates with its first turn in one of
`escalated_modes` or with its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping

import ibis
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, about, beyond, share
from jobs.analyse.mining.escalation_shapes import (
    ESCALATED,
    THIRDS,
    curve_table,
    described,
    growing,
    shape_table,
    shaped,
)
from jobs.analyse.mining.escalation_survival import app_table, faster_apps, survival_table
from jobs.analyse.mining.job import Figure, Frames, JobFindings, MiningInput
from jobs.analyse.mining.source import Tables, beside, first_alerts
from jobs.analyse.mining.statistics import PERCENT, rounded
from jobs.analyse.mining.wording import figure, mining_job
from models.policy.archive import ArchivePolicy

_SLOPE_STEP = 0.1
"""Width of a bar of slopes, risk over the session."""
_DONE_STEP = 10
"""Width of a bar of changes, percent of a session."""
_RISING = pl.col("slope_low") > 0


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """A row per session, and its curve in points."""
    points = _numbered(tables["risk_points"])
    return {"sessions": _sessions(points, tables, policy), "points": _points(points, policy)}


def _numbered(points: ibis.Table) -> ibis.Table:
    """Scored turns with their number in the session, from 0 on, and how many there are."""
    in_order = ibis.window(group_by="session_id", order_by="turn")
    points = points.mutate(
        nth=ibis.row_number().over(in_order).cast("int64"), third=ibis.ntile(len(THIRDS)).over(in_order)
    )
    return points.mutate(scored=points.count().over(ibis.window(group_by="session_id")).cast("int64"))


def _sessions(points: ibis.Table, tables: Tables, policy: ArchivePolicy) -> ibis.Table:
    points = beside(points, first_alerts(tables))
    escalated = points["mode"].isin([mode.value for mode in policy.escalation.escalated_modes])
    return points.group_by("day", "session_id").agg(
        user_id=points.user_id.min(),
        app_id=points.app_id.min(),
        scored=points.scored.max(),
        moded_at=points.nth.min(where=escalated) + 1,
        alerted_at=points.nth.max(where=points.turn <= points.alert_turn) + 1,
        **{name: points.risk.mean(where=points.third == n) for n, name in enumerate(THIRDS)},
    )


def _points(points: ibis.Table, policy: ArchivePolicy) -> ibis.Table:
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
    earlier = asked.earlier("sessions", sessions)
    now, before = shaped(sessions, earlier, rules)
    shapes, apps = shape_table(now, before), app_table(sessions, asked.policy)
    tables = {
        "shapes": shapes,
        "shape_curves": curve_table(now, rules),
        "survival": survival_table(sessions, asked.policy),
        "apps": apps.drop("about_others"),
        "slopes": _slopes(now),
        "changes": _changes(now),
    }
    return JobFindings(
        figures=figures_of(sessions, now),
        findings=[*faster_apps(apps, asked), *growing(shapes, now, asked)],
        tables={name: rounded(table) for name, table in tables.items()},
        notes=[f"Sessions with fewer than {rules.min_turns} scored turns count in survival alone: they have no curve."],
    )


def figures_of(sessions: pl.DataFrame, curves: pl.DataFrame) -> list[Figure]:
    """Headline numbers of all sessions with a scored turn, and of those with a curve."""
    escalated, led = sessions.filter(ESCALATED), curves.filter(pl.col("change_at") <= pl.col("alerted_at"))
    to_alert = (led["alerted_at"] - led["change_at"]).median()
    escalating, rising = (
        PERCENT * whole.filter(holds).height / whole.height if whole.height else None
        for whole, holds in ((sessions, ESCALATED), (curves, _RISING))
    )
    to_escalation = escalated["escalated_at"].median()
    return [
        figure("escalated_sessions_percent", escalating, sessions, part=ESCALATED, digits=2),
        figure("median_turns_to_escalation", to_escalation, escalated, part=beyond(about(escalated))),
        figure("median_turns_from_change_to_alert", to_alert, led, part=beyond(about(led))),
        figure("rising_sessions_percent", rising, curves, part=_RISING, digits=2),
    ]


def _slopes(curves: pl.DataFrame) -> pl.DataFrame:
    """Sessions by their slope over the whole session, in steps."""
    rise = pl.col("slope") * pl.col("scored")
    return (
        curves.filter(pl.col("slope").is_not_null())
        .group_by(rise_from=(rise / _SLOPE_STEP).floor() * _SLOPE_STEP)
        .agg(*COUNTED, *share("surely_rising_percent", _RISING, scale=PERCENT))
        .with_columns(pl.col("rise_from").round(2), rise_to=(pl.col("rise_from") + _SLOPE_STEP).round(2))
        .sort("rise_from")
    )


def _changes(curves: pl.DataFrame) -> pl.DataFrame:
    """Sessions by where their risk turns upwards first."""
    done = pl.col("change_done") * PERCENT
    return (
        curves.filter(pl.col("change_done").is_not_null())
        .group_by(done_percent_from=(done / _DONE_STEP).floor().cast(pl.Int64) * _DONE_STEP)
        .agg(
            *COUNTED,
            pl.col("change_rise").mean().alias("mean_rise"),
            *share("escalated_percent", ESCALATED, scale=PERCENT),
        )
        .with_columns(done_percent_to=pl.col("done_percent_from") + _DONE_STEP)
        .sort("done_percent_from")
    )


JOB = mining_job("escalation", version=2, heavy=heavy, find=find, refine=refine)
