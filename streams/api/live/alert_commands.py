"""Routes by which people act on alerts of the live page: acknowledging and labelling, as `turntide alerts` does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Protocol

import structlog
from msgspec import Meta, Struct

from models.events import AlertAcknowledged, AlertLabelled, AlertStatus, Position
from models.events.fields import Identifier
from models.events.topics import TURNS
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.commands import read_only
from streams.api.live.board import LiveBoard
from streams.api.live.known import KnownAlert
from streams.api.live.messages import Acknowledge, Label, Written
from streams.api.live.routes import LIVE
from streams.http.audit import note_ids
from streams.http.problems import Problem, invalid_field
from streams.http.route import Accepted
from streams.http.security import caller
from streams.kafka.producer import Record

log = structlog.get_logger(__name__)

MOST_CHARS = 1_000
"""Of a note or a reason."""


class EventWriter(Protocol):
    """Writes to any topic (`streams.api.commands.KafkaCommands`)."""

    async def write(self, topic: str, record: Record) -> Position:
        """Write a record, as `KafkaCommands` does."""
        ...


class OfAlert(Struct, frozen=True, kw_only=True):
    """A request about an alert."""

    alert_id: Annotated[Identifier, Meta(description="As the stream has it.")]


class AlertCommands:
    """Writes what somebody says of an alert to `turns.v1`, under its session's key: it has its place in their order.

    Args:
        board: Alerts that are known.
        writer: Where it goes; None: this role takes none.
        now: The clock of events.
    """

    def __init__(self, board: LiveBoard, writer: EventWriter | None, *, now: Callable[[], datetime] = now_utc) -> None:
        self._board = board
        self._writer = writer
        self._now = now

    @LIVE.post(
        "/alerts/{alert_id:path}/acknowledge", "acknowledge_alert", audits="acted", errors=(HTTPStatus.CONFLICT,)
    )
    async def acknowledge(self, asked: OfAlert, body: Acknowledge) -> Accepted[Written]:
        """Say that somebody looks at an alert: it is not repeated until it grows worse or is resolved.

        Raises:
            Problem: 404 no such alert of the session; 409 it is resolved; 422 the note is too long; 503 nothing is
                written here.
            DeliveryFailed: The log did not confirm it.
        """
        alert = self._known(asked.alert_id, body.session_id)
        _require_short("note", body.note)
        if alert.event.status is AlertStatus.RESOLVED:
            raise Problem(HTTPStatus.CONFLICT, "resolved", "the alert is resolved: there is nothing to acknowledge")
        event = AlertAcknowledged(
            session_id=body.session_id,
            app_id=alert.event.app_id,
            timestamp=self._now(),
            alert_id=asked.alert_id,
            by=caller().name,
            note=body.note,
        )
        return await self._write(event)

    @LIVE.post("/alerts/{alert_id:path}/label", "label_alert", audits="acted")
    async def label(self, asked: OfAlert, body: Label) -> Accepted[Written]:
        """Say whether an alert was right; back-tests and calibration measure by it, and the latest label counts.

        Raises:
            Problem: 404 no such alert of the session; 422 the reason is too long; 503 nothing is written here.
            DeliveryFailed: The log did not confirm it.
        """
        alert = self._known(asked.alert_id, body.session_id)
        _require_short("reason", body.reason)
        event = AlertLabelled(
            session_id=body.session_id,
            app_id=alert.event.app_id,
            timestamp=self._now(),
            alert_id=asked.alert_id,
            escalating=body.label,
            reason=body.reason,
            by=caller().name,
        )
        written = await self._write(event)
        self._board.take_label(asked.alert_id, escalating=body.label)
        return written

    def _known(self, alert_id: str, session_id: str) -> KnownAlert:
        """The alert, if it is the caller's to see.

        One whose session was erased is unknown: what is said of it would bring its name back.
        """
        found = self._board.alert(alert_id)
        if found is None or found.event.session_id != session_id or not caller().may_read(found.event.app_id):
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "not_found",
                "this session has no such alert within live.window; `turntide alerts list` shows older ones",
            )
        note_ids({"app_id": found.event.app_id}.get)
        return found

    async def _write(self, event: AlertAcknowledged | AlertLabelled) -> Accepted[Written]:
        if self._writer is None:
            raise read_only()
        record = Record(event.session_id.encode(), encode(event), headers_for(event))
        place = await self._writer.write(TURNS.name, record)
        log.info("alert_deed", deed=type(event).__name__, alert_id=event.alert_id, by=event.by)
        return Accepted(answered(Written, place))


def _require_short(field: str, text: str) -> None:
    if len(text) > MOST_CHARS:
        raise invalid_field(field, f"has more than {MOST_CHARS} characters")
