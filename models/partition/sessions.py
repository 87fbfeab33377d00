"""The fold of one partition: its clock, its sessions' time-outs and its apps' windows, in log order.

`streams` calls it with the records of a micro-batch, replay and backtests with all records of a log; how the records
are cut into calls, and where a partition is recovered in between, changes nothing about what comes out.

Clock: the watermark is the highest event time seen, less the allowed lateness; it never goes back. A `ClockTicked`
moves it to the broker's time of that record. A session's time-out fires at the first record whose watermark reaches
its deadline, the nearest deadline first. A record opens one session at most and closes up to `MAX_TIMEOUTS_PER_RECORD`
(fewer if they are large), so that closing keeps pace; after a jump of the clock the rest follow at the next records.
An erasure comes before all that is due at its record, and moves no clock: it is of today, whenever the turns were.
Nor does the label or the triage of an alert, or the correction of a turn. Snoozes that are over come after the
time-outs: an alert whose session closes is told once.

Bounds: beyond `partition.open_sessions` the session that is silent longest is closed early (its episode says
`evicted`); beyond `partition.closed_sessions` the session that closed longest ago is forgotten early. Its late turn
is then one of an unknown session, as after `closed_retention`. How large everything else gets:
`models/session/bounds.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models import events
from models.events.ids import event_id
from models.partition.app_windows import AppWindows
from models.partition.first_turns import FirstNumbers
from models.partition.log_fold import PARTITION_ENTITY, LogFold, Parts
from models.policy import Policy
from models.session.bounds import CLOSINGS_STATE_BYTES, Footprint, fitting_dead_letter
from models.session.fold import SessionState, fold, read_due
from models.session.state import Due
from models.state.deadlines import Deadlines
from models.state.entity import record_bytes
from models.text.words import utf8_bytes
from models.wire.arrival import SessionInput, SessionTimedOut
from models.wire.codec import encode

WARM_SESSIONS = 128
"""Sessions per partition that stay decoded after their state was stored: in a lively one the next turn is near."""
MAX_TIMEOUTS_PER_RECORD = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DecodedArrival(Struct, frozen=True, gc=False):
    """A decoded record with what the batch stages added; what has a default is as in `SessionInput`."""

    event: events.InputEvent
    position: events.Position
    appended_at: datetime
    risk: float | None = None
    vector: NDArray[np.float32] | None = None
    language: str = ""
    harms: tuple[int, ...] = ()
    reading: float | None = None


class _Clock(Struct, array_like=True):
    watermark: datetime
    offset: int
    """As `folded_offset` reads it: the last field of any partition's clock."""


class PartitionFold(LogFold[DecodedArrival]):
    """Folds turns and control events of one partition, each into its session."""

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        super().__init__(entities, policy)
        self._footprint = Footprint(policy)
        own = entities.get(PARTITION_ENTITY, {})
        clock = own.get("clock")
        self._clock = msgspec.msgpack.decode(clock, type=_Clock) if clock else _Clock(_EPOCH, -1)
        self._apps = AppWindows(own, policy.partition, self._clock.watermark)
        self._first_turns = FirstNumbers(own)
        self._open = Deadlines()
        self._closed = Deadlines()
        self._snoozed = Deadlines()
        self._alarmed: dict[str, events.Mode] = {}
        """Open sessions that are not calm, which are few."""
        self._known_apps: Counter[str] = Counter()
        """App → sessions of it that are known."""
        for key, parts in entities.items():
            if key != PARTITION_ENTITY:
                self._note(key, read_due(parts["head"]))
        self._warm: dict[str, SessionState] = {}
        self._namesakes: Counter[str] = Counter()
        """Session id → how many sessions of it came due at this record."""

    @property
    def offset(self) -> int:
        """Source offset of the last arrival folded in, −1 at first: what lies at or below it changes nothing."""
        return self._clock.offset

    @property
    def watermark(self) -> datetime:
        """Event time of the partition."""
        return self._clock.watermark

    @property
    def open_sessions(self) -> int:
        """Sessions that are open."""
        return len(self._open)

    @property
    def open_by_mode(self) -> dict[events.Mode, int]:
        """Sessions that are open, by risk mode."""
        calm = len(self._open) - len(self._alarmed)
        return {**dict.fromkeys(events.Mode, 0), **Counter(self._alarmed.values()), events.Mode.CALM: calm}

    @property
    def closed_sessions(self) -> int:
        """Sessions that closed and are still remembered."""
        return len(self._closed)

    def next_deadline(self) -> datetime | None:
        """When something is due though nothing arrives: a time-out, the end of a snooze or an app's window."""
        due = (self._open.first(), self._closed.first(), self._snoozed.first())
        firsts = [first[0] for first in due if first is not None]
        closes = self._apps.next_close()
        return min(firsts if closes is None else [*firsts, closes], default=None)

    # --- one record

    def _is_erasure(self, arrival: DecodedArrival) -> bool:
        return isinstance(arrival.event, events.SessionErased)

    def _fold_one(self, arrival: DecodedArrival) -> bool:
        event = arrival.event
        self._clock.offset = arrival.position.offset
        self._touched = True
        if isinstance(event, events.SessionErased):
            # One that names no app is of an earlier release, and means all that have such a session.
            for app_id in [event.app_id] if event.app_id else self._apps_with(event.session_id):
                key = events.session_key(app_id, event.session_id)
                self._apply(key, self._state(key), SessionInput(event, arrival.position, self.watermark))
            self._erased += 1
            return True
        if not isinstance(event, events.AlertLabelled | events.AlertTriaged | events.TurnCorrected):
            time = arrival.appended_at if isinstance(event, events.ClockTicked) else event.timestamp
            self._clock.watermark = max(self._clock.watermark, time - self._policy.partition.watermark_lateness)
        self._take_due(arrival.position)
        if isinstance(event, events.ClockTicked):
            return True
        meant = self._meant_by(event)
        if meant is None:
            self._outputs.append(_ambiguous(event, arrival))
            return True
        known = self._state(meant)
        first = self._first_turns.of(meant) if known is None or known.deadline is None else 0
        added = (arrival.risk, arrival.vector, first, arrival.language, arrival.harms, arrival.reading)
        item = SessionInput(event, arrival.position, self.watermark, *added)
        state, fired = self._apply(meant, known, item)
        if isinstance(event, events.AnyTurn):
            self._count(meant, event, state, fired)
        return True

    def _take_due(self, position: events.Position) -> None:
        """What the watermark has reached."""
        watermark, policy = self._clock.watermark, self._policy.partition
        if self._namesakes:
            self._namesakes.clear()
        if self._open.may_be_due(watermark) or len(self._open) > policy.open_sessions:
            self._time_out(position)
        if self._closed.may_be_due(watermark) or len(self._closed) > policy.closed_sessions:
            self._forget(position)
        if self._snoozed.may_be_due(watermark):
            for until, key in self._first_of(self._snoozed):  # an alert is told again
                self._come_due(key, self._known(key), until, "snooze_over", position)
        if self._apps.may_close(watermark):
            self._outputs += self._apps.close(watermark, position)

    def _count(self, key: str, turn: events.AnyTurn, state: SessionState, fired: int) -> None:
        """A turn was folded into its session."""
        if isinstance(turn, events.UnnumberedTurn) and state.last_point is None:
            return  # it came before
        self._turns += 1
        self._state_bytes += self._footprint.turn(key, turn)
        risk = state.last_point[1] if state.last_point else None
        self._apps.observe(turn, self.watermark, risk, fired)

    def _meant_by(self, event: events.AnyTurn | events.SessionControl) -> str | None:
        """Key of the session that an event changes; None where it names no app, and several have such a session."""
        if event.app_id:
            return events.session_key(event.app_id, event.session_id)
        app_id = events.app_meant(self._apps_with(event.session_id))
        return None if app_id is None else events.session_key(app_id, event.session_id)

    def _apps_with(self, session_id: str) -> list[str]:
        """Apps of which a session of this id is known."""
        keys = ((app_id, events.session_key(app_id, session_id)) for app_id in sorted(self._known_apps))
        return [app_id for app_id, key in keys if key in self._open or key in self._closed]

    def _time_out(self, position: events.Position) -> None:
        """Close what is due; of sessions beyond the bound those that are due next."""
        closed_bytes = 0
        for deadline, key in self._first_of(self._open, self._policy.partition.open_sessions):
            if closed_bytes > CLOSINGS_STATE_BYTES:
                return
            state = self._known(key)
            closed_bytes += self._footprint.closing(key, state)
            due = deadline <= self.watermark
            self._come_due(key, state, deadline, "timed_out" if due else "evicted", position)

    def _first_of(self, deadlines: Deadlines, most: int | None = None) -> Iterator[tuple[datetime, str]]:
        """What is due, the first first, and what is due next beyond so many; as much as one record takes."""
        for _ in range(MAX_TIMEOUTS_PER_RECORD):
            first = deadlines.first()
            if first is None or (first[0] > self.watermark and (most is None or len(deadlines) <= most)):
                return
            yield first

    def _come_due(
        self,
        key: str,
        state: SessionState,
        deadline: datetime,
        reason: Literal["timed_out", "evicted", "snooze_over"],
        position: events.Position,
    ) -> None:
        session_id = events.SessionName.of_key(key).session_id
        timed_out = SessionTimedOut(session_id, deadline, reason, self._namesakes[session_id])
        self._namesakes[session_id] += 1
        self._apply(key, state, SessionInput(timed_out, position, self.watermark))

    def _forget(self, position: events.Position) -> None:
        """Forget closed sessions whose retention is over, or which are too many."""
        for deadline, key in self._first_of(self._closed, self._policy.partition.closed_sessions):
            forgotten = SessionTimedOut(events.SessionName.of_key(key).session_id, deadline)
            state = self._known(key)
            self._state_bytes += self._first_turns.forget(key, state.head.last_turn)
            self._apply(key, state, SessionInput(forgotten, position, self.watermark))

    def _apply(self, key: str, state: SessionState | None, item: SessionInput) -> tuple[SessionState, int]:
        """Fold one input into its session and return it with the number of alerts that it raised."""
        if state is None:
            self._state_bytes += self._footprint.touch(key)
        elif not isinstance(item.event, events.AnyTurn):
            self._state_bytes += self._footprint.closing(key, state)
            if isinstance(item.event, events.TurnCorrected):
                self._state_bytes += utf8_bytes(item.event.content) + record_bytes(key)
        state, outputs = fold(state, item, self._policy)
        self._sessions[key] = state
        self._note(key, state.due)
        self._state_bytes += self._footprint.topics_and_notables(key, state)
        if not outputs:
            return state, 0
        self._outputs += outputs
        self._state_bytes += self._footprint.segments(outputs)
        return state, sum([isinstance(output, events.AlertChanged) and output.cause == "raised" for output in outputs])

    def _state(self, key: str) -> SessionState | None:
        state = self._sessions.get(key)
        if state is None and (parts := self._entities.get(key)) is not None:
            state = self._warm.pop(key, None) or SessionState.load(parts)
            self._state_bytes += self._footprint.touch(key, len(parts["head"]))
        return state

    def _known(self, key: str) -> SessionState:
        state = self._state(key)
        assert state is not None, "a session with a deadline has a state"  # noqa: S101
        return state

    def _note(self, key: str, due: Due) -> None:
        """What is due of a session now."""
        self._schedule(key, due.deadline, due.closed)
        if due.mode in (None, events.Mode.CALM):
            self._alarmed.pop(key, None)
        else:
            self._alarmed[key] = due.mode
        if due.snoozed_until is None:
            self._snoozed.drop(key)
        else:
            self._snoozed.set(key, due.snoozed_until)

    def _schedule(self, key: str, deadline: datetime | None, closed: bool) -> None:
        held, other = (self._closed, self._open) if closed else (self._open, self._closed)
        was_known = (held.drop(key) if deadline is None else held.set(key, deadline)) | other.drop(key)
        if was_known != (deadline is not None):
            app_id = events.SessionName.of_key(key).app_id
            self._known_apps[app_id] += -1 if was_known else 1
            if not self._known_apps[app_id]:
                del self._known_apps[app_id]

    # --- results

    def _begin(self) -> None:
        super()._begin()
        self._sessions: dict[str, SessionState] = {}

    def _changed_bytes(self) -> int:
        return self._state_bytes + self._apps.changed_bytes

    def _take_changes(self) -> dict[str, dict[str, bytes | None]]:
        changed: dict[str, dict[str, bytes | None]] = {
            key: parts for key, state in self._sessions.items() if (parts := state.changed_parts())
        }
        changed[PARTITION_ENTITY] = {
            "clock": msgspec.msgpack.encode(self._clock),
            **self._apps.take_changes(),
            **self._first_turns.take_changes(),
        }
        self._keep_warm()
        return changed

    def _keep_warm(self) -> None:
        """Keep the latest sessions decoded; the caller stores the result before it goes on, or drops this fold."""
        for key, state in list(self._sessions.items())[-WARM_SESSIONS:]:
            if not state.closed:
                state.parts.settle()
                self._warm[key] = state
        for key in list(self._warm)[:-WARM_SESSIONS]:
            del self._warm[key]


def _ambiguous(event: events.AnyTurn | events.SessionControl, arrival: DecodedArrival) -> events.DeadLetter:
    """The dead letter of an event that names no app, of a session id that several have."""
    at = arrival.position
    return fitting_dead_letter(
        events.DeadLetter(
            id=event_id("dead_letter", at.topic, at),
            topic=at.topic,
            partition=at.partition,
            offset=at.offset,
            stage="fold",
            reason="ambiguous_app",
            detail="several apps have a session of this id: name the app in `app_id`",
            key=event.session_id.encode(),
            value=encode(event),
            headers=[],
            appended_at=arrival.appended_at,
        )
    )
