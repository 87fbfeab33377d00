"""Event-time windows over one key, of a session or of an app: bounded state, closed by the watermark.

Time is cut into panes of one `slide`; a window is `length / slide` panes next to each other, so a turn is counted
once and windows are sums of panes. Three parts: the shape (`models.policy.WindowShape`), the state (`WindowState`,
serialisable) and the logic (`Windows`).

Rules:

- A window `[start, end)` closes when the watermark reaches `end + grace`, at the next `close` of this key. Windows
  without a turn are not emitted.
- A turn joins the windows over its timestamp that are still open: call `close` first. Too late for all of them, it
  is counted as `late_turns` in the pane in which the watermark stands less the grace, so that the next windows show it.
- Panes are numbered by the slide. The state names it unless it is `USUAL_SLIDE`; a policy with another slide numbers
  the panes anew, each where it began.
- A flush (the key ends) emits everything that is open but keeps its counts: a key that begins anew within those windows
  emits them again, with what came in addition. Readers take the last of a window.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from models.policy import WindowShape

USUAL_SLIDE = timedelta(minutes=1)
"""The policy's default, of sessions and of apps."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEAR = timedelta(days=365)
"""Panes numbered by another slide lie decades from their time."""


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
    closed: int | tuple[int, int] = 0
    """The end; with the slide in microseconds where that is not `USUAL_SLIDE`."""


class ClosedWindow(Struct, frozen=True, gc=False):
    """One window's final counts; `end` is outside."""

    start: datetime
    end: datetime
    turns_per_minute: float
    counts: WindowCounts


class Windows:
    """The windows of one key. Reads and changes `state` in place.

    Args:
        shape: Of the policy.
        state: As it was stored, maybe with another slide.
        watermark: Event time of the partition.
    """

    def __init__(self, shape: WindowShape, state: WindowState, watermark: datetime) -> None:
        self.shape = shape
        self.state = state
        self.span = shape.length // shape.slide
        self._slide_us = 0 if shape.slide == USUAL_SLIDE else shape.slide // _MICROSECOND
        self._end = 0
        self._take_over(watermark)
        self._passed: tuple[datetime, int] = (_EPOCH, 0)
        self._next_close: tuple[int, datetime] = (0, _EPOCH)

    def observe(self, timestamp: datetime, watermark: datetime, risk: float | None, alerts: int = 0) -> bool:
        """Count one turn; `close(watermark)` comes before. Returns whether a pane began with it.

        Args:
            timestamp: Its event time.
            watermark: Event time of the partition at its arrival; decides whether it is late.
            risk: Its risk, or None for a turn that is not scored.
            alerts: Alerts raised by it.
        """
        pane, closed = (timestamp - _EPOCH) // self.shape.slide, self._closed_end(watermark)
        late = pane + self.span <= closed
        pane = closed if late else pane
        panes = self.state.panes
        counts = panes.get(pane)
        began = counts is None
        if counts is None:
            counts = panes[pane] = WindowCounts()
            self._note_slide()
        if late:
            counts.late_turns += 1
            return began
        counts.turns += 1
        counts.alerts += alerts
        if risk is not None:
            counts.scored_turns += 1
            counts.risk_sum += risk
            counts.risk_max = max(counts.risk_max, risk)
        return began

    def observe_late(self, watermark: datetime) -> None:
        """Count a turn that was not folded because it came too late."""
        pane = self._closed_end(watermark)
        self.state.panes.setdefault(pane, WindowCounts()).late_turns += 1
        self._note_slide()

    def next_close(self) -> datetime | None:
        """Watermark at which the next window closes; None without open windows."""
        if not self.state.panes:
            return None
        end = max(min(self.state.panes), self._end) + 1
        if self._next_close[0] != end:
            self._next_close = end, _EPOCH + end * self.shape.slide + self.shape.grace
        return self._next_close[1]

    def close(self, watermark: datetime) -> list[ClosedWindow]:
        """Close what the watermark has passed, oldest first."""
        panes = self.state.panes
        limit = self._closed_end(watermark) if panes else 0
        if limit <= self._end:
            return []
        closed = self._windows(limit)
        self._end = limit
        self._note_slide()
        for pane in [pane for pane in panes if pane + self.span <= limit]:
            del panes[pane]
        return closed

    def flush(self) -> list[ClosedWindow]:
        """Every window that is open, as it stands, oldest first."""
        return self._windows(max(self.state.panes, default=0) + self.span)

    def _take_over(self, watermark: datetime) -> None:
        """Number panes anew where another slide numbered them."""
        state, slide = self.state, self.shape.slide
        if isinstance(state.closed, tuple):
            self._end, before_us = state.closed
            before = before_us * _MICROSECOND
        else:
            self._end = state.closed
            newest = max(state.panes, default=self._end)
            # Releases up to 0.2.0 named no slide.
            is_ours = not newest or abs(newest * (slide / _NEAR) - (watermark - _EPOCH) / _NEAR) <= 1
            before = slide if is_ours else USUAL_SLIDE
        if before == slide:
            return
        panes: dict[int, WindowCounts] = {}
        for pane, counts in state.panes.items():
            panes.setdefault(pane * before // slide, WindowCounts()).add(counts)
        state.panes = panes
        self._end = self._end * before // slide
        self._note_slide()

    def _note_slide(self) -> None:
        self.state.closed = (self._end, self._slide_us) if self._slide_us else self._end

    def _windows(self, limit: int) -> list[ClosedWindow]:
        """Windows with a turn that end after the closed ones and not after `limit`."""
        after, span = self._end, self.span
        ends = {end for pane in self.state.panes for end in range(max(pane, after) + 1, min(pane + span, limit) + 1)}
        return [self._window(end) for end in sorted(ends)]

    def _closed_end(self, watermark: datetime) -> int:
        """Newest window end, in panes, that the watermark has passed with its grace."""
        if self._passed[0] is not watermark:  # dividing times costs more than all the rest: once per watermark
            self._passed = watermark, (watermark - self.shape.grace - _EPOCH) // self.shape.slide
        return max(self._passed[1], self._end)

    def _window(self, end: int) -> ClosedWindow:
        counts = WindowCounts()
        for pane in range(end - self.span, end):
            if pane in self.state.panes:
                counts.add(self.state.panes[pane])
        stop = _EPOCH + end * self.shape.slide
        per_minute = counts.turns / (self.shape.length.total_seconds() / 60)
        return ClosedWindow(stop - self.shape.length, stop, per_minute, counts)
