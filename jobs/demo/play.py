"""Sending the conversations: in the order of event time, at a visible pace, over one connection."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from jobs.demo.conversations import Cue, CueAct
from jobs.demo.state import DemoState
from jobs.shared.sending import Sender
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.kafka.producer import Record

PLAY_SECONDS = 40.0
"""How long the play takes at speed 1."""
_ALERT_WITHIN_S = 20.0
_LOOK_AGAIN_S = 0.05


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
        await self._outlet.add(Record(event.session_id.encode(), encode(event), headers_for(event)))
        await self._outlet.finish()

    async def _alert_id(self, cue: Cue) -> str | None:
        """The alert to acknowledge, once it is there; None when it does not come: the summary will say so."""
        deadline_s = time.monotonic() + _ALERT_WITHIN_S
        while (alert := self._state.alert_of(cue.conversation.session_id)) is None:
            if time.monotonic() > deadline_s:
                return None
            await asyncio.sleep(_LOOK_AGAIN_S)
        return alert.alert_id
