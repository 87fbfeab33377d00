"""Event-time windows over one key, of a session or of an app: bounded state, closed by the watermark.

Time is cut into panes of one `slide`; a window is `length / slide` panes next to each other, so a turn is counted
once and windows are sums of panes. Three parts: the shape (`models.policy.WindowShape`), the state (`WindowState`,
serialisable) and the logic (`Windows`).

Rules:

- A window `[start, end)` closes when the watermark reaches `end + grace`, at the next `close` of this key. Windows
  without a turn are not emitted.
- A turn joins the windows over its timestamp that are still open: call `close` first. Too late for all of them, it
  is counted as `late_turns` in the pane in which the watermark stands less the grace, so that the next windows show it.
- A flush (the key ends) emits everything that is open but keeps its counts: a key that begins anew within those windows
  emits them again, with what came in addition. Readers take the last of a window.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from models.policy import WindowShape

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WindowCounts(Struct, array_like=True, gc=False):
    """What is counted, of a pane or of a window."""

    turns: int = 0
    scored_turns: int = 0
    risk_sum: float = 0.0
    risk_max: float = 0.0
    alerts: int = 0
    late_turns: int = 0

    def add(self, other: WindowCounts) -> None:
        """Add another's counts."""
        self.turns += other.turns
        self.scored_turns += other.scored_turns
        self.risk_sum += other.risk_sum
        self.risk_max = max(self.risk_max, other.risk_max)
        self.alerts += other.alerts
        self.late_turns += other.late_turns


class WindowState(Struct, array_like=True):
    """Panes by number (slides since 1970), and the end, in panes, of the newest window that was closed."""

    panes: dict[int, WindowCounts] = {}
    closed_end: int = 0


class ClosedWindow(Struct, frozen=True, gc=False):
    """One window's final counts; `end` is outside."""

    start: datetime
    end: datetime
    turns_per_minute: float
    counts: WindowCounts


class Windows:
    """The windows of one key. Reads and changes `state` in place."""

    def __init__(self, shape: WindowShape, state: WindowState) -> None:
        self.shape = shape
        self.state = state
        self.span = shape.length // shape.slide
        self._passed: tuple[datetime, int] = (_EPOCH, 0)
        self._next_close: tuple[int, datetime] = (0, _EPOCH)

    def observe(self, timestamp: datetime, watermark: datetime, risk: float | None, alerts: int = 0) -> None:
        """Count one turn; `close(watermark)` comes before.

        Args:
            timestamp: Its event time.
            watermark: Event time of the partition at its arrival; decides whether it is late.
            risk: Its risk, or None for a turn that is not scored.
            alerts: Alerts raised by it.
        """
        pane, late = self._place(timestamp, watermark)
        panes = self.state.panes
        counts = panes.get(pane)
        if counts is None:
            counts = panes[pane] = WindowCounts()
        if late:
            counts.late_turns += 1
            return
        counts.turns += 1
        counts.alerts += alerts
        if risk is not None:
            counts.scored_turns += 1
            counts.risk_sum += risk
            counts.risk_max = max(counts.risk_max, risk)

    def observe_late(self, watermark: datetime) -> None:
        """Count a turn that was not folded because it came too late."""
        pane = self._closed_end(watermark)
        self.state.panes.setdefault(pane, WindowCounts()).late_turns += 1

    def next_close(self) -> datetime | None:
        """Watermark at which the next window closes; None without open windows."""
        if not self.state.panes:
            return None
        end = max(min(self.state.panes), self.state.closed_end) + 1
        if self._next_close[0] != end:
            self._next_close = end, _EPOCH + end * self.shape.slide + self.shape.grace
        return self._next_close[1]

    def close(self, watermark: datetime) -> list[ClosedWindow]:
        """Close what the watermark has passed, oldest first."""
        state, panes = self.state, self.state.panes
        limit = self._closed_end(watermark) if panes else 0
        if limit <= state.closed_end:
            return []
        closed = self._windows(limit)
        state.closed_end = limit
        for pane in [pane for pane in panes if pane + self.span <= limit]:
            del panes[pane]
        return closed

    def flush(self) -> list[ClosedWindow]:
        """Every window that is open, as it stands, oldest first."""
        return self._windows(max(self.state.panes, default=0) + self.span)

    def _windows(self, limit: int) -> list[ClosedWindow]:
        """Windows with a turn that end after the closed ones and not after `limit`."""
        after, span = self.state.closed_end, self.span
        ends = {end for pane in self.state.panes for end in range(max(pane, after) + 1, min(pane + span, limit) + 1)}
        return [self._window(end) for end in sorted(ends)]

    def _closed_end(self, watermark: datetime) -> int:
        """Newest window end, in panes, that the watermark has passed with its grace."""
        if self._passed[0] is not watermark:  # dividing times costs more than all the rest: once per watermark
            self._passed = watermark, (watermark - self.shape.grace - _EPOCH) // self.shape.slide
        return max(self._passed[1], self.state.closed_end)

    def _place(self, timestamp: datetime, watermark: datetime) -> tuple[int, bool]:
        pane = (timestamp - _EPOCH) // self.shape.slide
        closed = self._closed_end(watermark)
        return (pane, False) if pane + self.span > closed else (closed, True)

    def _window(self, end: int) -> ClosedWindow:
        counts = WindowCounts()
        for pane in range(end - self.span, end):
            if pane in self.state.panes:
                counts.add(self.state.panes[pane])
        stop = _EPOCH + end * self.shape.slide
        per_minute = counts.turns / (self.shape.length.total_seconds() / 60)
        return ClosedWindow(stop - self.shape.length, stop, per_minute, counts)
