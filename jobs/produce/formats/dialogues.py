"""Dialogues, one a line: a session id and its turns."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from jobs.produce.formats.filling import FileMessage, Filling
from models.events import Identifier, Ratio, Scalar, Turn, TurnNumber

RULE = (
    '{"session_id", "turns": [{"role", "content"}]} a line; a turn may have turn, risk, timestamp, the line user_id '
    "and app_id; other scalars of the line are left out unless --keep-metadata"
)


class _Turn(Struct):
    role: str
    content: str
    turn: TurnNumber | None = None
    risk: Ratio | None = None
    timestamp: datetime | None = None


class _Dialogue(Struct):
    turns: list[_Turn]
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    app_id: Identifier | None = None


_decoder = msgspec.json.Decoder(_Dialogue)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_scalar = msgspec.json.Decoder(Scalar)


def read(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation.

    Raises:
        msgspec.DecodeError: It is no such object.
        InvalidRecord: A role is unknown, or a message too long.
    """
    dialogue = _decoder.decode(document)
    # Labels beside a dialogue are answers to what is asked of it: they pass on only when told to.
    metadata = _beside(document) if filling.keep_metadata else None
    said = [
        FileMessage(
            role=turn.role,
            content=turn.content,
            turn=turn.turn,
            risk=turn.risk,
            timestamp=turn.timestamp,
            metadata=metadata,
        )
        for turn in dialogue.turns
    ]
    session_id = dialogue.session_id or filling.session_id(position)
    return [filling.turns(session_id, said, user_id=dialogue.user_id, app_id=dialogue.app_id)]


def _beside(document: bytes) -> dict[str, Scalar] | None:
    known = _Dialogue.__struct_fields__
    scalars = {
        name: _scalar.decode(raw)
        for name, raw in _fields.decode(document).items()
        if name not in known and not bytes(raw).startswith((b"{", b"["))
    }
    return scalars or None
