"""Trend test of a series of samples: the Theil-Sen slope with its interval, robust against spikes and single jumps."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

MOST_POINTS = 600
"""Beyond it neighbours are joined by their median: all pairs of slopes are taken, which grows with the square."""
_Z_95 = 1.96


class Trend(Struct, frozen=True):
    """Change per unit of x: the median over all pairs of points, and its 95 % interval.

    The interval takes the points as independent; memory is not quite, so it is somewhat too narrow.
    """

    slope: float
    low: float
    high: float

    def scaled(self, factor: float) -> Trend:
        """In another unit; the factor is positive."""
        return Trend(self.slope * factor, self.low * factor, self.high * factor)


def theil_sen(x: Sequence[float], y: Sequence[float]) -> Trend:
    """Slope of y over x (P. K. Sen 1968, with the normal approximation of Kendall's statistic for the interval).

    Args:
        x: Rising.
        y: As many.

    Raises:
        ValueError: Fewer than three points.

    >>> theil_sen([0, 1, 2, 3, 4], [1, 3, 5, 99, 9])
    Trend(slope=2.0, low=2.0, high=94.0)
    """
    if len(x) != len(y) or len(x) < 3:  # noqa: PLR2004 - a slope and a doubt
        raise ValueError(f"a trend needs three points and more, not {len(x)}")
    xs, ys = joined(x), joined(y)
    n = len(xs)
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((ys[second] - ys[first]) / (xs[second] - xs[first]))
    reach = _Z_95 * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, round((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, round((len(slopes) + reach) / 2))
    return Trend(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


def joined(values: Sequence[float], most: int = MOST_POINTS) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """At most so many values: medians of neighbours.

    >>> joined([1, 2, 9, 4, 5, 6], most=2).tolist()
    [2.0, 5.0]
    """
    parts = np.array_split(np.asarray(values, dtype=np.float64), min(most, len(values)))
    return np.array([np.median(part) for part in parts])
