"""Which alerts count as late because of a kill, and how late they are."""

from __future__ import annotations

import pytest

from jobs.lab.chaos.actions import Act
from jobs.lab.chaos.delays import Delays, Harm, Raised, delays

KILL = Harm(Act.KILL, "sessions-0", 10_000, 10_000)


def late(alerts: list[Raised], *harms: Harm) -> Delays:
    """The delays with a session time-out of six seconds."""
    return delays(alerts, harms, session_timeout_s=6)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (Raised(9_000, 12_500), (3.5, 2.5, 1)),
        (Raised(11_000, 12_500), (1.5, 1.5, 1)),
        (Raised(16_999, 17_010), (0.011, 0.011, 1)),
        (Raised(17_001, 17_010), (0.009, 0.0, 0)),
        (Raised(8_000, 9_999), (1.999, 0.0, 0)),
    ],
)
def test_from_the_later_of_turn_and_kill(raised: Raised, expected: tuple[float, float, int]) -> None:
    """A turn before the kill waits since the kill; one that comes later, since itself; others have nothing to do."""
    found = late([raised], KILL)

    assert expected == (found.worst_s, found.worst_after_kill_s, found.after_kill)


def test_the_last_of_several_kills_counts() -> None:
    """Killed again while it starts, alerts come after the second one; no alert is no delay."""
    again = Harm(Act.KILL, "sessions-1", 13_000, 13_000)

    assert 4.0 == late([Raised(9_000, 17_000)], KILL, again).worst_after_kill_s

    assert Delays(worst_s=0.0, worst_after_kill_s=0.0, after_kill=0) == late([], KILL)


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (Harm(Act.BROKER, "", 11_000, 11_500), 0),
        (Harm(Act.FREEZE, "sessions-1", 0, 8_000), 0),
        (Harm(Act.REJECT, "alerts.v1", 2_000, 4_000), 0),
        (Harm(Act.REJECT, "commands.v1", 2_000, 4_000), 0),
        (Harm(Act.REJECT, "facts.v1", 9_000, 14_000), 1),
        (Harm(Act.FREEZE, "memory-0", 9_000, 17_000), 1),
        (Harm(Act.STOP, "sessions-1", 12_500, 12_600), 1),
        (Harm(Act.FREEZE, "archive", 9_000, 17_000), 1),
        (Harm(Act.KILL, "index", 9_500, 9_500), 1),
        (Harm(Act.VECTORS, "hangs", 9_500, 19_500), 1),
    ],
)
def test_other_harms_exclude_an_alert(other: Harm, counts: int) -> None:
    """Only such that can delay an alert, in progress or not long over."""
    assert counts == late([Raised(9_000, 12_000)], KILL, other).after_kill
