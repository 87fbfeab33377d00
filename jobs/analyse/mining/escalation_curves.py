"""Shape of one risk curve: how steadily it rises, where it changes, and its form on a common scale.

Curves come as one row per point, points of a session one after the other. Ragged arrays: `starts` and `lengths` of each
session in one flat array.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from ruptures import KernelCPD
from scipy import stats

from models.policy.archive import EscalationMining

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


class Change(NamedTuple):
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


def first_rise(risk: Floats, changes: list[int], min_rise: float) -> Change | None:
    """The first change after which the mean is higher by `min_rise` or more; None if it never is."""
    bounds = [0, *changes, len(risk)]
    means = [float(risk[start:end].mean()) for start, end in pairwise(bounds)]
    for n, change in enumerate(changes):
        if means[n + 1] - means[n] >= min_rise:
            return Change(change, means[n + 1] - means[n])
    return None
