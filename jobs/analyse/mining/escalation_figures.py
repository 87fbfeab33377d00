"""Headline numbers and small tables of the escalation job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl
from polars import selectors as cs

from jobs.analyse.mining.anonymity import ABOUT_TYPE, beyond, part_of, smaller_side
from jobs.analyse.mining.escalation_survival import Standing
from jobs.analyse.mining.job import Figure, about

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
    return Figure(
        name=name,
        value=round(_PERCENT * whole.filter(holds).height / whole.height, 2) if whole.height else None,
        meaning=meaning,
        **about(whole),
        better="lower",
        part=part_of(whole, holds),
    )


def _median(
    name: str, turns: pl.Series, of: pl.DataFrame, meaning: str, *, better: Literal["higher", "lower"]
) -> Figure:
    middle = turns.median()
    return Figure(
        name=name,
        value=float(middle) if isinstance(middle, int | float) else None,
        meaning=meaning,
        **about(of),
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
