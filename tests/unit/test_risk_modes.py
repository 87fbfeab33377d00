"""Hysteresis of the risk mode."""

from __future__ import annotations

import pytest

from models.events import Mode
from models.policy import ModePolicy
from models.risk.modes import next_mode

POLICY = ModePolicy()


@pytest.mark.parametrize(
    ("mode", "score", "turns_in_mode", "expected"),
    [
        (Mode.CALM, 0.24, 99, Mode.CALM),
        (Mode.CALM, 0.25, 0, Mode.WATCH),
        (Mode.CALM, 0.99, 0, Mode.CRITICAL),
        (Mode.WATCH, 0.46, 0, Mode.ELEVATED),
        (Mode.ELEVATED, 0.34, 99, Mode.ELEVATED),
        (Mode.ELEVATED, 0.32, 2, Mode.ELEVATED),
        (Mode.ELEVATED, 0.32, 3, Mode.WATCH),
        (Mode.CRITICAL, 0.44, 99, Mode.ELEVATED),
        (Mode.CRITICAL, 0.00, 99, Mode.CALM),
        (Mode.WATCH, 0.20, 99, Mode.WATCH),
        (Mode.WATCH, 0.16, 99, Mode.CALM),
    ],
)
def test_next_mode(mode: Mode, score: float, turns_in_mode: int, expected: Mode) -> None:
    """Rises at once and over several steps, falls below the leave threshold after the least stay."""
    actual = next_mode(mode, score, turns_in_mode, POLICY)

    assert expected == actual


def test_score_at_the_threshold_does_not_flap() -> None:
    """A score that swings around one threshold changes the mode once."""
    mode, changes = Mode.CALM, 0
    for turn in range(100):
        moved = next_mode(mode, 0.46 if turn % 2 else 0.44, turn, POLICY)
        changes += moved is not mode and moved is Mode.ELEVATED
        mode = moved

    assert (Mode.ELEVATED, 1) == (mode, changes)
