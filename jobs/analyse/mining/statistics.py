"""Statistics of the jobs: tests that take users as the unit, false discovery rates.

Sessions of one user are alike, and many of them are no more evidence than few.

A session adds `(g - mean g) (y - mean y)` to the score of a grouping g and a value y that have nothing to do with each
other. These are summed by user; users are independent, so the squares of their sums are the variance of the whole
(the score test of generalised estimating equations with independence, Liang and Zeger 1986, referred to Student's t).
With few users it is all but exact under equal sums, and never surer than so many users can be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]


class ByUser:
    """The users of some sessions.

    Args:
        users: One per session.
    """

    def __init__(self, users: pl.Series) -> None:
        self._user_of = users.rank("dense").to_numpy().astype(np.int64) - 1

    def chance_of(self, scores: Floats) -> float:
        """p-value, two-sided, of scores that should sum up to nothing.

        Args:
            scores: One per session, `(n_sessions,)`.
        """
        sums = np.bincount(self._user_of, scores)
        squares = float((sums**2).sum())
        if len(sums) < 2 or squares <= np.finfo(np.float64).eps * len(sums):  # noqa: PLR2004 - one user varies by nothing
            return 1.0
        # With t² = (n - 1) (1 - u) / u: no user's weight divides by nothing, and equal sums are told as such.
        unexplained = float(((sums - sums.mean()) ** 2).sum()) / squares
        return float(stats.beta.cdf(min(1.0, unexplained), (len(sums) - 1) / 2, 0.5))

    def chance(self, group: ArrayLike, values: ArrayLike) -> float:
        """p-value, two-sided, that sessions of a group have other values than the rest."""
        g, y = np.asarray(group, np.float64), np.asarray(values, np.float64)
        return self.chance_of((g - g.mean()) * (y - y.mean())) if g.size else 1.0

    def share_chance(self, group: NDArray[np.bool_], hits: NDArray[np.bool_]) -> float:
        """p-value, two-sided, that another share of a group's sessions are hits than of the rest.

        The larger one of the score test's and of Fisher's exact test, which takes sessions as independent: where hits
        are rare, the former takes too few of them for sure.
        """
        x, n, y, m = (int(each.sum()) for each in (group & hits, group, ~group & hits, ~group))
        if not n or not m:
            return 1.0
        return max(exact_chance(x, n, y, m), self.chance(group, hits))


def exact_chance(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test, two-sided as twice the smaller tail.

    >>> round(exact_chance(8, 10, 5, 20), 3)
    0.012
    """
    drawn = of + of_others, hits + other_hits, of
    tails = stats.hypergeom.sf(hits - 1, *drawn), stats.hypergeom.cdf(hits, *drawn)
    return float(min(1.0, 2 * min(tails)))


def false_discovery_rates(chances: Sequence[float]) -> Floats:
    """Of each of these p-values (Benjamini and Hochberg 1995), `(n,)`."""
    rates: Floats = np.asarray(stats.false_discovery_control(chances) if len(chances) else [], np.float64)
    return rates
