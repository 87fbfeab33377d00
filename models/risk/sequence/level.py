"""The level of a session's risk: a running mean of its turns, shrunk towards an ordinary turn."""

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import fade, log_odds, sigmoid

PRIOR_TURNS = 2.0
"""Ordinary turns supposed beforehand, so that one turn makes no level: of all that was tried it gained most recall."""
PRIOR_LOG_ODDS = -1.84
"""Log-odds of an ordinary turn's risk (0.14)."""
HALF_LIFE_TURNS = 3
"""The level is that of the present stretch of the conversation: a long calm past hides nothing."""
_FADE = fade(HALF_LIFE_TURNS)


class Level(Struct, array_like=True, gc=False):
    """Weighted mean of the log-odds of risk, `PRIOR_TURNS` ordinary turns included, as a risk.

    Attributes:
        mean: Of the turns' log-odds, without the prior.
        weight: Sum of the weights in it, the last turn's being 1; 0 before the first.
        turn: The last one.
    """

    why = "the turns up to {0.turn} are of risk {0.value:.2f} on average"
    mean: float = 0.0
    weight: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.weight = self.weight * _FADE + 1.0
        self.mean += (log_odds(seen.risk) - self.mean) / self.weight
        self.turn = seen.turn

    @property
    def value(self) -> float:
        """The mean as a risk, 0-1; 0 before the first turn."""
        if not self.weight:
            return 0.0
        return sigmoid((self.mean * self.weight + PRIOR_TURNS * PRIOR_LOG_ODDS) / (self.weight + PRIOR_TURNS))
