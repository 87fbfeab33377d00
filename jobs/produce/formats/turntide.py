"""Turntide's own events, one a line, as they stand on `turns.v1`."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.produce.formats.filling import Filling, check_content
from models.events import ControlEvent, InputEvent, Turn

RULE = (
    "a turn or control event a line, as on turns.v1; lines of several sessions may alternate; only app_id and "
    "user_id may be missing"
)

_turn = msgspec.json.Decoder(Turn)
_fields = msgspec.json.Decoder(dict[str, Any])


def read(document: bytes, position: int, filling: Filling) -> list[list[InputEvent]]:
    """One event; a whole turn takes one decode, only what is none is looked at again.

    Raises:
        msgspec.DecodeError: It is neither a turn nor a control event.
        InvalidRecord: Its content is too large.
    """
    _ = position
    try:
        event: InputEvent = _turn.decode(document)
    except msgspec.ValidationError:
        event = _filled(_fields.decode(document), filling)
    if isinstance(event, Turn):
        check_content(event.content, event.turn)
    return [[event]]


def _filled(fields: dict[str, Any], filling: Filling) -> InputEvent:
    if fields.get("type", "turn") != "turn":
        control: ControlEvent = msgspec.convert(fields, ControlEvent)
        return control
    fields.setdefault("app_id", filling.app_id)
    session_id = fields.get("session_id")
    if isinstance(session_id, str):
        fields.setdefault("user_id", filling.user_of(session_id))
    return msgspec.convert(fields, Turn)
