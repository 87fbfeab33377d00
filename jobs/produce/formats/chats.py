"""Formats of chats: OpenAI's, ShareGPT's, dialogues of turns, and Turntide's own events as on `turns.v1`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from jobs.produce.formats.filling import FileMessage, Filling, check_content
from models.events import DEFAULT_APP, ControlEvent, Identifier, InputEvent, Scalar, Turn
from models.messages.openai import ChatMessage, parts_of


class _OpenAiConversation(Struct):
    messages: list[ChatMessage]
    session_id: Identifier | None = None
    id: Identifier | None = None
    user_id: Identifier | None = None
    user: Identifier | None = None
    app_id: Identifier | None = None


_openai = msgspec.json.Decoder(_OpenAiConversation)


def read_openai(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation, as OpenAI's fine-tuning files and chat logs have it."""
    chat = _openai.decode(document)
    session_id = chat.session_id or chat.id or filling.session_id(position)
    said = [
        FileMessage(role=role.value, content=content, timestamp=message.timestamp, metadata=noted or None)
        for message in chat.messages
        for role, content, noted in parts_of(message)
    ]
    return [filling.turns(session_id, said, user_id=chat.user_id or chat.user, app_id=chat.app_id)]


class _ShareGptMessage(Struct):
    speaker: str = field(name="from")
    value: str


class _ShareGptConversation(Struct):
    conversations: list[_ShareGptMessage]
    id: Identifier | None = None
    system: str | None = None


_sharegpt = msgspec.json.Decoder(_ShareGptConversation)


def read_sharegpt(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation of a ShareGPT export; a `system` text beside it is its first turn."""
    chat = _sharegpt.decode(document)
    said = [FileMessage(role=message.speaker, content=message.value) for message in chat.conversations]
    if chat.system:
        said.insert(0, FileMessage(role="system", content=chat.system))
    return [filling.turns(chat.id or filling.session_id(position), said)]


class _Dialogue(Struct):
    turns: list[FileMessage]
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    app_id: Identifier | None = None


_dialogue = msgspec.json.Decoder(_Dialogue)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_scalar = msgspec.json.Decoder(Scalar)


def read_dialogue(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation of dialogues, one a line."""
    dialogue = _dialogue.decode(document)
    # Labels beside a dialogue are answers to what is asked of it: they pass on only when told to.
    metadata = _beside(document) if filling.keep_metadata else None
    said = [msgspec.structs.replace(turn, metadata=metadata) for turn in dialogue.turns]
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


_turn = msgspec.json.Decoder(Turn)
_line = msgspec.json.Decoder(dict[str, Any])


def read_turntide(document: bytes, _position: int, filling: Filling) -> list[list[InputEvent]]:
    """One event; a whole turn takes one decode, only what is none is looked at again."""
    try:
        event: InputEvent = _turn.decode(document)
        if event.app_id == DEFAULT_APP and filling.app_id != DEFAULT_APP:
            event = _filled(_line.decode(document), filling)
    except msgspec.ValidationError:
        event = _filled(_line.decode(document), filling)
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
