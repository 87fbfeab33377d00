"""Spans by OpenTelemetry's SDK; only `streams.observe.tracing` imports this. Extra `otel`.

Spans name topic, partition and offset. They hold no id of anybody and no text.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from itertools import islice
from threading import Thread
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
)

from models.wire.trace_context import TraceParent, Traces

_TRACES_PATH = "/v1/traces"
_CLOSE_WITHIN_S = 3.0


def otlp_exporter(endpoint: str) -> SpanExporter:
    """To a collector over HTTP; the path is added where the address has none of its own."""
    base = endpoint.rstrip("/")
    return OTLPSpanExporter(endpoint=base if base.endswith(_TRACES_PATH) else base + _TRACES_PATH)


class Spans:
    """Opens spans and hands them to an exporter, beside the loop."""

    def __init__(
        self,
        exporter: SpanExporter,
        role: str,
        *,
        sample_ratio: float,
        most_record_spans: int,
        counted: Callable[[int, str], None],
    ) -> None:
        resource = Resource.create(
            {"service.name": f"turntide-{role}", "service.version": metadata.version("turntide")}
        )
        # What is traced is decided here, batch by batch: whatever is begun is kept.
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._exporter = _Counting(exporter, counted)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer: Tracer = self._provider.get_tracer("turntide")
        self._role = role
        self._ratio = sample_ratio
        self._most = most_record_spans

    def close(self) -> None:
        """Send what is waiting, for so long as a role may be kept by it; what is left is dropped.

        OpenTelemetry's own way waits for every request that a silent collector leaves open, ten seconds each.
        """
        sending = Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        sending.start()
        sending.join(_CLOSE_WITHIN_S)
        if sending.is_alive():
            self._exporter.shutdown()

    @contextmanager
    def batch(self, records: int, traces: Traces) -> Iterator[None]:
        """A span of the batch, linked with the traces in it, and one in each of these traces."""
        sampled = list(islice(((place, each) for place, each in traces.items() if each.sampled), self._most))
        if not sampled and random.random() >= self._ratio:  # noqa: S311 - a sample, no secret
            yield
            return
        with self._current(
            f"{self._role} batch",
            kind=SpanKind.CONSUMER,
            links=[Link(_remote(each)) for _, each in sampled],
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.batch.message_count": records,
            },
        ) as whole:
            spans = [self._record(place, each, whole) for place, each in sampled]
            try:
                yield
            finally:
                for span in spans:
                    span.end()

    def _record(self, place: tuple[str, int, int], caused: TraceParent, whole: Span) -> Span:
        topic, partition, offset = place
        return self._tracer.start_span(
            f"{topic} {self._role}",
            context=trace.set_span_in_context(NonRecordingSpan(_remote(caused))),
            kind=SpanKind.CONSUMER,
            links=[Link(whole.get_span_context())],
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.destination.name": topic,
                "messaging.destination.partition.id": str(partition),
                "messaging.kafka.offset": offset,
            },
        )

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A child of the batch's span; nothing where the batch has none."""
        if not trace.get_current_span().is_recording():
            yield
            return
        with self._current(name):
            yield

    @contextmanager
    def _current(self, name: str, **described: Any) -> Iterator[Span]:
        """A span that says by its type alone what broke it: the message of an error may quote what somebody said."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, **described
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


def _remote(caused: TraceParent) -> SpanContext:
    return SpanContext(
        int(caused.trace_id, 16), int(caused.span_id, 16), is_remote=True, trace_flags=TraceFlags(caused.sampled)
    )


class _Counting(SpanExporter):
    """Counts what became of spans: a collector that is away is nobody's error but must be seen."""

    def __init__(self, exporter: SpanExporter, counted: Callable[[int, str], None]) -> None:
        self._exporter = exporter
        self._counted = counted

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:
            self._counted(len(spans), "failed")
            raise
        self._counted(len(spans), "exported" if result is SpanExportResult.SUCCESS else "failed")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
