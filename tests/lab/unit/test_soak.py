"""What a soak says of its samples."""

import random

import pytest

from jobs.lab.chaos.supervisor import ROLES
from jobs.lab.soak import MOST_POINTS, Samples, SlopeEstimate, judged, theil_sen, verdict

pytestmark = pytest.mark.fault("F15")

MB = 1_000_000
HOUR_S = 3_600


def samples(mb_per_hour: float, *, hours: float = 4, noise_mb: float = 3) -> Samples:
    """Memory from 200 MB on, every five seconds, with a fast rise at first and spikes."""
    rng = random.Random(15)
    found = Samples()
    for n in range(int(hours * HOUR_S / 5)):
        at_s = 5.0 * n
        warm = min(1.0, at_s / 600) * 80
        spike = 60 if n % 97 == 0 else 0
        mb = 120 + warm + spike + rng.gauss(0, noise_mb) + mb_per_hour * at_s / HOUR_S
        found.at_s.append(at_s)
        found.turns.append(200 * int(at_s))
        for role in ROLES:
            found.own_bytes[role].append(int(mb * MB))
    return found


@pytest.mark.parametrize(
    ("leak_mb_per_hour", "expected"), [(0.0, "flat"), (2.0, "flat"), (8.0, "grows"), (-3.0, "flat")]
)
def test_a_leak_is_told_from_warming_up_and_spikes(leak_mb_per_hour: float, expected: str) -> None:
    """The slope is the leak's, the first quarter and single spikes do not show."""
    result = judged(samples(leak_mb_per_hour))
    memory = result.roles["sessions"]

    assert memory.verdict == expected
    assert result.flat == (expected != "grows")
    assert memory.mb_per_hour.slope == pytest.approx(leak_mb_per_hour, abs=0.3)
    assert memory.mb_per_million_turns.slope == pytest.approx(leak_mb_per_hour / 0.72, abs=0.5)
    assert memory.mb_per_hour.low <= memory.mb_per_hour.slope <= memory.mb_per_hour.high


def test_too_short_a_run_leaves_it_open() -> None:
    """An interval that holds both a leak and none is no verdict."""
    assert judged(samples(2.0, hours=0.02)).roles["index"].verdict == "open"


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(-1.0, 4.0, "flat"), (-1.0, 4.1, "open"), (4.0, 9.0, "open"), (4.1, 9.0, "grows")]
)
def test_verdict_is_by_the_interval(low: float, high: float, expected: str) -> None:
    """Two per cent of 200 MB an hour is the limit."""
    assert verdict(SlopeEstimate(0.0, low, high), 200.0) == expected


def test_slope_is_that_of_the_line_whatever_the_outliers() -> None:
    """A quarter of wild points does not move it; neither do more points than are taken; two are no trend."""
    n = 3 * MOST_POINTS
    y = [2.0 * x + (1e6 if x % 12 == 0 else 0.0) for x in range(n)]

    assert theil_sen(list(range(n)), y).slope == pytest.approx(2.0)
    with pytest.raises(ValueError, match="three points"):
        theil_sen([0, 1], [0, 1])
