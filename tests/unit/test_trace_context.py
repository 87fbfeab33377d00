"""Trace context: what a header says, and which outputs carry it on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from aiokafka.structs import ConsumerRecord
from msgspec import structs

from jobs.alerts.command import harmless_alert
from models.errors import InvalidRecord
from models.events import Position
from models.wire.trace_context import NO_TRACES, TRACEPARENT, parse_traceparent, traceparent_of
from streams.inference.intake import dead_letter
from streams.kafka.records import trace_headers, traces_of
from tests.support.traced import HEADER, SPAN_ID, TRACE_ID

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
UNSAMPLED = f"00-{TRACE_ID}-{SPAN_ID}-00".encode()


def record(offset: int, *headers: tuple[str, bytes]) -> ConsumerRecord:
    """A record of partition 3."""
    return ConsumerRecord("t.turns", 3, offset, 1_000, 1, b"k", b"v", None, 1, 1, headers)


def test_a_header_names_trace_span_and_whether_it_is_sampled() -> None:
    """It is carried on as it came, of a later version too."""
    found, unsampled = parse_traceparent(HEADER), parse_traceparent(UNSAMPLED)
    random = parse_traceparent(UNSAMPLED[:-1] + b"2")  # another flag: its trace id is random
    later = parse_traceparent(b"cc" + HEADER[2:] + b"-what-comes-later")

    assert found is not None
    assert unsampled is not None
    assert later is not None
    assert random is not None
    assert not random.sampled
    assert (found.trace_id, found.span_id, found.sampled, found.header) == (TRACE_ID, SPAN_ID, True, HEADER)
    assert (unsampled.sampled, later.trace_id, later.sampled) == (False, TRACE_ID, True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xff\xfe",
        HEADER[:-1],
        HEADER + b"-more",  # version 00 has no more fields
        HEADER + b"\n",
        HEADER.upper(),
        b"ff" + HEADER[2:],
        HEADER.replace(TRACE_ID.encode(), b"0" * 32),
        HEADER.replace(SPAN_ID.encode(), b"0" * 16),
        b"cc" + HEADER[2:] + b"-" + b"x" * 10_000,
    ],
)
def test_a_header_that_is_none_is_ignored(value: bytes | None) -> None:
    """A producer's mistake costs its trace, nothing else; nor is rubbish carried on."""
    assert parse_traceparent(value) is None
    assert traceparent_of([(TRACEPARENT, value)]) is None


def test_outputs_and_dead_letters_carry_the_header_of_their_cause() -> None:
    """By topic, partition and offset: an output of another record has none, nor has one of another partition."""
    traces = traces_of(
        [[record(6), record(7, ("x", b"1"), (TRACEPARENT, HEADER)), record(8, (TRACEPARENT, b"rubbish"))]]
    )
    said = harmless_alert(NOW)
    of = {
        place: list(trace_headers(structs.replace(said, source=Position(*place)), traces))
        for place in [("t.turns", 3, 7), ("t.turns", 3, 6), ("t.turns", 3, 8), ("t.turns", 2, 7), ("other", 3, 7)]
    }
    letter = dead_letter(record(7), "decode", InvalidRecord("not_json", ""))

    assert list(traces) == [("t.turns", 3, 7)]
    assert [place for place, headers in of.items() if headers] == [("t.turns", 3, 7)]
    assert of["t.turns", 3, 7] == [(TRACEPARENT, HEADER)]
    assert list(trace_headers(letter, traces)) == [(TRACEPARENT, HEADER)]
    assert list(trace_headers(said, NO_TRACES)) == []
