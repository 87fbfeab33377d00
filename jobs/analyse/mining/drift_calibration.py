"""Calibration of alerts' probabilities by week and version of the scorer, as far as alerts are labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from jobs.analyse.mining.anonymity import ABOUT, ABOUT_TYPE, part_of
from jobs.analyse.mining.drift_measures import calibration, wilson
from models.policy.archive import DriftMining

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
        {"week": week, "model": model, **_told(of_week, policy)}
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
    low, high = wilson(right, labels.height)
    part = part_of(labels, pl.col("escalating") > 0)
    return {
        "labels": labels.height, "sessions": labels["session_id"].n_unique(), "users": labels["user_id"].n_unique(),
        "mean_probability": _rounded(labels["probability"].to_numpy().mean()),
        "right_ratio": _rounded(right / labels.height), "right_low": _rounded(low), "right_high": _rounded(high),
        **dict.fromkeys(_ABOUT, part),
    }  # fmt: skip


def _told(labels: pl.DataFrame, policy: DriftMining) -> dict[str, Any]:
    told = _share(labels)
    if labels.height < policy.min_labels:
        return told
    outcomes = labels["escalating"].to_numpy().astype(np.float64)
    found = calibration(labels["probability"].to_numpy(), outcomes, policy.calibration_bins)
    return {**told, "brier": _rounded(found.brier), "calibration_error": _rounded(found.error)}


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
