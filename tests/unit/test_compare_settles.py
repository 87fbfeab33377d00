"""A comparison that takes long is not deceived by a log that moves meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs import compare
from jobs.compare import LogGrows, settle
from streams.comparison import Comparison, Kind, TopicOutputs
from streams.replay import Replayed
from streams.settings import Settings, load_settings

NOTHING = Replayed({}, {}, 0, set())


def differing(found: int) -> Comparison:
    """So many differences in the archive."""
    result = Comparison()
    result.add("archive windows.v1", Kind.FALSE, [str(n) for n in range(found)])
    return result


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The log's ends as they are asked for; the last one stays. Everything but the archive is as the oracle has it."""
    ends: list[int] = []

    async def extent(_settings: Settings) -> dict[int, tuple[int, int]]:
        return {0: (0, ends.pop(0) if len(ends) > 1 else ends[0])}

    def gives(value: Any) -> Callable[..., Any]:
        async def give(*_args: Any, **_options: Any) -> Any:
            return value

        return give

    monkeypatch.setattr(compare, "log_extent", extent)
    monkeypatch.setattr(compare, "replay_log", gives(NOTHING))
    monkeypatch.setattr(compare, "_caught_up", gives({}))
    monkeypatch.setattr(compare, "read_outputs", gives({"windows.v1": TopicOutputs()}))
    monkeypatch.setattr(compare, "_index_compared", gives(Comparison()))
    monkeypatch.setattr(compare, "_POLL_S", 0.0)
    return ends


def archive(monkeypatch: pytest.MonkeyPatch, *found: int) -> list[int]:
    """What the archive differs in, each time that it is looked at; the last one stays."""
    left = list(found)
    monkeypatch.setattr(compare, "_archive_compared", lambda *_: differing(left.pop(0) if len(left) > 1 else left[0]))
    return left


async def test_what_a_clock_tick_closed_is_not_false(ends: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive holds more than the oracle because the log went on: all is compared anew, and nothing differs."""
    ends += [5, 5, 6]
    archive(monkeypatch, 3, 0)
    settled = await settle(load_settings(), within_s=30)

    assert {} == settled.comparison.counts


async def test_differences_of_a_log_that_stands_are_found(ends: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time for catching up, what differs differs."""
    ends += [5]
    archive(monkeypatch, 3)
    settled = await settle(load_settings(), within_s=0.05)

    assert {"archive windows.v1 false": 3} == settled.comparison.counts


async def test_a_log_that_never_rests_is_said(ends: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers are still at work: no comparison at all is better than a wrong one."""
    ends += range(1, 100_000)
    archive(monkeypatch, 3)
    with pytest.raises(LogGrows, match="stop its producers"):
        await settle(load_settings(), within_s=0.05)
