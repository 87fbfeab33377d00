"""From a Kafka record to what the archive keeps of it.

Stated rules:

* A record of `turns.v1` that intake refuses is no turn: its offset is noted in `skipped`, its bytes come as a dead
  letter from the sessions role.
* A turn without a number is kept as `numbered.v1` has it, with its number; of `turns.v1` its offset is noted.
* A record of Turntide's own topics that cannot be decoded (should not happen) is noted there too, with its bytes.
* Tombstones, and records that carry out an erasure, are noted there without their keys: these name somebody who may be
  forgotten.
* U+0000 becomes U+2400 (`␀`) in every text. DuckLake takes a minimum or maximum with U+0000 as no value, then computes
  the table's from the next file alone and hides rows from `LIKE` and comparisons. Of a turn's content the exact bytes
  are in `content_exact`, which is null for all others.
* Fields that the schema does not name are kept in `extra`, as the producer wrote them.
"""

import base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec
from aiokafka import ConsumerRecord
from msgspec import Struct

from models.errors import InvalidRecord
from models.events import Control, Turn, TurnNumbered, UnnumberedTurn
from models.events.topics import COMMANDS, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import decode_command, decode_input, decode_output, plain_turns
from streams.archive.rows import Landed, Rows
from streams.archive.schema import ERASED, FORGETTING, TABLE_OF, TABLES, UNNUMBERED, Skipped
from streams.kafka.records import appended_at, appended_ms, uncollected

TOMBSTONE = "tombstone"
NUL, NUL_SHOWN = "\x00", "\u2400"
_ESCAPE, _NUL_ESCAPE = b"\\", rb"\u0000"
_FORGETTING = frozenset(FORGETTING)
_TURNS_TABLE = TABLES["turns"].name
UNREADABLE = "$unreadable"
"""Key in `extra` whose value is the whole record, base64: its unknown fields are no JSON that can be kept as text."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Landing(NamedTuple):
    """What became of some records: rows by the name of their table, and offsets without one."""

    rows: dict[str, Rows]
    skipped: list[Skipped]


def land_all(topic: Topic, full_name: str, records: Sequence[ConsumerRecord], intake: IntakePolicy) -> Landing:
    """Decode records of a public topic, in their order: what `land` says of each, many at a time."""
    landing, first = Landing({}, []), 0
    with uncollected():
        events = _plain_events(topic, records, intake)
    for alone in [row for row, event in enumerate(events) if event is None]:
        _take(landing, topic, events[first:alone], records[first:alone])
        first, row = alone + 1, land(topic, full_name, records[alone], intake)
        if isinstance(row, Skipped):
            landing.skipped.append(row)
        else:
            landing.rows.setdefault(TABLE_OF[type(row.event)].name, Rows()).append(row)
    _take(landing, topic, events[first:], records[first:])
    return landing


def _plain_events(topic: Topic, records: Sequence[ConsumerRecord], intake: IntakePolicy) -> list[Any]:
    """The events that are kept just as they are, None for records that `land` must look at."""
    values = [record.value for record in records]
    if topic is TURNS:
        received_ms = [appended_ms(record) for record in records]
        found: list[Any] = list(plain_turns(values, [record.key for record in records], received_ms, intake))
    else:
        found = list(_decoded(topic, records, intake))
    for row, value in enumerate(values):
        # Most have no escape at all, and one byte is found 20 times as quickly as six.
        if value is not None and _ESCAPE in value and _NUL_ESCAPE in value:
            found[row] = None
    return found


def _decoded(topic: Topic, records: Sequence[ConsumerRecord], intake: IntakePolicy) -> Iterator[Struct | None]:
    for record in records:
        try:
            event = _decode(topic, record, intake)
        except InvalidRecord:
            yield None
        else:
            yield None if type(event) in _FORGETTING else event


def _take(landing: Landing, topic: Topic, events: Sequence[Struct], records: Sequence[ConsumerRecord]) -> None:
    if not events:
        return
    # Turns are of a class of their own here (`models.wire.codec`).
    names = [_TURNS_TABLE] if topic is TURNS else [TABLE_OF[kind].name for kind in dict.fromkeys(map(type, events))]
    for name in dict.fromkeys(names):
        if len(names) == 1:
            kept, of = events, records
        else:
            rows = [row for row, event in enumerate(events) if TABLE_OF[type(event)].name == name]
            kept, of = [events[row] for row in rows], [records[row] for row in rows]
        landing.rows.setdefault(name, Rows()).extend(
            kept,
            [record.partition for record in of],
            [record.offset for record in of],
            [appended_ms(record) * 1_000 for record in of],
            [len(record.value or b"") for record in of],
        )


def land(topic: Topic, full_name: str, record: ConsumerRecord, intake: IntakePolicy) -> Landed | Skipped:
    """Decode one record of a public topic, whose full name on the broker is given too."""
    try:
        event = _decode(topic, record, intake)
    except InvalidRecord as error:
        return _skipped(topic, full_name, record, error)
    if type(event) in _FORGETTING:
        return _skipped(topic, full_name, record, InvalidRecord(ERASED, "carries out an erasure"))
    if isinstance(event, UnnumberedTurn):
        return _skipped(topic, full_name, record, InvalidRecord(UNNUMBERED, "stands on numbered.v1 with its number"))
    value = record.value or b""
    exact = None
    if _NUL_ESCAPE in value:
        if isinstance(event, Turn | TurnNumbered) and NUL in event.content:
            exact = event.content.encode()
        event = _without_nul(event)
    extra = _extra(event, value) if isinstance(event, Turn | Control) else None
    return Landed(event, record.partition, record.offset, appended_at(record), len(value), extra, exact)


def _decode(topic: Topic, record: ConsumerRecord, intake: IntakePolicy) -> Struct:
    if topic is TURNS:
        return decode_input(record.value, record.key, appended_at(record), intake)
    if topic is COMMANDS:
        return decode_command(record.value, record.key, appended_at(record), intake)
    if record.value is None:
        raise InvalidRecord(TOMBSTONE, "a deleted key, nothing to keep")
    return decode_output(topic, record.value)


def _skipped(topic: Topic, full_name: str, record: ConsumerRecord, error: InvalidRecord) -> Skipped:
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
        appended_at=appended_at(record),
    )


def without_bytes(skipped: Skipped) -> Skipped:
    """A note of offsets without a record's own bytes: in what could not be decoded no personal data can be masked."""
    return skipped if skipped.value is None else msgspec.structs.replace(skipped, value=None)


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
