"""Scales that the sequence signals share: log-odds of a risk, fading by half-lives, counts that saturate."""

from __future__ import annotations

import math

LOG_ODDS_BOUND = 6.0
"""A risk beyond 0.9975 or below 0.0025 says no more: a scorer that small is not calibrated further out."""
_LOWEST = 1.0 / (1.0 + math.exp(LOG_ODDS_BOUND))
_HIGHEST = 1.0 - _LOWEST


def log_odds(risk: float) -> float:
    """Natural logarithm of the odds of a risk, within ±`LOG_ODDS_BOUND`.

    >>> log_odds(0.5), round(log_odds(0.9), 3), round(log_odds(0.0), 3)
    (0.0, 2.197, -6.0)
    """
    if risk <= _LOWEST:
        return -LOG_ODDS_BOUND
    return math.log(risk / (1.0 - risk)) if risk < _HIGHEST else LOG_ODDS_BOUND


def fade(half_life_turns: float) -> float:
    """Factor per observation by which something halves in so many observations.

    >>> round(fade(3) ** 3, 12)
    0.5
    """
    return math.pow(0.5, 1.0 / half_life_turns)


def clip(value: float) -> float:
    """Within 0-1."""
    return min(1.0, max(0.0, value))
