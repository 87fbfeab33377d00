"""A fading count of what happened: the state of every signal that counts turns of one kind."""

from __future__ import annotations

from msgspec import Struct

from models.risk.sequence.scale import fade

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

    def at(self) -> str:
        """How often and when last: `3 times, last at turn 12`."""
        return f"{self.times} {'time' if self.times == 1 else 'times'}, last at turn {self.turn}"
