"""From a Kafka record to what the archive keeps of it.

Stated rules:

* A record of `turns.v1` that intake refuses is no turn: its offset is noted in `skipped`, its bytes come as a dead
  letter from the sessions role.
* A record of Turntide's own topics that cannot be decoded (should not happen) is noted there too, with its bytes.
* Tombstones, and records that carry out an erasure, are noted there without their keys: these name somebody who may be
  forgotten.
* U+0000 becomes U+2400 (`␀`) in every text. DuckLake takes a minimum or maximum with U+0000 as no value, then computes
  the table's from the next file alone and hides rows from `LIKE` and comparisons. Of a turn's content the exact bytes
  are in `content_exact`, which is null for all others.
* Fields that the schema does not name are kept in `extra`, as the producer wrote them.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from models.codec import decode_command, decode_input, decode_output
from models.errors import InvalidRecord
from models.events import Control, Turn
from models.policy import IntakePolicy
from models.topics import COMMANDS, TURNS, Topic
from streams.lake.columns import Landed
from streams.lake.schema import ERASED, FORGETTING, Skipped

TOMBSTONE = "tombstone"
NUL, NUL_SHOWN = "\x00", "\u2400"
UNREADABLE = "$unreadable"
"""Key in `extra` whose value is the whole record, base64: its unknown fields are no JSON that can be kept as text."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class KafkaRecord(Protocol):
    """What is read of a consumer's record."""

    @property
    def partition(self) -> int:
        """Partition number."""

    @property
    def offset(self) -> int:
        """Place in the partition."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; for `turns.v1` the broker's append time."""

    @property
    def key(self) -> bytes | None:
        """The record's key."""

    @property
    def value(self) -> bytes | None:
        """The record's value."""


def land(topic: Topic, full_name: str, record: KafkaRecord, intake: IntakePolicy) -> Landed | Skipped:
    """Decode one record of a public topic.

    Args:
        topic: Its topic.
        full_name: The topic's name on the broker.
        record: The record.
        intake: Which input is a turn; the same rules as the sessions role.
    """
    appended_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    try:
        event = _decode(topic, record, appended_at, intake)
    except InvalidRecord as error:
        return _skipped(topic, full_name, record, appended_at, error)
    if isinstance(event, FORGETTING):
        return _skipped(topic, full_name, record, appended_at, InvalidRecord(ERASED, "carries out an erasure"))
    value = record.value or b""
    exact = None
    if rb"\u0000" in value:
        if isinstance(event, Turn) and NUL in event.content:
            exact = event.content.encode()
        event = _without_nul(event)
    extra = _extra(event, value) if isinstance(event, Turn | Control) else None
    return Landed(event, record.partition, record.offset, appended_at, len(value), extra, exact)


def _decode(topic: Topic, record: KafkaRecord, appended_at: datetime, intake: IntakePolicy) -> Struct:
    if topic is TURNS:
        return decode_input(record.value, record.key, appended_at, intake)
    if topic is COMMANDS:
        return decode_command(record.value, record.key, appended_at, intake)
    if record.value is None:
        raise InvalidRecord(TOMBSTONE, "a deleted key, nothing to keep")
    return decode_output(topic, record.value)


def _skipped(topic: Topic, full_name: str, record: KafkaRecord, appended_at: datetime, error: InvalidRecord) -> Skipped:
    # The names in a key are nobody's business where its record is good, or has a dead letter.
    unwanted = topic in (TURNS, COMMANDS) or error.reason in (ERASED, TOMBSTONE)
    return Skipped(
        topic=full_name,
        kafka_partition=record.partition,
        first_offset=record.offset,
        last_offset=record.offset,
        reason=error.reason,
        detail=error.detail.replace(NUL, NUL_SHOWN),
        key=None if unwanted else record.key,
        value=None if unwanted else record.value,
        appended_at=appended_at,
    )


def _extra(event: Struct, value: bytes) -> str | None:
    try:
        fields = _fields.decode(value)
        unknown = fields.keys() - _known(type(event))
        return (
            msgspec.json.encode({name: fields[name] for name in fields if name in unknown}).decode()
            if unknown
            else None
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.encode({UNREADABLE: base64.b64encode(value).decode()}).decode()


@cache
def _known(event: type[Struct]) -> frozenset[str]:
    return frozenset((*event.__struct_fields__, "type"))


def _without_nul(event: Struct) -> Struct:
    plain = _shown(msgspec.to_builtins(event, builtin_types=(datetime, bytes)))
    clean: Struct = msgspec.convert(plain, type(event), builtin_types=(datetime, bytes))
    return clean


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(NUL, NUL_SHOWN)
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return value
