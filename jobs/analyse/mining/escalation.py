"""Escalation: which shapes risk curves have, where they turn, and how soon sessions escalate.

Of each session the archive's engine gives its curve (at most `curve_points` points), when it escalated and when it
alerted; slopes, changes and resampled curves are made day by day, shapes and survival over the period. Turns are
counted as scored turns, which by default are the user's. A session escalates with its first turn in one of
`escalated_modes` or with its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import ibis
import polars as pl

from jobs.analyse.mining.escalation_curves import described
from jobs.analyse.mining.escalation_figures import app_table, change_table, figures_of, rounded, slope_table
from jobs.analyse.mining.escalation_pictures import pictures
from jobs.analyse.mining.escalation_shapes import THIRDS, curve_table, growing, shape_table, shaped
from jobs.analyse.mining.escalation_survival import faster_apps, standings, survival_table
from jobs.analyse.mining.job import Asked, Found, Frames, Job, Shown
from jobs.analyse.mining.tables import Tables
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis.expr.types as ir


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
    pictures=pictures,
)
