"""Chat messages as OpenAI's fine-tuning files and chat logs have them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from jobs.produce.formats.filling import FileMessage, Filling
from models.events import Identifier, Turn

RULE = (
    '{"messages": [{"role", "content"}]} a line, with optional session_id or id, user_id or user, app_id; text parts '
    "are joined, images and calls left out"
)


class _Part(Struct):
    text: str | None = None


class _OpenAiMessage(Struct):
    role: str
    content: str | list[_Part] | None = None


class _OpenAiConversation(Struct):
    messages: list[_OpenAiMessage]
    session_id: Identifier | None = None
    id: Identifier | None = None
    user_id: Identifier | None = None
    user: Identifier | None = None
    app_id: Identifier | None = None


_decoder = msgspec.json.Decoder(_OpenAiConversation)


def read(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation.

    Raises:
        msgspec.DecodeError: It is no such object.
        InvalidRecord: A role is unknown, or a message too long.
    """
    chat = _decoder.decode(document)
    session_id = chat.session_id or chat.id or filling.session_id(position)
    said = [FileMessage(role=message.role, content=_text(message.content)) for message in chat.messages]
    return [filling.turns(session_id, said, user_id=chat.user_id or chat.user, app_id=chat.app_id)]


def _text(content: str | list[_Part] | None) -> str:
    """A message that only calls tools or shows images is an empty turn: it keeps its place."""
    if isinstance(content, list):
        return "\n".join(part.text for part in content if part.text is not None)
    return content or ""
