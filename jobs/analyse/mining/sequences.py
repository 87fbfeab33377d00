"""Sequences: which events follow each other in sessions, and which come before an alert.

Events are changes of the mode, signals and behaviours when they first appear, and changes of the topic
(`sequence_events`). Those of one turn stand in alphabetical order; repeats of one event in a row count once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from jobs.analyse.mining.anonymity import part_of
from jobs.analyse.mining.escalation import rounded
from jobs.analyse.mining.job import Frames, Job, JobFindings, MiningInput, Shown, figure
from jobs.analyse.mining.sequence_events import MODE, events
from jobs.analyse.mining.sequence_patterns import before_alerts, frequent_table, preceding
from jobs.analyse.mining.tables import Tables
from jobs.shared.intervals import wilson
from models.events import Mode
from models.policy.archive import ArchivePolicy, SequenceMining

if TYPE_CHECKING:
    import ibis.expr.types as ir

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


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    """Events, and a row per session with its first alert."""
    points, changes = tables["risk_points"], tables["alert_changes"]
    alerts = changes.group_by("session_id").agg(alert_turn=changes.turn.min())
    sessions = points.group_by("day", "session_id").agg(
        user_id=points.user_id.min(), app_id=points.app_id.min(), last_turn=points.turn.max()
    )
    with_alert = sessions.left_join(alerts, "session_id").drop("session_id_right")
    return {"sessions": with_alert, "events": events(tables, policy.sequences)}


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row per session with its `events` and their `turns`; `cut`: it had more than are kept."""
    most = policy.sequences.longest_sequence
    told = (
        frames["events"]
        .sort("session_id", "turn", "event")
        .filter(pl.col("event").ne_missing(pl.col("event").shift().over("session_id")))
        .group_by("session_id", maintain_order=True)
        .agg(events=pl.col("event").head(most), turns=pl.col("turn").head(most), cut=pl.len() > most)
    )
    sessions = frames["sessions"].join(told, on="session_id", how="left").sort("session_id")
    return {
        "sessions": sessions.with_columns(
            pl.col("events").fill_null(pl.lit([], pl.List(pl.String))),
            pl.col("turns").fill_null(pl.lit([], pl.List(pl.Int64))),
            pl.col("cut").fill_null(value=False),
        )
    }


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Patterns, what precedes alerts, and transitions of the mode."""
    sessions, rules = frames["sessions"], asked.policy.sequences
    before = before_alerts(sessions, asked.policy)
    changed = sessions.filter(pl.col("events").list.len() > 0)
    return JobFindings(
        figures=[
            figure(
                "events_per_session",
                round(float(sessions["events"].list.len().sum()) / max(sessions.height, 1), 2),
                "Changes of mode and topic, and signals that appear, per session.",
                {"sessions": sessions.height, "users": sessions["user_id"].n_unique()},
            ),
            figure(
                "sessions_with_events_percent",
                round(100 * changed.height / max(sessions.height, 1), 2),
                "Sessions in which anything changes.",
                {"sessions": sessions.height, "users": sessions["user_id"].n_unique()},
                part=part_of(sessions, pl.col("events").list.len() > 0),
            ),
        ],
        findings=list(preceding(before, asked)),
        tables={
            "before_alerts": Shown(
                "What comes before an alert",
                f"Patterns among the last {rules.before_alert} events before the first alert, against the same place "
                "in sessions without one; → means later, with anything in between.",
                rounded(before),
            ),
            "patterns": Shown(
                "Frequent patterns",
                "In whole sessions; none is part of a longer one in almost the same sessions. Beside them how many of "
                "the sessions alert at any time, with the pattern and without; long sessions have more of both.",
                rounded(frequent_table(sessions, asked.policy)),
            ),
            "transitions": Shown(
                "What follows a mode",
                "Share of the stays in a mode after which another one, or the end, comes next; with its interval, and "
                "the share if it did not depend on the mode.",
                rounded(transition_table(sessions, rules)),
                within=("mode",),
            ),
        },
        notes=[
            "Refusals are not archived by themselves: 'first probing' is the user's first rephrasing of what was said.",
            "Tests take users as the unit.",
            "Intervals of transitions take stays as independent; those of one session are not quite.",
        ],
    )


JOB = Job(
    name="sequences",
    title="Sequences",
    question="What follows what in sessions, and what comes before an alert?",
    grouped="session",
    reads=("risk_points", "profiles", "topics", "alerts"),
    version=1,
    heavy=heavy,
    refine=refine,
    find=find,
)
