"""Comparing shares of sessions, and saying in SQL which sessions are meant."""

# ruff: noqa: S608 - days are dates, texts are quoted

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from jobs.mining.job import Period

Floats = NDArray[np.float64]


def begun(period: Period) -> str:
    """SQL condition: the session's first turn was received in the period."""
    return (
        "session_id IN (SELECT session_id FROM turns GROUP BY session_id "
        f"HAVING min(date) BETWEEN DATE '{period.since}' AND DATE '{period.until}')"
    )


def quoted(text: str) -> str:
    """A text as SQL.

    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def share_chances(hits: ArrayLike, of: ArrayLike, other_hits: ArrayLike, of_others: ArrayLike) -> Floats:
    """Fisher's exact test, two-sided as twice the smaller tail, for many pairs of shares at once.

    Gives the false discovery rate of each (Benjamini and Hochberg 1995), `(n_pairs,)`; 1 where a side is empty.
    """
    x, n, y, m = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(each, np.int64)) for each in (hits, of, other_hits, of_others))
    )
    if not x.size:
        return np.empty(0)
    tails = (stats.hypergeom.sf(x - 1, n + m, x + y, n), stats.hypergeom.cdf(x, n + m, x + y, n))
    p_values = np.clip(2 * np.minimum(*tails), 0.0, 1.0)
    rates: Floats = stats.false_discovery_control(np.where((n > 0) & (m > 0), p_values, 1.0))
    return rates


def wilson(hits: ArrayLike, of: ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    """Wilson's interval of shares: `(low, high)`, each as `hits`; from 0 to 1 of nothing.

    With z the normal quantile: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)` (Wilson 1927), which is
    `scipy.stats.binomtest(…).proportion_ci("wilson")` for many shares at once.
    """
    x, n = np.asarray(hits, np.float64), np.asarray(of, np.float64)
    z = float(stats.norm.ppf((1.0 + confidence) / 2.0))
    some = np.maximum(n, 1.0)
    share = x / some
    middle = (share + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z * np.sqrt(share * (1 - share) / some + z**2 / (4 * some**2)) / (1 + z**2 / some)
    return np.where(n > 0, np.maximum(middle - half, 0.0), 0.0), np.where(n > 0, np.minimum(middle + half, 1.0), 1.0)
