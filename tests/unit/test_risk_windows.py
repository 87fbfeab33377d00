"""Event-time windows: panes, closing by the watermark, lateness. Times are minutes and seconds after noon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from models.policy import WindowShape
from models.risk.windows import ClosedWindow, Windows, WindowState
from tests.support.fields import assert_fields

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLIDING = WindowShape()
TUMBLING = WindowShape(length=timedelta(minutes=5), slide=timedelta(minutes=5))


def at(minutes: int, seconds: int = 0) -> datetime:
    """A time after noon."""
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def spans(closed: list[ClosedWindow]) -> list[tuple[int, int, int]]:
    """Start and end in minutes after noon, and turns."""
    minute = timedelta(minutes=1)
    return [((w.start - NOON) // minute, (w.end - NOON) // minute, w.counts.turns) for w in closed]


@pytest.mark.parametrize(
    ("shape", "turns", "watermark", "expected"),
    [
        (TUMBLING, [(at(1), at(1)), (at(4, 59), at(4, 59))], at(5, 29), []),
        (TUMBLING, [(at(1), at(1)), (at(4, 59), at(4, 59))], at(5, 30), [(0, 5, 2)]),
        (TUMBLING, [(at(4), at(4)), (at(4, 30), at(5, 29))], at(6), [(0, 5, 2)]),
        (SLIDING, [(at(10), at(10))], at(30), [(first, first + 5, 1) for first in range(6, 11)]),
    ],
    ids=["within the grace", "after it", "out of order within it", "sliding ones overlap"],
)
def test_what_the_watermark_closes(
    shape: WindowShape,
    turns: list[tuple[datetime, datetime]],
    watermark: datetime,
    expected: list[tuple[int, int, int]],
) -> None:
    """A window stays open until the watermark reaches its end and the grace; a turn is in each that covers it."""
    windows = Windows(shape, WindowState(), NOON)
    for time, arrival in turns:
        windows.observe(time, arrival, None)

    assert expected == spans(windows.close(watermark))


def test_counts_of_a_window() -> None:
    """Risk sums count scored turns only; the rate is per minute of the window."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    for second, risk in ((0, 0.25), (10, 0.75), (20, None)):
        windows.observe(at(0, second), at(0, second), risk, alerts=second == 10)
    (closed,) = windows.close(at(60))

    assert (3, 2, 1.0, 0.75, 1, 0) == msgspec.structs.astuple(closed.counts)
    assert 0.6 == pytest.approx(closed.turns_per_minute)


def test_late_turn_shows_in_the_window_of_its_arrival() -> None:
    """Beyond the grace it is no turn of its window, and counted as late where the watermark stands."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    windows.observe(at(4), at(4), None)
    closed = windows.close(at(6))
    windows.observe(at(4, 30), at(6), 0.9)
    (after,) = windows.close(at(60))

    assert [(0, 5, 1)] == spans(closed)
    assert_fields(after.counts, turns=0, late_turns=1, risk_sum=0.0)
    assert 5 == (after.start - NOON) // timedelta(minutes=1)


def test_flush_gives_what_is_open_and_goes_on() -> None:
    """A key that ends shows its windows as they stand; one that comes back completes them."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    windows.observe(at(1), at(1), None)
    flushed = windows.flush()
    windows.observe(at(2), at(2), None)

    assert ([(0, 5, 1)], [(0, 5, 2)]) == (spans(flushed), spans(windows.close(at(6))))


def test_next_close_is_when_the_first_window_closes() -> None:
    """One microsecond before nothing closes, at it something does."""
    windows = Windows(SLIDING, WindowState(), NOON)
    windows.observe(at(10, 20), at(10, 20), None)
    due = windows.next_close()
    assert due is not None

    assert ([], [(6, 11, 1)]) == (windows.close(due - timedelta(microseconds=1)), spans(windows.close(due)))


SLIDES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(seconds=30), timedelta(hours=2))


@pytest.mark.parametrize("before", SLIDES)
@pytest.mark.parametrize("after", SLIDES)
@pytest.mark.parametrize("is_named", [True, False])
def test_another_slide_numbers_open_panes_anew(before: timedelta, after: timedelta, is_named: bool) -> None:
    """What is open stays where it is in time and closes there; what closed stays closed, and nothing is late."""
    state = WindowState()
    windows = Windows(WindowShape(length=before, slide=before, grace=timedelta(0)), state, at(0))
    windows.observe(at(1), at(1), 0.5)
    windows.observe(at(125), at(125), None)
    windows.close(at(125))
    if not is_named:  # as releases up to 0.2.0 stored it
        if before not in {timedelta(minutes=1), after}:
            return
        state.closed = state.closed[0] if isinstance(state.closed, tuple) else state.closed
    again = Windows(WindowShape(length=after, slide=after, grace=timedelta(0)), state, at(125))
    again.observe(at(126), at(126), None)
    due = again.next_close()
    assert due is not None
    closed = again.close(at(600))

    assert at(120) <= due <= at(240)
    assert sum(window.counts.turns for window in closed) == 2
    assert all(at(120) <= window.start < window.end <= at(240) for window in closed)
    assert [window.counts.late_turns for window in closed] == [0] * len(closed)
