"""Local state that may have missed deletions is dropped, also where a clock jumped while it was written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from streams.settings import load_settings
from streams.state.memory import MemoryTable
from streams.state.partition import Tail
from streams.state.recovery import Outdated, Recovery

_HOUR_MS = 3_600_000
_NOW_MS = 1_000 * _HOUR_MS


@pytest.mark.fault("F13")
@pytest.mark.parametrize(("hours", "is_outdated"), [(-13, True), (-11, False), (0, False), (1, False), (13, True)])
def test_how_old_state_is_must_be_known(hours: int, is_outdated: bool) -> None:
    """State of a clock that was far ahead would count as current for as long as the clock was ahead."""
    table = MemoryTable()
    table.apply({}, offset=1, applied=2, tail=Tail(1, 1), now_ms=_NOW_MS + hours * _HOUR_MS)
    recovery = Recovery(load_settings().kafka, "state", timedelta(hours=12))
    try:
        recovery._check({0: table}, {0: (0, 5)}, _NOW_MS)
    except Outdated as outdated:
        found = outdated.numbers
    else:
        found = []

    assert found == ([0] if is_outdated else [])
