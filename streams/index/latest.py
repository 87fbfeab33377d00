"""Events as they lie in the log, for stores that keep the last of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.errors import InvalidRecord
from models.events.topics import Topic
from models.wire.codec import decode_output

log = structlog.get_logger(__name__)

_Event = TypeVar("_Event", bound=Struct)


def latest_of(
    topic: Topic,
    records: Iterable[ConsumerRecord],
    *kinds: type[_Event],
    key: Callable[[_Event], str] | None = None,
) -> list[tuple[_Event, int]]:
    """The last event of these kinds for each key, among records in log order, with the offset of its record.

    The key is that of the record, or what `key` makes of the event.

    A null record, by which an erasure takes a key out of the topic, is passed: the index is told of it otherwise. One
    that is no event of the topic was written by somebody else: it is logged and passed.
    """
    latest: dict[bytes | str | None, tuple[_Event, int]] = {}
    for record in records:
        if record.value is None:
            continue
        try:
            event = decode_output(topic, record.value)
        except InvalidRecord as error:
            log.warning("event_undecodable", topic=topic.name, partition=record.partition, offset=record.offset)
            log.debug("event_undecodable_detail", detail=error.detail)
            continue
        if isinstance(event, kinds):
            latest[record.key if key is None else key(event)] = (event, record.offset)
    return list(latest.values())
