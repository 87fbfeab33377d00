"""Spans: one for a batch, its stages beneath it, and one in each trace of a producer; none where it is off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from models.wire.trace_context import TraceParent, parse_traceparent
from streams.observe.otel_spans import otlp_exporter
from streams.observe.telemetry import metrics, stage
from streams.observe.tracing import Tracing, tracing
from streams.settings.telemetry import TelemetrySettings
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
