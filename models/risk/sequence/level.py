"""Level signals of the turns' risk: their level, their peak, and the second one beside it."""

from __future__ import annotations

import math

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import fade, log_odds

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
