"""Signals of what is asked: instructions about the assistant's rules, refusals, and what the user asks after them."""

from models.risk.sequence.matter import NEAR
from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import Occurrences, clip
from models.state.vectors import TurnMark


class Instructions(Occurrences, array_like=True, gc=False):
    """How often the user tried to rewrite the assistant's rules or probed its limits."""

    why = "instructs the assistant about its rules or probes its limits {0.often}, last at turn {0.turn}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        features = seen.features
        self.fade_and_add(1.0 if features.meta_instruction or features.probing else 0.0, seen.turn)


LEAST_RISK, FULL_RISK = 0.08, 0.2
"""A refusal counts by the risk of what was refused, from nothing to all: an assistant that refuses bread recipes says
something of itself."""


class RefusedRephrased(Occurrences, array_like=True, gc=False):
    """How often a refusal was not taken: the next turn asks the same, or something no less risky.

    A turn near the refused one, or a rephrasing of it, counts as the refusal does. One that is not, but of no
    less risk than the turn before it, counts its risk of that; without vectors that is all there is to see.

    Attributes:
        before: Risk of the turn before.
    """

    why = "asked on after a refusal {0.often}, last at turn {0.turn}"
    before: float = 0.0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        weight = 0.0
        if seen.refused:
            nearness = seen.nearness
            if seen.marks & TurnMark.REPHRASED or (nearness is not None and nearness >= NEAR):
                weight = _weight_of(self.before)
            elif seen.risk >= self.before:
                weight = seen.risk * _weight_of(self.before)
        self.fade_and_add(weight, seen.turn)
        self.before = seen.risk


class Refusals(Occurrences, array_like=True, gc=False):
    """How often the assistant refused something risky, each known with the user turn after it.

    Attributes:
        before: Risk of the turn before.
    """

    why = "the assistant refused {0.often}, last before turn {0.turn}"
    before: float = 0.0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.fade_and_add(_weight_of(self.before) if seen.refused else 0.0, seen.turn)
        self.before = seen.risk


def _weight_of(risk: float) -> float:
    """What the refusal of a turn of this risk counts, 0-1."""
    return clip((risk - LEAST_RISK) / (FULL_RISK - LEAST_RISK))
