"""Framing signals: a fiction or a role that drifts, instructions about the rules, demands."""

from __future__ import annotations

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.risk.sequence.scale import Occurrences, ShareOfTurns, fade

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
