"""W3C Trace Context in record headers: which trace a record belongs to.

A producer may give its records the header `traceparent` (https://www.w3.org/TR/trace-context/). What Turntide writes
because of such a record carries the header on, unchanged: no event changes by it, and no fold sees it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

TRACEPARENT = "traceparent"
"""Name of the header."""
_LONGEST_BYTES = 256
_SHAPE = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FIRST_VERSION = b"00"
_SAMPLED = 0x01


class TraceParent(Struct, frozen=True, gc=False):
    """Of which span of which trace a record is.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 of them.
        sampled: Whether its producer records the trace.
        header: As it came, to be carried on.
    """

    trace_id: str
    span_id: str
    sampled: bool
    header: bytes


Traces = Mapping[tuple[str, int, int], TraceParent]
"""Topic, partition and offset of a record -> the trace that its headers name. Records without one are left out."""
NO_TRACES: Traces = {}


def parse_traceparent(value: bytes | None) -> TraceParent | None:
    """What a header says; None for one that the specification does not allow, which is to be ignored.

    Of later versions than 00 the fields of 00 are read, as the specification asks.

    >>> parse_traceparent(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").sampled
    True
    >>> parse_traceparent(b"00-00000000000000000000000000000000-00f067aa0ba902b7-01") is None
    True
    """
    if value is None or len(value) > _LONGEST_BYTES:
        return None
    found = _SHAPE.fullmatch(value)
    if found is None or (found[1] == _FIRST_VERSION and found[5] is not None):
        return None
    return TraceParent(found[2].decode(), found[3].decode(), bool(int(found[4], 16) & _SAMPLED), value)


def traceparent_of(headers: Iterable[tuple[str, bytes | None]] | None) -> TraceParent | None:
    """The trace that a record's headers name; None without one. Of several headers the first counts."""
    for name, value in headers or ():
        if name == TRACEPARENT:
            return parse_traceparent(value)
    return None


def carried(trace: TraceParent | None) -> Sequence[tuple[str, bytes]]:
    """Headers to add to a record that was caused by one of this trace."""
    return () if trace is None else ((TRACEPARENT, trace.header),)
