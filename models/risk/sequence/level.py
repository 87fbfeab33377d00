"""Level and trend signals of the turns' risk: level, peak, the second one beside it, and an online regression."""

import math
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import clip, fade, log_odds

LEVEL_HALF_LIFE_TURNS = 3
"""Short: the level is that of the present stretch of the conversation, `cusum` and `persistence` remember longer."""
PEAK_HALF_LIFE_TURNS = 8
"""Long enough that a turn of small talk does not hide the turn before it."""
_LEVEL_FADE = fade(LEVEL_HALF_LIFE_TURNS)
_PEAK_FADE = fade(PEAK_HALF_LIFE_TURNS)


class Level(Struct, array_like=True, gc=False):
    """Exponentially weighted mean of the log-odds of risk, as a risk.

    Attributes:
        mean: Of the log-odds.
        weight: Sum of the weights in it, the last turn's being 1; 0 before the first.
        turn: The last one.
    """

    why = "the latest turns up to {0.turn} are of risk {0.value:.2f} on average"
    mean: float = 0.0
    weight: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.weight = self.weight * _LEVEL_FADE + 1.0
        self.mean += (log_odds(seen.risk) - self.mean) / self.weight
        self.turn = seen.turn

    @property
    def value(self) -> float:
        """The mean as a risk, 0-1; 0 before the first turn."""
        return 1.0 / (1.0 + math.exp(-self.mean)) if self.weight else 0.0


class Peak(Struct, array_like=True, gc=False):
    """Highest risk so far; what it exceeds the present risk by is halved for every `PEAK_HALF_LIFE_TURNS` turns.

    Attributes:
        risk: What is left of the highest risk.
        turn: Of it.
    """

    why = "the riskiest turn is {0.turn}, at {0.risk:.2f} by now"
    risk: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        if seen.risk >= self.risk:
            self.risk, self.turn = seen.risk, seen.turn
        else:
            self.risk = self.risk * _PEAK_FADE + seen.risk * (1.0 - _PEAK_FADE)

    @property
    def value(self) -> float:
        """0-1."""
        return self.risk


class SecondPeak(Struct, array_like=True, gc=False):
    """Second highest risk, both fading as the peak: one outlier is no pattern, two are.

    Attributes:
        highest: What is left of the highest risk.
        second: And of the one below it.
        highest_turn: Its turn.
        second_turn: Its turn.
    """

    why = "two turns stand out, {0.turns[0]} and {0.turns[1]}, the lower at {0.second:.2f} by now"
    highest: float = 0.0
    second: float = 0.0
    highest_turn: int = 0
    second_turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        risk = seen.risk
        self.highest *= _PEAK_FADE
        self.second *= _PEAK_FADE
        if risk >= self.highest:
            self.second, self.second_turn = self.highest, self.highest_turn
            self.highest, self.highest_turn = risk, seen.turn
        elif risk >= self.second:
            self.second, self.second_turn = risk, seen.turn

    @property
    def value(self) -> float:
        """0-1."""
        return self.second

    @property
    def turns(self) -> list[int]:
        """Both turns, in order."""
        return sorted((self.highest_turn, self.second_turn))


HALF_LIFE_TURNS = 4
"""Short, so that a rise shows soon after a long calm past: one of 0.5 in five turns gives 0.18 after 60 turns (0.10
with 6). Twelve turns of noise (0.2 ± 0.15) exceed 0.2 in 1 % of cases either way."""
GAIN = 10.0
"""As the source's Signal A: a certain rise of 0.1 per turn is 1."""
LEAST_TURNS = 3
"""Two points always lie on a line: without a third the slope has no error."""
_FADE = fade(HALF_LIFE_TURNS)
_SETTLED_TURNS = 400
"""After so many turns the weights of the first are below 1e-20: the design no longer changes."""


class _Design(NamedTuple):
    """What the regression needs of the turns' places and weights; it follows from their number alone."""

    total: float
    """Sum of the weights."""
    centre: float
    """Weighted mean of the places; the last turn's is 0, those before it are negative."""
    spread: float
    """Weighted sum of squares about it."""
    freedom: float
    """Expected weighted sum of squared residuals at a variance of 1; for equal weights n - 2."""
    slope_variance: float
    """Of the slope at a variance of 1."""


@lru_cache(maxsize=512)
def _design(turns: int) -> _Design:
    weights = [_FADE**age for age in range(turns)]
    total = sum(weights)
    centre = -sum(age * w for age, w in enumerate(weights)) / total
    spread = sum(w * (age + centre) ** 2 for age, w in enumerate(weights))
    squared = sum(w * w * (age + centre) ** 2 for age, w in enumerate(weights))
    freedom = total - sum(w * w for w in weights) / total - squared / spread
    return _Design(total, centre, spread, freedom, squared / spread**2)


class RiskTrend(Struct, array_like=True, gc=False):
    """Slope of risk per turn, less its standard error, by discounted least squares.

    The newest turn weighs 1, each before it less by the half-life. The residuals' variance is taken as equal in all
    turns, so the slope's error is that of a linear estimator with known weights: for equal weights that of
    `scipy.stats.linregress`. Sums are carried along and fade, so rounding errors fade with them.

    Attributes:
        turns: Observed, at most `_SETTLED_TURNS`.
        risks: Weighted sum of the risks.
        products: Of the risks times their places; the newest turn's place is 0.
        squares: Of the squared risks.
        turn: The last one.
    """

    why = "risk rises by {0.slope:.3f} ± {0.error:.3f} a turn up to turn {0.turn}"
    turns: int = 0
    risks: float = 0.0
    products: float = 0.0
    squares: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in; all earlier ones move one place back."""
        risk = seen.risk
        self.products = (self.products - self.risks) * _FADE
        self.risks = self.risks * _FADE + risk
        self.squares = self.squares * _FADE + risk * risk
        if self.turns < _SETTLED_TURNS:
            self.turns += 1
        self.turn = seen.turn

    @property
    def value(self) -> float:
        """0-1; 0 below `LEAST_TURNS` and where the slope is not above its error."""
        slope = self.slope
        return clip((slope - self.error) * GAIN) if slope > 0.0 else 0.0

    @property
    def slope(self) -> float:
        """Risk per turn; 0 below `LEAST_TURNS`."""
        if self.turns < LEAST_TURNS:
            return 0.0
        design = _design(self.turns)
        return (self.products - design.centre * self.risks) / design.spread

    @property
    def error(self) -> float:
        """Standard error of the slope, in risk per turn; 0 below `LEAST_TURNS`."""
        if self.turns < LEAST_TURNS:
            return 0.0
        design = _design(self.turns)
        about_mean = self.squares - self.risks * self.risks / design.total
        unexplained = max(0.0, about_mean - self.slope**2 * design.spread)
        return math.sqrt(unexplained / design.freedom * design.slope_variance)
