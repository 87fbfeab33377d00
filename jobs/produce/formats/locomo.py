"""LoCoMo: very long conversations of two friends in dated sessions (Maharana et al. 2024)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw, Struct

from jobs.produce.formats.filling import FileMessage, Filling
from models.errors import InvalidRecord
from models.events import Identifier, Scalar, Turn

RULE = (
    'a sample a line or in one array; each dated session_N is one session "<sample_id>/session_N"; speaker_a is the '
    "user, speaker_b the assistant; the content is `speaker: text [image caption]`; one minute per turn from the "
    "session's date; all sessions of a sample have one user; dia_id and blip_caption go into the metadata"
)

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


_decoder = msgspec.json.Decoder(_LocomoSample)
_lines = msgspec.json.Decoder(list[_LocomoTurn])
_string = msgspec.json.Decoder(str)


def read(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """The sample's sessions in the order of their numbers; its questions and summaries are left out.

    Raises:
        msgspec.DecodeError: It is no such object.
        InvalidRecord: A session has no readable date, or a message is too long.
    """
    _ = position
    sample = _decoder.decode(document)
    parts = sample.conversation
    user = _string.decode(parts.get("speaker_a", b'""'))
    names = [name for name in parts if name.removeprefix("session_").isdigit()]
    return [
        filling.turns(
            f"{sample.sample_id}/{name}",
            _said(_lines.decode(parts[name]), user, _date(parts, name)),
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
            metadata=_metadata(line),
        )
        for number, line in enumerate(lines)
    ]


def _content(line: _LocomoTurn) -> str:
    """Who says what, and what the picture shows: roles are no names, and questions ask by name."""
    caption = f" [{line.blip_caption}]" if line.blip_caption else ""
    return f"{line.speaker}: {line.text}{caption}"


def _metadata(line: _LocomoTurn) -> dict[str, Scalar]:
    metadata: dict[str, Scalar] = {"dia_id": line.dia_id}
    if line.blip_caption:
        metadata["blip_caption"] = line.blip_caption
    return metadata


def _date(parts: dict[str, Raw], name: str) -> datetime:
    """`1:56 pm on 8 May, 2023`, taken as UTC."""
    try:
        text = _string.decode(parts[f"{name}_date_time"])
        return datetime.strptime(text, _DATE_FORMAT).replace(tzinfo=UTC)
    except (KeyError, ValueError) as error:
        raise InvalidRecord(
            "unreadable_date", f"{name}_date_time is missing or not as in `1:56 pm on 8 May, 2023`"
        ) from error
