"""Labelled dialogues as the log they would have been: JSON Lines of dialogues that are known to escalate or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from aiokafka.structs import ConsumerRecord
from msgspec import Meta, Struct

from models.codec import encode
from models.errors import ConfigurationError
from models.events import AlertLabelled, Identifier, InputEvent, Role, SessionEnded, Turn, TurnNumber

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first turn: a fixed one, so that the same file gives the same figures."""
BETWEEN_TURNS = timedelta(minutes=1)
"""Further apart than turns that a policy merges, nearer than a time-out."""


class Said(Struct, frozen=True, gc=False):
    """One turn of a dialogue."""

    turn: TurnNumber
    role: Role
    content: str


class Dialogue(Struct, frozen=True):
    """One line of a labelled file; other fields of it are passed over."""

    session_id: Identifier
    source: Identifier
    label: Literal["escalating", "benign"]
    turns: Annotated[list[Said], Meta(min_length=1)]


def read_dialogues(file: Path) -> list[Dialogue]:
    """Read a labelled file; blank lines are skipped.

    Raises:
        ConfigurationError: It cannot be read, holds no dialogue, a line is of another form, or a session comes twice.
            No text of a turn is in the message.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    decoder = msgspec.json.Decoder(Dialogue)
    found: dict[str, Dialogue] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            dialogue = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file}, line {number}: {error}") from error
        if dialogue.session_id in found:
            raise ConfigurationError(f"{file}, line {number}: session {dialogue.session_id} comes twice")
        found[dialogue.session_id] = dialogue
    if not found:
        raise ConfigurationError(f"{file} holds no dialogue: a JSON object on each line is wanted")
    return list(found.values())


def as_log(dialogues: Sequence[Dialogue], topic: str) -> Iterator[ConsumerRecord]:
    """The dialogues as records of one partition, one after another.

    A dialogue's source is its app, and its session its user's only one. Turns are a minute apart, the label follows the
    last of them as somebody would have given it, and the session ends before the next begins: so none times out or is
    evicted because others are in the file.

    Args:
        dialogues: Each with a session of its own.
        topic: Full name that the records carry.
    """
    offset, now = 0, BEGINS
    for dialogue in dialogues:
        for event in _events(dialogue, now):
            yield record_of(event, topic, offset=offset, appended_at=event.timestamp)
            offset, now = offset + 1, event.timestamp + BETWEEN_TURNS


def records_in(dialogues: Sequence[Dialogue]) -> int:
    """How many records `as_log` yields."""
    return sum(len(dialogue.turns) + 2 for dialogue in dialogues)


def record_of(
    event: InputEvent, topic: str, *, offset: int, appended_at: datetime, partition: int = 0
) -> ConsumerRecord:
    """An event as a consumer would read it from the broker."""
    key, value = event.session_id.encode(), encode(event)
    return ConsumerRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=round(appended_at.timestamp() * 1000),
        timestamp_type=1,
        key=key,
        value=value,
        checksum=None,
        serialized_key_size=len(key),
        serialized_value_size=len(value),
        headers=(),
    )


def _events(dialogue: Dialogue, begins: datetime) -> Iterator[InputEvent]:
    now = begins
    for said in dialogue.turns:
        yield Turn(
            session_id=dialogue.session_id,
            user_id=dialogue.session_id,
            app_id=dialogue.source,
            turn=said.turn,
            role=said.role,
            content=said.content,
            timestamp=now,
        )
        now += BETWEEN_TURNS
    escalating = dialogue.label == "escalating"
    yield AlertLabelled(session_id=dialogue.session_id, timestamp=now, alert_id="", escalating=escalating)
    yield SessionEnded(session_id=dialogue.session_id, timestamp=now)
