"""The time of a record in the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.events import DeadLetter, Output
from models.wire.trace_context import TraceParent, Traces, carried, traceparent_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""Dates end with the year 9999: what is added to this one is a date still."""


class Timed(Protocol):
    """A record of whichever client."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; where the topic does not have the broker's own, whatever the producer says."""


def appended_ms(record: Timed) -> int:
    """Milliseconds since 1970, not negative, at most of the year 9000."""
    return min(max(record.timestamp, 0), _LATEST_MS)


def appended_at(record: Timed) -> datetime:
    """When a record was appended; likewise always a date."""
    return _EPOCH + timedelta(milliseconds=appended_ms(record))


def traces_of(batches: Iterable[Iterable[ConsumerRecord]]) -> Traces:
    """The traces of records that name one."""
    return {
        (record.topic, record.partition, record.offset): trace
        for records in batches
        for record in records
        if record.headers and (trace := traceparent_of(record.headers)) is not None
    }


def trace_headers(event: Struct, traces: Traces) -> Sequence[tuple[str, bytes]]:
    """The header to carry on with an output or a dead letter; none where its cause has none."""
    if not traces:
        return ()
    return carried(cause_of(event, traces))


def cause_of(event: Struct, traces: Traces) -> TraceParent | None:
    """The trace of the record that caused an output or a dead letter."""
    if isinstance(event, Output):
        source = event.source
        return traces.get((source.topic, source.partition, source.offset))
    if isinstance(event, DeadLetter):
        return traces.get((event.topic, event.partition, event.offset))
    return None
