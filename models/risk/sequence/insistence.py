"""What the user does about a refusal: is refused, asks on, asks again in other words."""

from __future__ import annotations

from typing import ClassVar

from models.memory.vectors import Mark
from models.risk.sequence.matter import NEAR
from models.risk.sequence.observation import Observation
from models.risk.sequence.occurrences import Occurrences

HARMLESS_REPEAT = 0.1
"""What asking the same harmless thing again counts, as the seed's detector weighs it."""


class RephrasedProbing(Occurrences, array_like=True, gc=False):
    """How often the same was asked again: what was risky, refused or probing counts 1, the harmless a tenth."""

    name: ClassVar[str] = "rephrased_probing"
    monotone: ClassVar[bool] = True

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        marks = seen.marks
        weight = 1.0 if marks & Mark.REPHRASED else HARMLESS_REPEAT if marks & Mark.REPEATED else 0.0
        self.fade_and_add(weight, seen.turn)

    def phrase(self) -> str:
        """Why it is as high as it is."""
        return f"asked the same again in other words {self.at()}"


class RefusedRephrased(Occurrences, array_like=True, gc=False):
    """How often a refusal was not taken: the next turn asks the same, or something no less risky.

    A turn near the refused one, or a rephrasing of it, counts 1. One that is not, but of no less risk than the turn
    before it, counts its risk; without vectors that is all there is to see.

    Attributes:
        before: Risk of the turn before.
    """

    before: float = 0.0

    name: ClassVar[str] = "refused_rephrased"
    monotone: ClassVar[bool] = False

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        weight = 0.0
        if seen.refused:
            nearness = seen.nearness
            if seen.marks & Mark.REPHRASED or (nearness is not None and nearness >= NEAR):
                weight = 1.0
            elif seen.risk >= self.before:
                weight = seen.risk
        self.fade_and_add(weight, seen.turn)
        self.before = seen.risk

    def phrase(self) -> str:
        """Why it is as high as it is."""
        return f"asked on after a refusal {self.at()}"


class Refusals(Occurrences, array_like=True, gc=False):
    """How often the assistant refused, each known with the user turn after it."""

    name: ClassVar[str] = "refusals"
    monotone: ClassVar[bool] = True

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.fade_and_add(1.0 if seen.refused else 0.0, seen.turn)

    def phrase(self) -> str:
        """Why it is as high as it is."""
        return (
            f"the assistant refused {self.times} {'time' if self.times == 1 else 'times'}, last before turn {self.turn}"
        )
