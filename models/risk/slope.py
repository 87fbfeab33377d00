"""Least-squares slope of risk over the last scored turns, with its uncertainty (seed 000, Signal A)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import mul

from models.events import Slope

NO_SLOPE = Slope(per_turn=0.0, stderr=0.0, n=0)


@lru_cache(maxsize=256)
def _centred(n: int) -> tuple[tuple[float, ...], float]:
    """`0..n-1` less their mean, and the sum of their squares."""
    middle = (n - 1) / 2
    return tuple(i - middle for i in range(n)), n * (n * n - 1) / 12


def fit_slope(risks: Sequence[float]) -> Slope:
    """Fit a line to risks against `0..n-1`, as `scipy.stats.linregress` (slope and stderr), in risk per turn.

    The sums run over the window anew: at 20 terms that costs a microsecond more than carrying them along, and they
    cannot drift. The error sums the residuals themselves, where linregress loses digits in `1 - r²` on a straight line.
    Fewer than two risks have no slope, fewer than three no error; both are 0 then.

    Args:
        risks: In the order of their turns, shape `(n,)`.

    >>> fit_slope([0.0, 0.25, 0.5, 0.75])
    Slope(per_turn=0.25, stderr=0.0, n=4)
    """
    n = len(risks)
    if n < 2:  # noqa: PLR2004 - a line needs two points
        return Slope(0.0, 0.0, n)
    xs, sum_xx = _centred(n)
    slope = sum(map(mul, xs, risks)) / sum_xx
    if n == 2:  # noqa: PLR2004
        return Slope(slope, 0.0, n)
    mean = sum(risks) / n
    residuals = [y - mean - slope * x for x, y in zip(xs, risks, strict=True)]
    return Slope(slope, (sum(map(mul, residuals, residuals)) / (n - 2) / sum_xx) ** 0.5, n)
