"""Persistence signals: the share of all turns that is risky, and a run without a break."""

from __future__ import annotations

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import PRIOR_TURNS, ShareOfTurns

RISKY = 0.5
"""A calibrated risk from which a turn is more likely harmful than not."""
SUSPECT = 0.35
"""Lower than `RISKY`: in a run each turn is borne out by its neighbours."""


class Persistence(ShareOfTurns, array_like=True, gc=False):
    """Share of the turns of risk `RISKY` or more."""

    why = f"{{0.times}} of {{0.turns}} turns are of risk {RISKY} or more, the last is turn {{0.turn}}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.count(seen.risk >= RISKY, seen.turn)


class SuspectRun(Struct, array_like=True, gc=False):
    """The present run of turns of risk `SUSPECT` or more; a turn below it ends it.

    Attributes:
        length: Turns in it.
        first: Its first turn.
    """

    why = f"risk {SUSPECT} or more for {{0.length}} turns without a break, since turn {{0.first}}"
    length: int = 0
    first: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        if seen.risk < SUSPECT:
            self.length = 0
            return
        if not self.length:
            self.first = seen.turn
        self.length += 1

    @property
    def value(self) -> float:
        """0-1: 0.33 for one turn, 0.6 for three."""
        return self.length / (self.length + PRIOR_TURNS)
