"""Scales that the sequence signals share: log-odds of a risk, fading by half-lives, counts that fade and saturate."""

import math

from msgspec import Struct

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


def sigmoid(log_odds: float) -> float:
    """Probability of log-odds.

    >>> sigmoid(0.0), sigmoid(-800.0)
    (0.5, 0.0)
    """
    odds = math.exp(-abs(log_odds))
    return 1.0 / (1.0 + odds) if log_odds >= 0 else odds / (1.0 + odds)


def fade(half_life_turns: float) -> float:
    """Factor per observation by which something halves in so many observations.

    >>> round(fade(3) ** 3, 12)
    0.5
    """
    return math.pow(0.5, 1.0 / half_life_turns)


def clip(value: float) -> float:
    """Within 0-1."""
    return min(1.0, max(0.0, value))


HALF_LIFE_TURNS = 16
"""A conversation that matters is seldom longer; in one of thousands of turns old occurrences must not add up."""
_FADE = fade(HALF_LIFE_TURNS)


class Occurrences(Struct, array_like=True, gc=False):
    """How often something happened, the older the less.

    Attributes:
        count: Sum of the occurrences' weights, each halved for every `HALF_LIFE_TURNS` observations since.
        times: Occurrences, unfaded.
        turn: Of the last one.
    """

    count: float = 0.0
    times: int = 0
    turn: int = 0

    @property
    def value(self) -> float:
        """0-1: one full occurrence is 0.5, two are 0.67, three 0.75."""
        return self.count / (self.count + 1.0)

    def fade_and_add(self, weight: float, turn: int) -> None:
        """One observation further, with an occurrence of this weight (0: none)."""
        self.count *= _FADE
        if weight > 0.0:
            self.count += weight
            self.times += 1
            self.turn = turn

    @property
    def often(self) -> str:
        """`3 times`."""
        return "1 time" if self.times == 1 else f"{self.times} times"
