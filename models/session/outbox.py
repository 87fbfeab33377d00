"""Where the events of one fold are collected, and what each of them begins with."""

from __future__ import annotations

from datetime import datetime

from models.events import OutputEvent
from models.events.base import OutputFields
from models.events.ids import event_id
from models.session.state import Open
from models.wire.arrival import SessionInput, SessionTimedOut

_TIMED_OUT_ORDINAL = 1 << 20
"""A time-out is caused by the record that moved the watermark. That can be the session's own next turn, whose outputs
then have the same source: ordinals from here on keep the two apart."""


class Outbox:
    """Collects what one fold emits, in order.

    Args:
        head: Of the session: whose it is, when an event is made.
        item: The input; its position is the outputs' source.
        timestamp: Event time of the outputs.

    Attributes:
        outputs: So far.
    """

    def __init__(self, head: Open, item: SessionInput, timestamp: datetime) -> None:
        self.outputs: list[OutputEvent] = []
        self.item = item
        self.timestamp = timestamp
        self._head = head
        self._ordinals: dict[str, int] = {}

    def id_of(self, kind: str, first: int = 0) -> str:
        """Id of the next event of a kind, counted from `first`."""
        ordinal = self._ordinals[kind] = self._ordinals.get(kind, first - 1) + 1
        return event_id(kind, self.item.event.session_id, self.item.position, ordinal)

    def common(self, kind: str) -> OutputFields:
        """What the next event of a kind begins with."""
        event = self.item.event
        return {
            "id": self.id_of(kind, _TIMED_OUT_ORDINAL if isinstance(event, SessionTimedOut) else 0),
            "session_id": event.session_id,
            "user_id": self._head.user_id,
            "app_id": self._head.app_id,
            "timestamp": self.timestamp,
            "source": self.item.position,
        }
