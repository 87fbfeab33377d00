"""Labelled dialogues as the log they would have been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from aiokafka.structs import ConsumerRecord

from jobs.shared.dialogues import LabelledDialogue
from models.events import AlertLabelled, InputEvent, SessionEnded, Turn
from models.wire.codec import encode

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first turn: a fixed one, so that the same file gives the same figures."""
BETWEEN_TURNS = timedelta(minutes=1)
"""Further apart than turns that a policy merges, nearer than a time-out."""


def as_log(dialogues: Sequence[LabelledDialogue], topic: str) -> Iterator[ConsumerRecord]:
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


def records_in(dialogues: Sequence[LabelledDialogue]) -> int:
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


def _events(dialogue: LabelledDialogue, begins: datetime) -> Iterator[InputEvent]:
    now = begins
    for number, said in zip(dialogue.numbers, dialogue.turns, strict=True):
        yield Turn(
            session_id=dialogue.session_id,
            user_id=dialogue.session_id,
            app_id=dialogue.source,
            turn=number,
            role=said.role,
            content=said.content,
            timestamp=now,
        )
        now += BETWEEN_TURNS
    yield AlertLabelled(session_id=dialogue.session_id, timestamp=now, alert_id="", escalating=dialogue.escalating)
    yield SessionEnded(session_id=dialogue.session_id, timestamp=now)
