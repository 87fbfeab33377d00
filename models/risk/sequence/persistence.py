"""Persistence signals: the share of all turns that is risky, and a run without a break."""

from __future__ import annotations

from msgspec import Struct

from models.risk.sequence.observation import Observation

RISKY = 0.5
"""A calibrated risk from which a turn is more likely harmful than not."""
SUSPECT = 0.35
"""Lower than `RISKY`: in a run each turn is borne out by its neighbours."""
PRIOR_TURNS = 2
"""Harmless turns and broken runs supposed beforehand, so that one or two turns are no share and no run."""


class Persistence(Struct, array_like=True, gc=False):
    """Share of the turns of risk `RISKY` or more, shrunk by `PRIOR_TURNS` harmless ones.

    Attributes:
        risky: Of such a risk.
        turns: All.
        turn: Last risky one.
    """

    risky: int = 0
    turns: int = 0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.turns += 1
        if seen.risk >= RISKY:
            self.risky += 1
            self.turn = seen.turn

    @property
    def value(self) -> float:
        """0-1."""
        return self.risky / (self.turns + PRIOR_TURNS)

    def phrase(self) -> str:
        """Why it is as high as it is."""
        return f"{self.risky} of {self.turns} turns are of risk {RISKY} or more, the last is turn {self.turn}"


class SuspectRun(Struct, array_like=True, gc=False):
    """The present run of turns of risk `SUSPECT` or more; a turn below it ends it.

    Attributes:
        length: Turns in it.
        first: Its first turn.
    """

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

    def phrase(self) -> str:
        """Why it is as high as it is."""
        return f"risk {SUSPECT} or more for {self.length} turns without a break, since turn {self.first}"
