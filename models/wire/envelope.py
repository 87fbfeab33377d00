"""Record headers: CloudEvents in binary mode, and the schema of the value, so that payloads stay plain JSON.

Kafka protocol binding for CloudEvents 1.0: attributes are headers with the prefix `ce_`, the value is the event's
data alone, `content-type` says how it is written. Input events carry no id of their own: they get only the schema
and the content type.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache, lru_cache

import msgspec
from msgspec import Struct

from models.entities import REGISTRY, TOPIC_OF, entity_key
from models.events import DeadLetter, Output, OutputEvent, TopicsRecalled, Turn, UnnumberedTurn

_LAST_COUNTS = {event for event, each in REGISTRY.emits.items() if each.last_counts}
"""Events of which readers take the last of each key."""
_TURNS = {Turn: "turn", UnnumberedTurn: "unnumbered_turn"}
Headers = list[tuple[str, bytes]]
_encode = msgspec.json.Encoder().encode

CONTENT_TYPE = "application/json"
SCHEMA_HEADER = "schema"
VERSION = "v1"
"""Major version of every schema; a breaking change is a new topic (hazards, Contracts)."""


def tag_of(event: type[Struct]) -> str:
    """The event's name on the wire, as in its `type` field.

    >>> from models.events import AlertChanged, Turn
    >>> tag_of(AlertChanged), tag_of(Turn)
    ('alert_changed', 'turn')
    """
    tag = event.__struct_config__.tag
    # A turn's tag is a plain field with a default, so that producers may leave it out.
    return str(tag) if tag is not None else _TURNS[event]


def schema_of(event: type[Struct]) -> str:
    """Name and version of the event's schema, for instance `alert_changed.v1`."""
    return f"{tag_of(event)}.{VERSION}"


def headers_for(event: Struct) -> Headers:
    """Headers of the record that carries the event.

    Returns:
        For outputs and dead letters the CloudEvents attributes (`ce_id` is the deterministic event id), for all
        events `content-type` and `schema`. A new list each time: callers may add to it.
    """
    constant = _constant_headers(type(event))
    if isinstance(event, Output):
        return [("ce_id", event.id.encode()), ("ce_time", _rfc3339(event.timestamp)), *constant]
    if isinstance(event, DeadLetter):
        return [("ce_id", event.id.encode()), ("ce_time", _rfc3339(event.appended_at)), *constant]
    return list(constant)


def key_of(event: Output | TopicsRecalled | DeadLetter) -> bytes | None:
    """Key of the record that carries an output: its entity's, and behind it which of the entity's records it is."""
    if isinstance(event, DeadLetter):
        return event.key
    return f"{entity_key(event)}{REGISTRY.emits[type(event)].slot(event)}".encode()


def superseded(events: Iterable[OutputEvent]) -> set[str]:
    """Ids of all events but the last of each key; events come in the order of their causes."""
    told = [(key_of(event), event.id) for event in events if not isinstance(event, DeadLetter)]
    return {each for _, each in told}.difference(dict(told).values())


def unread(events: Iterable[OutputEvent]) -> set[str]:
    """Ids of events that nobody misses, since a later one among these says all that they do."""
    return superseded([event for event in events if type(event) in _LAST_COUNTS])


@lru_cache(maxsize=1_024)
def _rfc3339(time: datetime) -> bytes:
    return _encode(time.astimezone(UTC))[1:-1]


@cache
def _constant_headers(event: type[Struct]) -> tuple[tuple[str, bytes], ...]:
    """What is the same for every event of a type."""
    schema = schema_of(event)
    headers = [("content-type", CONTENT_TYPE.encode()), (SCHEMA_HEADER, schema.encode())]
    if issubclass(event, Output | DeadLetter):
        headers += [
            ("ce_specversion", b"1.0"),
            ("ce_type", f"turntide.{schema}".encode()),
            ("ce_source", f"/turntide/{TOPIC_OF[event].owner}".encode()),
        ]
    return tuple(headers)
