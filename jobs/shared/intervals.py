"""Wilson's interval of a share, which is also right for few cases."""

from scipy.stats import binomtest


def wilson(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share (1927): `(low, high)`; from 0 to 1 of nothing."""
    if not of:
        return 0.0, 1.0
    interval = binomtest(hits, of).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)
