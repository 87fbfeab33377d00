"""Formats of published data sets.

OASST: message trees of OpenAssistant (OASST1, OASST2), as the released `.trees.jsonl` files have them. LoCoMo: very
long conversations of two friends in dated sessions (Maharana et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw, Struct

from jobs.produce.formats.filling import FileMessage, Filling
from models.errors import InvalidRecord
from models.events import Identifier, Turn


class _OasstMessage(Struct):
    message_id: str
    text: str
    role: str
    replies: list[_OasstMessage] = []
    user_id: Identifier | None = None
    created_date: datetime | None = None


class _Tree(Struct):
    message_tree_id: str
    prompt: _OasstMessage


def read_oasst(document: bytes, _position: int, filling: Filling) -> list[list[Turn]]:
    """The tree's paths, depth first."""
    tree = msgspec.json.decode(document, type=_Tree)
    return [
        filling.turns(
            f"{tree.message_tree_id}/{path[-1].message_id}",
            [FileMessage(role=m.role, content=m.text, timestamp=m.created_date) for m in path],
            user_id=tree.prompt.user_id,
        )
        for path in _paths(tree.prompt)
    ]


def _paths(root: _OasstMessage) -> Iterator[list[_OasstMessage]]:
    # A stack, no recursion: a file must not be able to exhaust ours.
    waiting = [[root]]
    while waiting:
        path = waiting.pop()
        replies = path[-1].replies
        if not replies:
            yield path
        waiting.extend([*path, reply] for reply in reversed(replies))


_MINUTE = timedelta(minutes=1)
_DATE_FORMAT = "%I:%M %p on %d %B, %Y"


class _LocomoTurn(Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _LocomoSample(Struct):
    sample_id: Identifier
    conversation: dict[str, Raw]


def read_locomo(document: bytes, _position: int, filling: Filling) -> list[list[Turn]]:
    """The sample's sessions in the order of their numbers; its questions and summaries are left out."""
    sample = msgspec.json.decode(document, type=_LocomoSample)
    parts = sample.conversation
    user = msgspec.json.decode(parts.get("speaker_a", b'""'), type=str)
    names = [name for name in parts if name.removeprefix("session_").isdigit()]
    return [
        filling.turns(
            f"{sample.sample_id}/{name}",
            _said(msgspec.json.decode(parts[name], type=list[_LocomoTurn]), user, _date(parts, name)),
            user_id=filling.user_id or f"user-{sample.sample_id}",
        )
        for name in sorted(names, key=lambda name: int(name.removeprefix("session_")))
    ]


def _said(lines: list[_LocomoTurn], user: str, began: datetime) -> list[FileMessage]:
    return [
        FileMessage(
            role="user" if line.speaker == user else "assistant",
            content=_content(line),
            timestamp=began + number * _MINUTE,
            metadata={"dia_id": line.dia_id, **({"blip_caption": line.blip_caption} if line.blip_caption else {})},
        )
        for number, line in enumerate(lines)
    ]


def _content(line: _LocomoTurn) -> str:
    """Who says what, and what the picture shows: roles are no names, and questions ask by name."""
    caption = f" [{line.blip_caption}]" if line.blip_caption else ""
    return f"{line.speaker}: {line.text}{caption}"


def _date(parts: dict[str, Raw], name: str) -> datetime:
    """`1:56 pm on 8 May, 2023`, taken as UTC."""
    try:
        text = msgspec.json.decode(parts[f"{name}_date_time"], type=str)
        return datetime.strptime(text, _DATE_FORMAT).replace(tzinfo=UTC)
    except (KeyError, ValueError) as error:
        raise InvalidRecord(
            "unreadable_date", f"{name}_date_time is missing or not in the form `1:56 pm on 8 May, 2023`"
        ) from error
