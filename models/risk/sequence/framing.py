"""Signals of what is asked: framing (a role that drifts, instructions, demands), persistence, and insistence.

Insistence comes after a refusal: the user asks on, or again in other words.
"""

from msgspec import Struct

from models.risk.sequence.matter import NEAR
from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import PRIOR_TURNS, Occurrences, ShareOfTurns, clip, fade
from models.state.vectors import TurnMark

SETUP_HALF_LIFE_TURNS = 12
"""A role or a story lasts for a good part of a conversation."""
DRIFT_HALF_LIFE_TURNS = 8
"""As a peak's."""
_SETUP_FADE = fade(SETUP_HALF_LIFE_TURNS)
_DRIFT_FADE = fade(DRIFT_HALF_LIFE_TURNS)


class SetupDrift(Struct, array_like=True, gc=False):
    """A role, a fiction or a hypothesis is set up, and from there the risk rises.

    A new set-up inside an earlier one keeps that one's risk to compare with, as far as it is still in force.

    Attributes:
        drift: Largest rise over the risk at the set-up, times its force, fading.
        base: Risk at the set-up.
        force: Of the set-up, halved for every `SETUP_HALF_LIFE_TURNS` turns; 0 before the first.
        turn: Of the set-up.
    """

    why = "risk rose by {0.drift:.2f} since a role or a story was set up, last at turn {0.turn}"
    drift: float = 0.0
    base: float = 0.0
    force: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.force *= _SETUP_FADE
        self.drift *= _DRIFT_FADE
        rise = (seen.risk - self.base) * self.force
        if rise < 0.0:
            rise = 0.0
        elif rise > self.drift:
            self.drift = rise
        if seen.features.hypothetical:
            self.base, self.force, self.turn = seen.risk - rise, 1.0, seen.turn

    @property
    def value(self) -> float:
        """0-1."""
        return self.drift


class Instructions(Occurrences, array_like=True, gc=False):
    """How often the user tried to rewrite the assistant's rules or probed its limits."""

    why = "instructs the assistant about its rules or probes its limits {0.often}, last at turn {0.turn}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        features = seen.features
        self.fade_and_add(1.0 if features.meta_instruction or features.probing else 0.0, seen.turn)


class Demands(ShareOfTurns, array_like=True, gc=False):
    """Share of the user turns that order something."""

    why = "{0.times} of {0.turns} turns are orders, the last is turn {0.turn}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.count(seen.features.imperative, seen.turn)


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


HARMLESS_REPEAT = 0.1
"""What asking the same harmless thing again counts, as the source's detector weighs it."""
LEAST_RISK, FULL_RISK = 0.08, 0.2
"""A refusal counts by the risk of what was refused, from nothing to all: an assistant that refuses bread recipes says
something of itself."""


class RephrasedProbing(Occurrences, array_like=True, gc=False):
    """How often the same was asked again: what was risky, refused or probing counts 1, the harmless a tenth."""

    why = "asked the same again in other words {0.often}, last at turn {0.turn}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        marks = seen.marks
        weight = 1.0 if marks & TurnMark.REPHRASED else HARMLESS_REPEAT if marks & TurnMark.REPEATED else 0.0
        self.fade_and_add(weight, seen.turn)


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
