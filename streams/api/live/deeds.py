"""Commands of the live page: acknowledging and labelling alerts, as `turntide alerts ack` and `label` do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Protocol

import structlog

from models.events import AlertAcknowledged, AlertLabelled, AlertStatus, Position
from models.events.topics import TURNS
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.api.apps.messages import now_utc
from streams.api.commands import read_only
from streams.api.live.board import Board
from streams.api.live.known import KnownAlert
from streams.api.live.messages import Acknowledge, Label, Written
from streams.http.problems import Problem, invalid_field
from streams.http.security import Caller
from streams.kafka.producer import Record

log = structlog.get_logger(__name__)

MOST_CHARS = 1_000
"""Of a note or a reason."""


class EventWriter(Protocol):
    """Writes to any topic (`streams.api.commands.KafkaCommands`)."""

    async def write(self, topic: str, record: Record) -> Position:
        """Write a record where its key belongs; on return the log has it, and where.

        Args:
            topic: Without the prefix.
            record: Has a key.

        Raises:
            DeliveryFailed: The log did not confirm it.
        """
        ...


class AlertDeeds:
    """Writes what somebody says of an alert to `turns.v1`, under its session's key: it has its place in their order.

    Args:
        board: Alerts that are known.
        writer: Where it goes; None: this role takes none.
        now: The clock of events.
    """

    def __init__(self, board: Board, writer: EventWriter | None, *, now: Callable[[], datetime] = now_utc) -> None:
        self._board = board
        self._writer = writer
        self._now = now

    async def acknowledge(self, caller: Caller, alert_id: str, asked: Acknowledge) -> Written:
        """Note that somebody looks at it: it is not repeated until it grows worse or is resolved.

        Raises:
            Problem: 404 no such alert of the session; 409 it is resolved; 422 the note is too long; 503 nothing is
                written here.
            DeliveryFailed: The log did not confirm it.
        """
        alert = self._known(caller, alert_id, asked.session_id)
        _require_short("note", asked.note)
        if alert.event.status is AlertStatus.RESOLVED:
            raise Problem(HTTPStatus.CONFLICT, "resolved", "the alert is resolved: there is nothing to acknowledge")
        event = AlertAcknowledged(
            session_id=asked.session_id, timestamp=self._now(), alert_id=alert_id, by=caller.name, note=asked.note
        )
        return await self._write(event)

    async def label(self, caller: Caller, alert_id: str, asked: Label) -> Written:
        """Say whether it was right, also of a resolved one: back-tests measure by it. The latest label counts.

        Raises:
            Problem: 404 no such alert of the session; 422 the reason is too long; 503 nothing is written here.
            DeliveryFailed: The log did not confirm it.
        """
        self._known(caller, alert_id, asked.session_id)
        _require_short("reason", asked.reason)
        event = AlertLabelled(
            session_id=asked.session_id,
            timestamp=self._now(),
            alert_id=alert_id,
            escalating=asked.label,
            reason=asked.reason,
            by=caller.name,
        )
        written = await self._write(event)
        self._board.take_label(alert_id, escalating=asked.label)
        return written

    def _known(self, caller: Caller, alert_id: str, session_id: str) -> KnownAlert:
        """The alert, if it is the caller's to see.

        One whose session was erased is unknown: what is said of it would bring its name back.
        """
        found = self._board.alert(alert_id)
        if found is None or found.event.session_id != session_id or not caller.may_read(found.event.app_id):
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "not_found",
                "this session has no such alert within live.window; `turntide alerts list` shows older ones",
            )
        return found

    async def _write(self, event: AlertAcknowledged | AlertLabelled) -> Written:
        if self._writer is None:
            raise read_only()
        record = Record(event.session_id.encode(), encode(event), headers_for(event))
        place = await self._writer.write(TURNS.name, record)
        log.info("alert_deed", deed=type(event).__name__, alert_id=event.alert_id, by=event.by)
        return Written(topic=place.topic, partition=place.partition, offset=place.offset)


def _require_short(field: str, text: str) -> None:
    if len(text) > MOST_CHARS:
        raise invalid_field(field, f"has more than {MOST_CHARS} characters")
