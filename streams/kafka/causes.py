"""Trace contexts of a batch's records, so that what they cause can carry them on.

Models decide nothing here: an output names its cause (`source`), and the cause's header goes along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.events import DeadLetter, Output
from models.wire.trace_context import TraceParent, Traces, carried, traceparent_of


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
