"""Drift: the period against the weeks before it, and whether the scorer's probabilities still come true.

Turns of one session depend on each other, so a session is one observation: of what is measured at turns, its mean.
Sessions of one user do, too: tests take users as the unit (`drift_shifts`).
Languages are not archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from jobs.analyse.mining.anonymity import ABOUT, ABOUT_TYPE, part_of
from jobs.analyse.mining.drift_measures import calibration
from jobs.analyse.mining.drift_shifts import by_day, compared, findings
from jobs.analyse.mining.job import ALL_APPS, Frames, Job, JobFindings, MiningInput, Period, Shown, about, figure
from jobs.shared.intervals import wilson
from models.policy.archive import ArchivePolicy, DriftMining

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from jobs.analyse.mining.tables import Tables

_ABOUT = {f"{ABOUT}{cell}": ABOUT_TYPE for cell in ("right_ratio", "right_low", "right_high")}
_WEEKS: dict[str, pl.DataType | type[pl.DataType]] = {
    "week": pl.Date, "model": pl.String, "labels": pl.Int64, "sessions": pl.Int64, "users": pl.Int64,
    "mean_probability": pl.Float64, "right_ratio": pl.Float64, "right_low": pl.Float64, "right_high": pl.Float64,
    "brier": pl.Float64, "calibration_error": pl.Float64, **_ABOUT,
}  # fmt: skip
_BINS: dict[str, pl.DataType | type[pl.DataType]] = {
    "probability_from": pl.Float64, "mean_probability": pl.Float64, "right_ratio": pl.Float64, "right_low": pl.Float64,
    "right_high": pl.Float64, "labels": pl.Int64, "sessions": pl.Int64, "users": pl.Int64, **_ABOUT,
}  # fmt: skip
_DIGITS = 3
_CONFIDENCE = 0.95


def calibrated(labels: pl.DataFrame, policy: DriftMining) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Calibration by week, reliability by bin of probability, and what the reader must know.

    Args:
        labels: A row for each labelled alert: `fired_at`, `model`, `probability`, `escalating` (0 or 1).
        policy: How many labels a week needs, and the bins.
    """
    weeks, bins = pl.DataFrame(schema=_WEEKS), pl.DataFrame(schema=_BINS)
    if not labels.height:
        return weeks, bins, ["No labelled alert has a probability: nothing tells whether probabilities come true."]
    labels = labels.with_columns(
        week=pl.col("fired_at").dt.truncate("1w").dt.date(), model=pl.col("model").fill_null("")
    )
    rows = [
        {"week": week, "model": model, **_label_shares(of_week, policy)}
        for (week, model), of_week in labels.sort("week", "model").group_by("week", "model", maintain_order=True)
    ]
    weeks = pl.DataFrame(rows, schema=_WEEKS)
    few = weeks.filter(pl.col("labels") < policy.min_labels).height
    notes = (
        [f"{few} of {weeks.height} weeks have too few labels (below {policy.min_labels}) to tell of calibration."]
        if few
        else []
    )
    if labels.height < policy.min_labels:
        return weeks, bins, notes
    step = 1 / policy.calibration_bins
    placed = labels.with_columns(
        bin=(pl.col("probability") / step).floor().clip(0, policy.calibration_bins - 1).cast(pl.Int64)
    )
    bins = pl.DataFrame(
        [
            {"probability_from": round(number * step, _DIGITS), **_share(of_bin)}
            for (number,), of_bin in placed.sort("bin").group_by("bin", maintain_order=True)
        ],
        schema=_BINS,
    )
    return weeks, bins, notes


def _share(labels: pl.DataFrame) -> dict[str, Any]:
    right = int(labels["escalating"].sum())
    low, high = map(float, wilson(right, labels.height, _CONFIDENCE))
    part = part_of(labels, pl.col("escalating") > 0)
    return {
        "labels": labels.height, "sessions": labels["session_id"].n_unique(), "users": labels["user_id"].n_unique(),
        "mean_probability": _rounded(labels["probability"].to_numpy().mean()),
        "right_ratio": _rounded(right / labels.height), "right_low": _rounded(low), "right_high": _rounded(high),
        **dict.fromkeys(_ABOUT, part),
    }  # fmt: skip


def _label_shares(labels: pl.DataFrame, policy: DriftMining) -> dict[str, Any]:
    shares = _share(labels)
    if labels.height < policy.min_labels:
        return shares
    outcomes = labels["escalating"].to_numpy().astype(np.float64)
    found = calibration(labels["probability"].to_numpy(), outcomes, policy.calibration_bins)
    return {**shares, "brier": _rounded(found.brier), "calibration_error": _rounded(found.error)}


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    turns, points = tables["turns"], tables["risk_points"]
    of_user = turns.role == "user"
    sessions = turns.group_by("session_id", "day").agg(
        user_id=turns.user_id.min(),
        app_id=turns.app_id.min(),
        turns=turns.count().cast("double"),
        user_turn_bytes=turns.content_bytes.mean(where=of_user),
        latency_s=(turns.appended_at.epoch_seconds() - turns.timestamp.epoch_seconds()).cast("double").mean(),
    )
    risks = points.group_by("session_id").agg(mean_risk=points.risk.mean(), peak_risk=points.risk.max())
    topics = tables["topics"]
    counted = topics.group_by("session_id").agg(topics=topics.count().cast("double"))
    profiles = tables["profiles"]
    latest = profiles.select("session_id", "mode", "score")
    wide = sessions.left_join(risks, "session_id").drop("session_id_right")
    wide = wide.left_join(counted, "session_id").drop("session_id_right")
    wide = wide.left_join(latest, "session_id").drop("session_id_right")
    signals = profiles.select("session_id", "day", signal=profiles.signals.unnest())
    return {
        "sessions": wide.mutate(lot=wide.session_id.hexdigest("md5")),
        "signals": signals.select(
            "session_id", "day", name=signals.signal["name"], value=signals.signal["value"].cast("double")
        ),
        "labels": _labels(tables),
    }


def _labels(tables: Tables) -> ir.Table:
    labels, alerts = tables["alert_labels"], tables["alerts"]
    whose = alerts.select("alert_id", "user_id")
    known = labels.filter(labels.escalating.notnull() & labels.probability.notnull())
    known = known.inner_join(whose, "alert_id")
    return known.select(
        "session_id", "user_id", "app_id", "day", "fired_at", "model", "probability",
        escalating=known.escalating.cast("int64"),
    )  # fmt: skip


def _refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row for each session, with the same ones kept of a crowded day in whatever order they come."""
    sessions = frames["sessions"].sort("lot").group_by("day", maintain_order=True)
    sessions_kept = sessions.head(policy.drift.most_sessions_per_day).drop("lot")
    signals = frames["signals"].join(sessions_kept.select("session_id"), on="session_id", how="semi")
    wide = signals.with_columns(name="signal_" + pl.col("name")).pivot("name", index="session_id", values="value")
    if signals.height:
        sessions_kept = sessions_kept.join(wide, on="session_id", how="left")
    seen = frames["sessions"].group_by("day").agg(of_sessions=pl.len())
    return {"sessions": sessions_kept.join(seen, on="day"), "labels": frames["labels"]}


def _find(frames: Frames, asked: MiningInput) -> JobFindings:
    policy, since = asked.policy.drift, asked.period.since
    before = Period(since - timedelta(days=policy.baseline_days), since - timedelta(days=1))
    earlier = asked.parts(before)
    here = frames["sessions"]
    there = earlier.get("sessions", here.clear())
    everything = pl.concat([there, here], how="diagonal_relaxed").with_columns(here=pl.col("day") >= since)
    tests = compared(everything, asked.policy)
    days = by_day(everything, asked.policy)
    labels = [frame for frame in (earlier.get("labels"), frames.get("labels")) if frame is not None]
    weeks, bins, shares = calibrated(pl.concat(labels, how="diagonal_relaxed") if labels else pl.DataFrame(), policy)
    notes = _notes(here, there, asked.policy) + shares
    shifted = tests.filter(pl.col("shifted"))
    counts = about(here)
    figures = [
        figure(
            "shifted_measures",
            float(shifted.height),
            f"measures that moved, of {tests.height} compared (all apps together, and each by itself)",
            counts,
            better="lower",
        ),
        figure(
            "highest_psi",
            _highest(tests),
            "largest stability index of a measure over all apps; 0.2 and more is a shift",
            counts,
            better="lower",
        ),
    ]
    return JobFindings(
        figures=figures,
        findings=findings(shifted, asked.period, before),
        tables={
            "measures": Shown("What moved", _MEASURES_MEANING, tests),
            "days": Shown("Day by day", _DAYS_MEANING, days),
            "calibration": Shown("Do alerts' probabilities come true", _CALIBRATION_MEANING, weeks),
            "reliability": Shown("Probability and outcome", _RELIABILITY_MEANING, bins),
        },
        notes=notes,
    )


_MEASURES_MEANING = (
    "Each measure of the period's sessions against the baseline's. PSI: below 0.1 stable, above 0.2 shifted; beside it "
    "what chance alone gives at these sizes. AUC: how often a session of now is above one of before. p-values are "
    "those of users, not of sessions, and corrected for all tests of the run; a shift needs one of them and an effect "
    "that matters."
)
_DAYS_MEANING = (
    "Stability index of each day's sessions against the whole baseline, over all apps; days with too few sessions to "
    "tell are left out."
)
_CALIBRATION_MEANING = (
    "By week of the alert and version of the scorer. Only alerts are labelled: this tells of probabilities above the "
    "threshold, not of sessions that raised none."
)
_RELIABILITY_MEANING = "Share of alerts that were right, with its 95 % interval (Wilson), by the probability they had."


def _highest(tests: pl.DataFrame) -> float | None:
    overall = tests.filter(pl.col("app_id") == ALL_APPS)["psi"]
    return round(float(overall.max()), 3) if overall.len() else None  # type: ignore[arg-type]


def _notes(here: pl.DataFrame, there: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    notes = []
    least = policy.drift.min_sessions
    for name, frame in (("baseline", there), ("period", here)):
        if frame.height < least:
            notes.append(f"The {name} has fewer than {least} sessions: nothing is compared.")
    cut = pl.concat([there, here], how="diagonal_relaxed").filter(
        pl.col("of_sessions") > policy.drift.most_sessions_per_day
    )
    if cut.height:
        notes.append(
            f"{cut['day'].n_unique()} days have more than {policy.drift.most_sessions_per_day} sessions: so many were "
            "drawn of each."
        )
    return notes


JOB = Job(
    name="drift",
    title="Drift",
    question="Are conversations, and what the scorer makes of them, as they were in the weeks before?",
    grouped="session",
    reads=("turns", "risk_points", "profiles", "topics", "alerts", "controls"),
    version=1,
    heavy=_heavy,
    refine=_refine,
    find=_find,
)
