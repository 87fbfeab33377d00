"""Conversations as ShareGPT exports and the data sets modelled on it have them."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from jobs.produce.formats.filling import FileMessage, Filling
from models.events import Identifier, Turn

RULE = '{"conversations": [{"from": "human"|"gpt"|…, "value"}]} a line or in one array, with optional id, system'


class _ShareGptMessage(Struct):
    speaker: str = field(name="from")
    value: str


class _ShareGptConversation(Struct):
    conversations: list[_ShareGptMessage]
    id: Identifier | None = None
    system: str | None = None


_decoder = msgspec.json.Decoder(_ShareGptConversation)


def read(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation; a `system` text beside it is its first turn.

    Raises:
        msgspec.DecodeError: It is no such object.
        InvalidRecord: A role is unknown, or a message too long.
    """
    chat = _decoder.decode(document)
    said = [FileMessage(role=message.speaker, content=message.value) for message in chat.conversations]
    if chat.system:
        said.insert(0, FileMessage(role="system", content=chat.system))
    return [filling.turns(chat.id or filling.session_id(position), said)]
