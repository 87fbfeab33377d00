"""Windows of the apps on one partition: a window per app, a bounded number of them, closed a few at a time."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from models.events import AnyTurn, Position, WindowClosed
from models.events.ids import event_id
from models.policy import PartitionPolicy
from models.risk.windows import ClosedWindow, Windows, WindowState
from models.state.deadlines import Deadlines
from models.text.words import utf8_bytes

OTHER_APPS = "(other)"
"""App whose windows count the turns of apps beyond `partition.open_apps`."""
MAX_CLOSINGS_PER_RECORD = 100
"""Apps whose windows one record closes; it opens one app at most, so that closing keeps pace."""
_PREFIX = "app:"
_PANE_BYTES = 48
_PART_BYTES = 120


class AppWindows:
    """Open windows by app.

    Args:
        stored: Part → bytes of the partition's own state; parts of other kinds are left alone.
        policy: Shape and number.
        watermark: Event time of the partition.

    Attributes:
        changed_bytes: Upper estimate of what `take_changes` will give.
    """

    def __init__(self, stored: Mapping[str, bytes], policy: PartitionPolicy, watermark: datetime) -> None:
        self._policy = policy
        self._closings = Deadlines()
        self._apps: dict[str, Windows] = {}
        for part, value in stored.items():
            if part.startswith(_PREFIX):
                app_id = part.removeprefix(_PREFIX)
                state = msgspec.msgpack.decode(value, type=WindowState)
                self._apps[app_id] = Windows(policy.app_window, state, watermark)
                self._await_close(app_id)
        self._touched: set[str] = set()
        self.changed_bytes = 0

    def next_close(self) -> datetime | None:
        """Watermark at which the next window closes; None without open windows."""
        first = self._closings.first()
        return None if first is None else first[0]

    def observe(self, turn: AnyTurn, watermark: datetime, risk: float | None, raised: int) -> None:
        """Count a turn for its app, with its risk as it was counted."""
        app_id = turn.app_id
        if app_id not in self._apps and len(self._apps) >= self._policy.open_apps:
            app_id = OTHER_APPS
        app = self._apps.get(app_id)
        if app is None:
            app = self._apps[app_id] = Windows(self._policy.app_window, WindowState(), watermark)
        if app.observe(turn.timestamp, watermark, risk, raised):
            self._await_close(app_id)
        self._touch(app_id)

    def may_close(self, watermark: datetime) -> bool:
        """Whether the watermark may have passed a window."""
        return self._closings.may_be_due(watermark)

    def close(self, watermark: datetime, position: Position) -> list[WindowClosed]:
        """Close what the watermark has passed, the earliest app first; what is beyond the limit waits for a record."""
        outputs: list[WindowClosed] = []
        for _ in range(MAX_CLOSINGS_PER_RECORD):
            first = self._closings.first()
            if first is None or first[0] > watermark:
                break
            app_id = first[1]
            app = self._apps[app_id]
            outputs += [_closed(app_id, window, position, n) for n, window in enumerate(app.close(watermark))]
            self._touch(app_id)
            if app.next_close() is None:
                del self._apps[app_id]
                self._closings.drop(app_id)
            else:
                self._await_close(app_id)
        return outputs

    def take_changes(self) -> dict[str, bytes | None]:
        """Parts that changed since the last call; None deletes."""
        changes: dict[str, bytes | None] = {}
        for app_id in sorted(self._touched):
            app = self._apps.get(app_id)
            changes[_PREFIX + app_id] = None if app is None else msgspec.msgpack.encode(app.state)
        self._touched.clear()
        self.changed_bytes = 0
        return changes

    def _await_close(self, app_id: str) -> None:
        closes = self._apps[app_id].next_close()
        if closes is not None:
            self._closings.set(app_id, closes)

    def _touch(self, app_id: str) -> None:
        if app_id not in self._touched:
            self._touched.add(app_id)
            self.changed_bytes += _PART_BYTES + utf8_bytes(app_id)
            app = self._apps[app_id]
            self.changed_bytes += _PANE_BYTES * len(app.state.panes)
        else:
            self.changed_bytes += _PANE_BYTES


def _closed(app_id: str, window: ClosedWindow, position: Position, ordinal: int) -> WindowClosed:
    return WindowClosed(
        id=event_id("window_closed", f"app:{app_id}", position, ordinal),
        session_id="",
        user_id="",
        app_id=app_id,
        timestamp=window.end,
        source=position,
        scope="app",
        window_start=window.start,
        window_end=window.end,
        turns_per_minute=window.turns_per_minute,
        **msgspec.structs.asdict(window.counts),
    )
