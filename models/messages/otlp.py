"""OTLP's JSON to spans: requests, and the lines that the Collector's file exporter writes.

The structures have the names of the protobuf messages' fields, so that decoded protobuf goes the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from models.messages.spans import SpanEvent, TracedSpan

_LATEST_S = 2**37
_SAYING = ("gen_ai.input.", "gen_ai.output.", "gen_ai.prompt", "gen_ai.completion", "gen_ai.system_instructions")
"""Attributes of a log record that are not of its span."""
_Whole = int | str
"""A number; JSON writes it as a text."""


class _Values(Struct):
    values: list[_Value] = []


class _Named(Struct):
    values: list[_Attribute] = []


class _Value(Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Whole | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: _Values | None = None
    kvlist_value: _Named | None = None

    def WhichOneof(self, _group: str) -> str | None:  # noqa: N802 - as protobuf has it
        return next((name for name in self.__struct_fields__ if getattr(self, name) is not None), None)


class _Attribute(Struct):
    key: str = ""
    value: _Value | None = None


class _Event(Struct):
    name: str = ""
    attributes: list[_Attribute] = []


class _Span(Struct, rename="camel"):
    trace_id: str = ""
    start_time_unix_nano: _Whole = 0
    end_time_unix_nano: _Whole = 0
    attributes: list[_Attribute] = []
    events: list[_Event] = []


class _LogRecord(Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    time_unix_nano: _Whole = 0
    observed_time_unix_nano: _Whole = 0
    event_name: str = ""
    body: _Value | None = None
    attributes: list[_Attribute] = []


class _Scope(Struct, rename="camel"):
    spans: list[_Span] = []
    log_records: list[_LogRecord] = []


class _Resource(Struct, frozen=True):
    attributes: list[_Attribute] = []


class Told(Struct, rename="camel"):
    """What one process tells of."""

    resource: _Resource = _Resource()
    scope_spans: list[_Scope] = []
    scope_logs: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_spans: list[Told] = []
    resource_logs: list[Told] = []


_decoder = msgspec.json.Decoder(_Request)


def spans_in(document: bytes) -> list[TracedSpan]:
    """Spans of a request, or of a line of a file.

    Raises:
        msgspec.DecodeError: It is none.
    """
    request = _decoder.decode(document)
    return [*of_spans(request.resource_spans), *of_logs(request.resource_logs)]


def of_spans(told: Iterable[Told]) -> Iterator[TracedSpan]:
    """Spans of some processes."""
    for process in told:
        resource = _named(process.resource.attributes)
        for span in (span for scope in process.scope_spans for span in scope.spans):
            yield TracedSpan(
                attributes=_named(span.attributes),
                events=[SpanEvent(each.name, _named(each.attributes)) for each in span.events],
                resource=resource,
                trace_id=_hex(span.trace_id),
                started_at=_time(span.start_time_unix_nano),
                ended_at=_time(span.end_time_unix_nano),
            )


def of_logs(told: Iterable[Told]) -> Iterator[TracedSpan]:
    """Log records of some processes, those of a span together: each message of a call may be a record of its own."""
    for process in told:
        resource = _named(process.resource.attributes)
        spans: dict[object, list[_LogRecord]] = {}
        for record in (record for scope in process.scope_logs for record in scope.log_records):
            spans.setdefault(_hex(record.span_id) or id(record), []).append(record)
        for records in spans.values():
            yield _of_records(records, resource)


def _of_records(records: Sequence[_LogRecord], resource: dict[str, Any]) -> TracedSpan:
    attributes, events = dict[str, Any](), list[SpanEvent]()
    for record in records:
        said = _named(record.attributes)
        body = None if record.body is None else _value(record.body)
        whole = said | body if isinstance(body, dict) else {"content": body, **said}
        events.append(SpanEvent(record.event_name or str(said.get("event.name")), whole))
        attributes |= {name: value for name, value in said.items() if not name.startswith(_SAYING)}
    times = [_time(each.time_unix_nano) or _time(each.observed_time_unix_nano) for each in records]
    return TracedSpan(
        attributes=attributes,
        events=events,
        resource=resource,
        trace_id=_hex(records[0].trace_id),
        started_at=times[0],
        ended_at=times[-1],
    )


def _named(attributes: Iterable[_Attribute]) -> dict[str, Any]:
    return {each.key: None if each.value is None else _value(each.value) for each in attributes}


def _value(told: _Value) -> Any:
    name = told.WhichOneof("value")
    value: Any = None if name is None else getattr(told, name)
    if name == "array_value":
        return [_value(each) for each in value.values]
    if name == "kvlist_value":
        return _named(value.values)
    return _whole(value) if name == "int_value" else value


def _whole(number: int | str) -> int:
    try:
        return int(number)
    except ValueError:
        return 0


def _hex(name: str | bytes) -> str:
    return name.hex() if isinstance(name, bytes) else name.lower()


def _time(nanoseconds: int | str) -> datetime | None:
    seconds = _whole(nanoseconds) / 10**9
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LATEST_S else None
