"""The fold of one partition: its clock, its sessions' time-outs and its apps' windows, in log order.

`streams` calls it with the records of a micro-batch, replay and backtests with all records of a log; how the records
are cut into calls changes nothing about what comes out.

Clock: the watermark is the highest event time seen, less the allowed lateness; it never goes back. A `ClockTicked`
moves it to the broker's time of that record. A session's time-out fires at the first record whose watermark reaches
its deadline; at most `MAX_TIMEOUTS_PER_RECORD` fire at once, the rest at the next records, so that a jump of the clock
over many sessions stays bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.arrival import SessionInput, SessionTimedOut
from models.events import (
    AlertChanged,
    ClockTicked,
    InputEvent,
    Position,
    SessionOutput,
    Turn,
    WindowClosed,
)
from models.ids import event_id
from models.policy import Policy
from models.risk.windows import ClosedWindow, Windows, WindowState
from models.session import SessionState, fold, read_deadline

PARTITION_ENTITY = ""
"""State of the partition itself is kept beside its sessions under this name (no session id is empty)."""
MAX_TIMEOUTS_PER_RECORD = 100
CHUNK_STATE_BYTES = 1024 * 1024
"""A fold is cut after this much changed state, so that one record batch of the changelog holds it."""

_TURN_STATE_BYTES = 2048
"""Estimate of what one event changes beside its content."""

Parts = Mapping[str, bytes]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Arrival(Struct, frozen=True, gc=False):
    """A decoded record with what the batch stages added; `risk` and `vector` as in `SessionInput`."""

    event: InputEvent
    position: Position
    appended_at: datetime
    risk: float | None = None
    vector: NDArray[np.float32] | None = None


class PartitionFolded(Struct):
    """What a run of arrivals amounts to.

    Attributes:
        offset: Source offset of the last arrival folded in.
        changed: Entity → part → bytes, None to delete.
        outputs: In the order of their causes.
        turns: Arrivals that were turns.
    """

    offset: int
    changed: dict[str, dict[str, bytes | None]]
    outputs: list[SessionOutput]
    turns: int


class _Clock(Struct, array_like=True):
    watermark: datetime
    offset: int


class PartitionFold:
    """Folds arrivals of one partition over the state in `entities`, which the caller updates with each result.

    Args:
        entities: Live view of the partition's state: entity → part → bytes.
        policy: Thresholds and windows.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        self._entities = entities
        self._policy = policy
        own = entities.get(PARTITION_ENTITY, {})
        clock = own.get("clock")
        self._clock = msgspec.msgpack.decode(clock, type=_Clock) if clock else _Clock(_EPOCH, -1)
        self._apps = {
            part.removeprefix("app:"): self._windows(msgspec.msgpack.decode(value, type=WindowState))
            for part, value in own.items()
            if part.startswith("app:")
        }
        self._next_app_close = self._first_app_close()
        self._timeouts: list[tuple[datetime, str]] = []
        self._scheduled: dict[str, datetime] = {}
        for session_id, parts in entities.items():
            if session_id != PARTITION_ENTITY:
                self._schedule(session_id, read_deadline(parts["head"]))
        self._begin()

    @property
    def offset(self) -> int:
        """Source offset of the last arrival folded in, −1 at first: what lies at or below it changes nothing."""
        return self._clock.offset

    @property
    def watermark(self) -> datetime:
        """Event time of the partition."""
        return self._clock.watermark

    def next_deadline(self) -> datetime | None:
        """When something is due though nothing arrives: a time-out or an app's window."""
        due = [self._timeouts[0][0]] if self._timeouts else []
        if self._next_app_close is not None:
            due.append(self._next_app_close)
        return min(due, default=None)

    def fold(self, arrivals: Sequence[Arrival]) -> Iterator[PartitionFolded]:
        """Fold arrivals in order, yielding results of bounded size.

        The caller must make each result durable and visible in `entities` before it asks for the next. After an error
        on the way, drop this object and make a new one.
        """
        for arrival in arrivals:
            if arrival.position.offset <= self._clock.offset:
                continue
            self._fold_one(arrival)
            if self._state_bytes > CHUNK_STATE_BYTES:
                yield self._result()
        if self._touched:
            yield self._result()

    # --- one record

    def _fold_one(self, arrival: Arrival) -> None:
        event = arrival.event
        time = arrival.appended_at if isinstance(event, ClockTicked) else event.timestamp
        self._clock.watermark = max(self._clock.watermark, time - self._policy.partition.watermark_lateness)
        self._clock.offset = arrival.position.offset
        self._touched = True
        self._time_out(arrival.position)
        if self._next_app_close is not None and self._next_app_close <= self.watermark:
            self._close_app_windows(arrival.position)
        if isinstance(event, ClockTicked):
            return
        state, fired = self._apply(
            self._state(event.session_id),
            SessionInput(event, arrival.position, self.watermark, arrival.risk, arrival.vector),
        )
        if isinstance(event, Turn):
            self._turns += 1
            self._state_bytes += len(event.content) + _TURN_STATE_BYTES
            self._observe_app(event, state, fired)

    def _time_out(self, position: Position) -> None:
        for _ in range(MAX_TIMEOUTS_PER_RECORD):
            if not self._timeouts or self._timeouts[0][0] > self.watermark:
                return
            deadline, session_id = heapq.heappop(self._timeouts)
            if self._scheduled.get(session_id) != deadline:
                continue
            del self._scheduled[session_id]
            state = self._state(session_id)
            if state is None or state.deadline is None:
                continue
            if state.deadline > self.watermark:
                self._schedule(session_id, state.deadline)
                continue
            self._state_bytes += _TURN_STATE_BYTES
            timed_out = SessionTimedOut(session_id, state.deadline)
            self._apply(state, SessionInput(timed_out, position, self.watermark))

    def _apply(self, state: SessionState | None, item: SessionInput) -> tuple[SessionState, int]:
        """Fold one input into its session and return it with the number of alerts that it raised."""
        session_id = item.event.session_id
        state, outputs = fold(state, item, self._policy)
        self._sessions[session_id] = state
        self._outputs += outputs
        self._schedule(session_id, state.deadline)
        return state, sum(isinstance(output, AlertChanged) and output.cause == "raised" for output in outputs)

    def _state(self, session_id: str) -> SessionState | None:
        state = self._sessions.get(session_id)
        if state is None and (parts := self._entities.get(session_id)) is not None:
            state = SessionState.load(parts)
        return state

    def _schedule(self, session_id: str, deadline: datetime | None) -> None:
        """One live entry per session: looked at when due and put back if the session moved on.

        A deadline that comes nearer (a closed session is opened again) needs a new entry; the old one is dead.
        """
        if deadline is not None and (session_id not in self._scheduled or deadline < self._scheduled[session_id]):
            self._scheduled[session_id] = deadline
            heapq.heappush(self._timeouts, (deadline, session_id))

    # --- windows of apps

    def _windows(self, state: WindowState) -> Windows:
        return Windows(self._policy.partition.app_window, state)

    def _observe_app(self, turn: Turn, state: SessionState, fired: int) -> None:
        app = self._apps.get(turn.app_id)
        if app is None:
            app = self._apps[turn.app_id] = self._windows(WindowState())
        risk = state.last_point[1] if state.last_point else None
        app.observe(turn.timestamp, self.watermark, risk, fired)
        self._apps_touched.add(turn.app_id)
        closes = app.next_close()
        if closes is not None and (self._next_app_close is None or closes < self._next_app_close):
            self._next_app_close = closes

    def _first_app_close(self) -> datetime | None:
        closes = (app.next_close() for app in self._apps.values())
        return min((end for end in closes if end is not None), default=None)

    def _close_app_windows(self, position: Position) -> None:
        for app_id in sorted(self._apps):
            app = self._apps[app_id]
            closed = app.close(self.watermark)
            if not closed:
                continue
            self._apps_touched.add(app_id)
            self._outputs += [_app_window(app_id, window, position, n) for n, window in enumerate(closed)]
            if app.next_close() is None:
                del self._apps[app_id]
        self._next_app_close = self._first_app_close()

    # --- results

    def _begin(self) -> None:
        self._sessions: dict[str, SessionState] = {}
        self._apps_touched: set[str] = set()
        self._outputs: list[SessionOutput] = []
        self._turns = 0
        self._touched = False
        self._state_bytes = 0

    def _result(self) -> PartitionFolded:
        changed: dict[str, dict[str, bytes | None]] = {
            session_id: parts for session_id, state in self._sessions.items() if (parts := state.changed_parts())
        }
        own: dict[str, bytes | None] = {"clock": msgspec.msgpack.encode(self._clock)}
        for app_id in sorted(self._apps_touched):
            app = self._apps.get(app_id)
            own[f"app:{app_id}"] = None if app is None else msgspec.msgpack.encode(app.state)
        changed[PARTITION_ENTITY] = own
        result = PartitionFolded(self._clock.offset, changed, self._outputs, self._turns)
        self._begin()
        return result


def _app_window(app_id: str, window: ClosedWindow, position: Position, ordinal: int) -> WindowClosed:
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
