"""Change signals of the risk: sums of what is too much (CUSUM, Page-Hinkley) and the largest single rise.

Sources: E. S. Page, Continuous inspection schemes, Biometrika 41 (1954) 100-115; D. V. Hinkley, Inference about the
change-point from cumulative sum tests, Biometrika 58 (1971) 509-523.
"""

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import fade, log_odds

ALLOWANCE_LOG_ODDS = -0.85
"""Log-odds of a risk of 0.3: turns below it pay the sum back. Half-way between what a calm and a risky turn scores."""
MOST_PER_TURN = 2.5
"""So that no single turn says more than half of it all."""
LEAST_PER_TURN = -1.0
"""So that a turn of small talk does not clear what several turns have added."""
FULL_SUM = 6.0
"""The sum that is 1: three turns of a risk of 0.76 in a row."""

TOLERATED_RISE = 0.05
"""Risk above the running mean that is noise."""
REMEMBERED_TURNS = 32
"""Beyond so many turns the running mean follows as if it had seen that many: a session's past may be long."""

JUMP_MEAN_HALF_LIFE_TURNS = 3
"""What a turn is compared with is the present stretch of the conversation, as in `level`."""
JUMP_HALF_LIFE_TURNS = 8
"""As a peak's."""
_MEAN_FADE = fade(JUMP_MEAN_HALF_LIFE_TURNS)
_JUMP_FADE = fade(JUMP_HALF_LIFE_TURNS)


class Cusum(Struct, array_like=True, gc=False):
    """One-sided cumulative sum of the log-odds of risk over an allowance (Page 1954), bounded per turn and in all.

    Attributes:
        total: 0 to `FULL_SUM`.
        since: Turn from which it is above 0.
    """

    why = "risk has added up since turn {0.since} to {0.value:.2f} of the most that is counted"
    total: float = 0.0
    since: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        if not self.total:
            self.since = seen.turn
        excess = log_odds(seen.risk) - ALLOWANCE_LOG_ODDS
        if excess > MOST_PER_TURN:
            excess = MOST_PER_TURN
        elif excess < LEAST_PER_TURN:
            excess = LEAST_PER_TURN
        total = self.total + excess
        self.total = 0.0 if total < 0.0 else min(FULL_SUM, total)

    @property
    def value(self) -> float:
        """0-1."""
        return self.total / FULL_SUM


class PageHinkley(Struct, array_like=True, gc=False):
    """Page-Hinkley: cumulative sum of the risk over its own running mean (Page 1954, Hinkley 1971).

    Each turn is compared with the mean before it, so that a session that is risky from the start shows nothing here.

    Attributes:
        total: Sum of the risks over their mean, less what is tolerated, never below 0.
        mean: Of all risks before the next turn.
        turns: In the mean, at most `REMEMBERED_TURNS`.
        since: Turn from which the sum is above 0.
    """

    why = "risk is above this session's own mean since turn {0.since}, by {0.total:.2f} in all"
    total: float = 0.0
    mean: float = 0.0
    turns: int = 0
    since: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        rise = seen.risk - self.mean
        if self.turns:
            if not self.total:
                self.since = seen.turn
            total = self.total + rise - TOLERATED_RISE
            self.total = max(0.0, total)
        if self.turns < REMEMBERED_TURNS:
            self.turns += 1
        self.mean += rise / self.turns

    @property
    def value(self) -> float:
        """0-1: 0.5 for a sum of 1, such as two turns that each exceed the mean by 0.55."""
        return self.total / (self.total + 1.0)


class Jump(Struct, array_like=True, gc=False):
    """Largest rise of the risk over the decayed mean before it, halved for every `JUMP_HALF_LIFE_TURNS` turns since.

    Attributes:
        rise: What is left of it.
        mean: Exponentially weighted, of the risks before the next turn.
        weight: Sum of the weights in the mean; 0 before the first turn.
        turn: Of the rise.
    """

    why = "risk jumped at turn {0.turn}, by {0.rise:.2f} as it counts by now"
    rise: float = 0.0
    mean: float = 0.0
    weight: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        rise = seen.risk - self.mean
        self.rise *= _JUMP_FADE
        if self.weight and rise > self.rise:
            self.rise, self.turn = rise, seen.turn
        self.weight = self.weight * _MEAN_FADE + 1.0
        self.mean += rise / self.weight

    @property
    def value(self) -> float:
        """0-1."""
        return self.rise
