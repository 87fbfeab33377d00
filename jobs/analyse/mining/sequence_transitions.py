"""Transitions from a mode: to another one, or to the end of the session."""

from __future__ import annotations

import polars as pl

from jobs.analyse.mining.comparing import wilson
from jobs.analyse.mining.sequence_events import MODE
from models.events import Mode
from models.policy.archive import SequenceMining

END = "end"
_PERCENT = 100


def transition_table(sessions: pl.DataFrame, policy: SequenceMining) -> pl.DataFrame:
    """One row per mode and what comes next, counted by stays: a stay is a run of turns in one mode.

    Beside each share Wilson's interval and the share that the next thing would have if it did not depend on the mode:
    its part of all that follows any stay, without the mode itself, which cannot follow. Every session
    begins calm; those whose events were cut have no last stay.
    """
    modes = sessions.select(
        "session_id",
        "user_id",
        "cut",
        mode=pl.concat_list(pl.lit([f"{MODE} {Mode.CALM.value}"]), "events").list.filter(
            pl.element().str.starts_with(f"{MODE} ")
        ),
    )
    stays = (
        modes.explode("mode")
        .with_columns(pl.col("mode").str.strip_prefix(f"{MODE} "))
        .with_columns(next=pl.col("mode").shift(-1).over("session_id"))
        .filter(pl.col("next").is_not_null() | ~pl.col("cut"))
        .with_columns(pl.col("next").fill_null(END))
    )
    table = (
        stays.group_by("mode", "next")
        .agg(sessions=pl.col("session_id").n_unique(), users=pl.col("user_id").n_unique(), stays=pl.len())
        .with_columns(of=pl.col("stays").sum().over("mode"), following=pl.col("stays").sum().over("next"))
        .sort("mode", "next")
    )
    following = dict(table.select("next", "following").iter_rows())
    total = table["stays"].sum()
    own = pl.col("mode").replace_strict(following, default=0, return_dtype=pl.Int64)
    low, high = wilson(table["stays"], table["of"], policy.confidence)
    return table.select(
        "mode",
        "next",
        "sessions",
        "users",
        "stays",
        share_percent=pl.col("stays") / pl.col("of") * _PERCENT,
        low_percent=pl.Series(low * _PERCENT, dtype=pl.Float64),
        high_percent=pl.Series(high * _PERCENT, dtype=pl.Float64),
        independent_percent=pl.col("following") / (total - own) * _PERCENT,
    )
