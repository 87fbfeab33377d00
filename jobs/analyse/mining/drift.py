"""Drift: the period against the weeks before it, and whether the scorer's probabilities still come true.

Turns of one session depend on each other, so a session is one observation: of what is measured at turns, its mean.
Sessions of one user do, too: tests take users as the unit (`drift_shifts`).
Languages are not archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import ibis
import polars as pl

from jobs.analyse.mining.coverage import ABOUT, ABOUT_TYPE, about, part_of
from jobs.analyse.mining.drift_shifts import by_day, compared, findings
from jobs.analyse.mining.job import ALL_APPS, Frames, JobFindings, MiningInput, Period
from jobs.analyse.mining.source import Tables, beside
from jobs.analyse.mining.wording import figure, mining_job
from jobs.shared.intervals import wilson
from models.policy.archive import ArchivePolicy, DriftMining

_ABOUT = {f"{ABOUT}{cell}": ABOUT_TYPE for cell in ("right_ratio", "right_low", "right_high")}
_SHARES: dict[str, pl.DataType | type[pl.DataType]] = {
    "labels": pl.Int64, "sessions": pl.Int64, "users": pl.Int64, "mean_probability": pl.Float64,
    "right_ratio": pl.Float64, "right_low": pl.Float64, "right_high": pl.Float64, **_ABOUT,
}  # fmt: skip
_WEEKS = {"week": pl.Date, "model": pl.String, **_SHARES, "brier": pl.Float64, "calibration_error": pl.Float64}
_BINS = {"probability_from": pl.Float64, **_SHARES}
_DIGITS = 3


def calibrated(labels: pl.DataFrame, policy: DriftMining) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Calibration by week, reliability by bin of probability, and what the reader must know.

    Of labelled alerts: `session_id`, `user_id`, `fired_at`, `model`, `probability`, `escalating` (0 or 1).
    """
    weeks, bins = pl.DataFrame(schema=_WEEKS), pl.DataFrame(schema=_BINS)
    if not labels.height:
        return weeks, bins, ["No labelled alert has a probability: nothing tells whether probabilities come true."]
    labels = labels.with_columns(
        week=pl.col("fired_at").dt.truncate("1w").dt.date(),
        model=pl.col("model").fill_null(""),
        bin=(pl.col("probability") * policy.calibration_bins).cast(pl.Int64).clip(0, policy.calibration_bins - 1),
    )
    by_week = labels.sort("week", "model").group_by("week", "model", maintain_order=True)
    weeks = pl.DataFrame(
        [{"week": week, "model": model, **_of_week(of_week, policy)} for (week, model), of_week in by_week],
        schema=_WEEKS,
    )
    few = weeks.filter(pl.col("labels") < policy.min_labels).height
    too_few = f"{few} of {weeks.height} weeks have too few labels (below {policy.min_labels}) to tell of calibration."
    if labels.height >= policy.min_labels:
        rows = [
            {"probability_from": round(number / policy.calibration_bins, _DIGITS), **_share(of_bin)}
            for (number,), of_bin in labels.sort("bin").group_by("bin", maintain_order=True)
        ]
        bins = pl.DataFrame(rows, schema=_BINS)
    return weeks, bins, [too_few] if few else []


def _share(labels: pl.DataFrame) -> dict[str, Any]:
    right = int(labels["escalating"].sum())
    low, high = wilson(right, labels.height)
    numbers = {
        "mean_probability": labels["probability"].mean(),
        "right_ratio": right / labels.height,
        "right_low": low,
        "right_high": high,
    }
    return {
        "labels": labels.height,
        **about(labels),
        **{name: round(float(number), _DIGITS) for name, number in numbers.items()},  # type: ignore[arg-type]
        **dict.fromkeys(_ABOUT, part_of(labels, pl.col("escalating") > 0)),
    }


def _of_week(labels: pl.DataFrame, policy: DriftMining) -> dict[str, Any]:
    """The shares, and with enough labels how well their probabilities came true."""
    brier, error = calibration(labels) if labels.height >= policy.min_labels else (None, None)
    return {**_share(labels), "brier": brier, "calibration_error": error}


def calibration(labels: pl.DataFrame) -> tuple[float, float]:
    """How well probabilities of labels came true.

    Returns:
        Mean squared distance of probability and outcome: 0 is perfect (Brier 1950). Expected calibration error:
        distance of mean probability and share in each `bin`, weighed by its labels (Naeini et al. 2015).
    """
    distance = pl.col("probability") - pl.col("escalating")
    gaps = labels.group_by("bin").agg(gap=distance.sum().abs())["gap"].sum()
    brier: float = labels.select((distance**2).mean()).item()
    return round(brier, _DIGITS), round(float(gaps) / labels.height, _DIGITS)


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
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
    wide = beside(sessions, risks, counted, latest)
    signals = profiles.select("session_id", "day", signal=profiles.signals.unnest())
    return {
        "sessions": wide.mutate(lot=wide.session_id.hexdigest("md5")),
        "signals": signals.select(
            "session_id", "day", name=signals.signal["name"], value=signals.signal["value"].cast("double")
        ),
        "labels": _labels(tables),
    }


def _labels(tables: Tables) -> ibis.Table:
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
    labels = [frame for frame in (earlier.get("labels"), frames.get("labels")) if frame is not None]
    weeks, bins, shares = calibrated(pl.concat(labels, how="diagonal_relaxed") if labels else pl.DataFrame(), policy)
    shifted = tests.filter(pl.col("shifted"))
    highest = tests.filter(pl.col("app_id") == ALL_APPS)["psi"].max()
    return JobFindings(
        figures=[
            figure("shifted_measures", shifted.height, here, tests=tests.height),
            figure("highest_psi", highest, here, digits=3),
        ],
        findings=findings(shifted, asked.period, before),
        tables={
            "measures": tests,
            "days": by_day(everything, asked.policy),
            "calibration": weeks,
            "reliability": bins,
        },
        notes=_notes(here, there, asked.policy) + shares,
    )


def _notes(here: pl.DataFrame, there: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    least, most = policy.drift.min_sessions, policy.drift.most_sessions_per_day
    notes = [
        f"The {name} has fewer than {least} sessions: nothing is compared."
        for name, frame in (("baseline", there), ("period", here))
        if frame.height < least
    ]
    days = pl.concat([there, here], how="diagonal_relaxed").filter(pl.col("of_sessions") > most)["day"].n_unique()
    if days:
        notes.append(f"{days} days have more than {most} sessions: so many were drawn of each.")
    return notes


JOB = mining_job("drift", version=1, heavy=_heavy, find=_find, refine=_refine)
