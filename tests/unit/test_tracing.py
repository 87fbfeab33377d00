"""What a header of a trace says, which outputs carry it on, and the spans of a traced batch; none where it is off."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from msgspec import structs
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from jobs.alerts.command import harmless_alert
from models.errors import InvalidRecord
from models.events import Position
from models.wire.trace_context import NO_TRACES, TRACEPARENT, TraceParent, parse_traceparent, traceparent_of
from streams.inference.intake import dead_letter
from streams.kafka.records import trace_headers, traces_of
from streams.observe.otel_spans import otlp_exporter
from streams.observe.telemetry import metrics, stage
from streams.observe.tracing import Tracing, tracing
from streams.settings import TelemetrySettings
from tests.support.traced import HEADER, SPAN_ID, TRACE_ID

Place = tuple[str, int, int]
SAID = "what the user really said"


class Refusing(InMemorySpanExporter):
    """A collector that takes nothing: it says so, or its client fails."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self._error = error

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002
        """Refuse."""
        if self._error is not None:
            raise self._error
        return SpanExportResult.FAILURE


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """Where spans go; this process sends none afterwards."""
    yield InMemorySpanExporter()
    tracing.stop()


def parent(header: bytes = HEADER) -> TraceParent:
    """A trace."""
    found = parse_traceparent(header)
    assert found is not None
    return found


def worked(
    settings: TelemetrySettings, exporter: InMemorySpanExporter, traces: dict[Place, TraceParent]
) -> list[ReadableSpan]:
    """Names and spans of one batch of two stages, one of which fails."""
    counted: dict[str, int] = {}
    tracing.start(settings, "sessions", exporter=exporter, counted=lambda n, result: counted.update({result: n}))
    with suppress(ValueError), tracing.batch({"p": range(9)}, traces):
        with stage("decode"):
            pass
        with stage("fold"):
            raise ValueError(SAID)
    tracing.stop()
    spans = list(exporter.get_finished_spans())
    assert counted == ({"exported": len(spans)} if spans else {})
    return spans


def test_a_traced_record_gives_its_batch_spans(exporter: InMemorySpanExporter) -> None:
    """Stages are children of the batch; a record's span is the producer's child, and a bounded number have one."""
    settings = TelemetrySettings(sample_ratio=0, most_record_spans=2)
    timed = metrics.histogram("stage_seconds", stage="decode")._sum
    before_s = timed.get()
    traces = {("t.turns.v1", 3, offset): parent() for offset in (7, 8, 9)}
    spans = {span.name: span for span in worked(settings, exporter, traces)}
    batch, record = spans["sessions batch"], spans["t.turns.v1 sessions"]
    named = [name for name in spans if name.startswith("t.")]

    assert timed.get() > before_s
    assert [spans[name].parent for name in ("decode", "fold")] == [batch.context] * 2
    assert (spans["fold"].status.status_code, spans["fold"].status.description) == (StatusCode.ERROR, "ValueError")
    assert SAID not in "".join(span.to_json() for span in spans.values())
    assert (batch.parent, [format(link.context.trace_id, "032x") for link in batch.links]) == (None, [TRACE_ID] * 2)
    assert record.parent is not None
    assert (format(record.parent.trace_id, "032x"), format(record.parent.span_id, "016x")) == (TRACE_ID, SPAN_ID)
    assert [link.context for link in record.links] == [batch.context]
    assert dict(record.attributes or {}) | {"messaging.system": "kafka"} == {
        "messaging.system": "kafka",
        "messaging.operation.type": "process",
        "messaging.destination.name": "t.turns.v1",
        "messaging.destination.partition.id": "3",
        "messaging.kafka.offset": 8,
    }
    assert batch.resource.attributes["service.name"] == "turntide-sessions"
    assert (named, len(exporter.get_finished_spans())) == (["t.turns.v1 sessions"], 5)


@pytest.mark.parametrize("error", [None, OSError("away")])
def test_a_collector_that_takes_nothing_is_counted(exporter: InMemorySpanExporter, error: Exception | None) -> None:
    """Nobody waits for it, and it shows."""

    def failed() -> float:
        return metrics.registry.get_sample_value("turntide_trace_spans_total", {"result": "failed"}) or 0

    before, told = failed(), Tracing()
    told.start(
        TelemetrySettings(sample_ratio=1),
        "x",
        exporter=Refusing(error),
        counted=lambda n, result: metrics.counter("trace_spans_total", result=result).inc(n),
    )
    with told.batch({}, {}):
        pass
    told.stop()

    assert failed() == before + 1
    assert exporter.get_finished_spans() == ()


def test_a_silent_collector_keeps_no_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that ends does not wait for a request that nobody answers."""
    answers, closed = Event(), Event()

    class Silent(InMemorySpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            answers.wait(60)
            return super().export(spans)

        def shutdown(self) -> None:
            closed.set()

    monkeypatch.setattr("streams.observe.otel_spans._CLOSE_WITHIN_S", 0)
    told = Tracing()
    told.start(TelemetrySettings(sample_ratio=1), "x", exporter=Silent(), counted=lambda *_: None)
    with told.batch({}, {}):
        pass
    told.stop()

    assert closed.is_set()
    assert not answers.is_set()
    answers.set()


def test_without_a_collector_nothing_is_traced() -> None:
    """Nor is OpenTelemetry asked for."""
    silent = Tracing()
    silent.start(TelemetrySettings(), "sessions", counted=lambda *_: None)
    with silent.batch({"p": [1]}, {("t", 0, 1): parent()}), silent.stage("fold"):
        assert not get_current_span().is_recording()


@pytest.mark.parametrize("path", ["", "/", "/v1/traces", "/v1/traces/"])
def test_spans_go_to_the_collectors_path(path: str) -> None:
    """Whichever way the address is given: at any other path a collector answers 404, and every span is lost."""
    exporter: Any = otlp_exporter(f"http://127.0.0.1:4318{path}")

    assert exporter._endpoint == "http://127.0.0.1:4318/v1/traces"


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
