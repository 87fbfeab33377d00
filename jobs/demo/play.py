"""Sending of the conversations in the order of event time, at a visible pace, and the state of the demo meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from jobs.demo.conversations import Cue, CueAct, DemoConversation
from jobs.shared.sending import Sender
from models.events import AlertChanged, OutputEvent, ProfileUpdated
from streams.kafka.records import input_record

PLAY_SECONDS = 40.0
"""How long the play takes at speed 1."""
_ALERT_WITHIN_S = 20.0
_LOOK_AGAIN_S = 0.05


class DemoState(Struct):
    """What the view shows while conversations are played.

    Attributes:
        conversations: Of the play, by session.
        seen: Ids of events; the log may hold one twice.
        alerts: Alert id → its changes, in their order.
        turns: Session → turns that its latest profile accounts for.
        sent_at_s: (session, turn) → when it was handed to the producer, monotonic seconds.
        latency_s: Alert id → from the sending of its turn to its arrival here.
        lag: Records of `turns.v1` that the sessions role has not committed; None: not known yet.
        archived: Records of all topics that the archive has landed; None: not known yet.
        elapsed_s: Since the play began.
    """

    conversations: dict[str, DemoConversation]
    seen: set[str] = set()
    alerts: dict[str, list[AlertChanged]] = {}
    turns: dict[str, int] = {}
    sent_at_s: dict[tuple[str, int], float] = {}
    latency_s: dict[str, float] = {}
    lag: int | None = None
    archived: int | None = None
    elapsed_s: float = 0.0

    @classmethod
    def of(cls, conversations: Iterable[DemoConversation]) -> DemoState:
        """Before the first turn."""
        return cls({each.session_id: each for each in conversations})

    @property
    def planned_turns(self) -> int:
        """Turns of the whole play."""
        return sum(len(each.turns) for each in self.conversations.values())

    @property
    def folded_turns(self) -> int:
        """Turns that the profiles account for."""
        return sum(self.turns.values())

    def alert_of(self, session_id: str) -> AlertChanged | None:
        """Latest change of the session's latest alert."""
        changes = (changes[-1] for changes in reversed(self.alerts.values()))
        return next((change for change in changes if change.session_id == session_id), None)

    def take(self, event: OutputEvent, at_s: float) -> bool:
        """Note one event that arrived at `at_s`, monotonic seconds; returns whether it was new."""
        if event.id in self.seen:
            return False
        self.seen.add(event.id)
        if isinstance(event, ProfileUpdated):
            self.turns[event.session_id] = event.turn_count
        elif isinstance(event, AlertChanged):
            sent_s = self.sent_at_s.get((event.session_id, event.turn))
            if event.alert_id not in self.alerts and sent_s is not None:
                self.latency_s[event.alert_id] = max(0.0, at_s - sent_s)
            self.alerts.setdefault(event.alert_id, []).append(event)
        return True


class Play:
    """Sends cues and notes what was sent.

    Event times end now: the play begins in the past, its whole length ago, and event time runs as much faster than the
    clock as the play is shorter than that. So no turn is ever dated in the future.

    Args:
        outlet: To `turns.v1`.
        state: Told what is sent; asked for the alerts that are to be acknowledged.
        cues: In the order of event time.
        speed: Multiple of the usual pace.
    """

    def __init__(self, outlet: Sender, state: DemoState, cues: list[Cue], *, speed: float = 1.0) -> None:
        self._outlet = outlet
        self._state = state
        self._cues = cues
        self._length = cues[-1].at
        self._speedup = self._length.total_seconds() / PLAY_SECONDS * speed

    async def run(self) -> None:
        """Send everything; each event is confirmed by the broker before the next.

        Raises:
            DeliveryFailed: The broker did not confirm an event.
        """
        began, began_s = datetime.now(UTC) - self._length, time.monotonic()
        for cue in self._cues:
            await asyncio.sleep(began_s + cue.at.total_seconds() / self._speedup - time.monotonic())
            alert_id = await self._alert_id(cue) if cue.act is CueAct.ACKNOWLEDGE else None
            if alert_id is not None or cue.act is not CueAct.ACKNOWLEDGE:
                await self._send(cue, began, alert_id)

    async def _send(self, cue: Cue, began: datetime, alert_id: str | None) -> None:
        event = cue.event(began, alert_id)
        if cue.act is CueAct.TURN:
            self._state.sent_at_s[event.session_id, cue.turn] = time.monotonic()
        await self._outlet.add(input_record(event))
        await self._outlet.finish()

    async def _alert_id(self, cue: Cue) -> str | None:
        """The alert to acknowledge, once it is there; None when it does not come: the summary will say so."""
        deadline_s = time.monotonic() + _ALERT_WITHIN_S
        while (alert := self._state.alert_of(cue.conversation.session_id)) is None:
            if time.monotonic() > deadline_s:
                return None
            await asyncio.sleep(_LOOK_AGAIN_S)
        return alert.alert_id
