"""Wilson's interval of shares, which is also right for few cases."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri


def wilson(hits: ArrayLike, of: ArrayLike, confidence: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of shares: `(low, high)`, each as `hits`; from 0 to 1 of nothing.

    With z the normal quantile: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)` (Wilson 1927), which is
    `scipy.stats.binomtest(…).proportion_ci("wilson")` for many shares at once.
    """
    x, n = np.asarray(hits, np.float64), np.asarray(of, np.float64)
    z = float(ndtri((1.0 + confidence) / 2.0))
    some = np.maximum(n, 1.0)
    share = x / some
    middle = (share + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z * np.sqrt(share * (1 - share) / some + z**2 / (4 * some**2)) / (1 + z**2 / some)
    return np.where(n > 0, np.maximum(middle - half, 0.0), 0.0), np.where(n > 0, np.minimum(middle + half, 1.0), 1.0)
