"""Traces: a span for each batch, its stages as children, and one for each record that a producer traces.

Off unless `telemetry.otlp_endpoint` is set, and then nothing of OpenTelemetry is imported and a batch costs one look
at a field. Headers are carried on in any case (`streams.kafka.records`).

Why not `faust.contrib.opentelemetry`: its sensor opens a span for each event of a stream, and an event here is a poll
of up to thousands of records whose message has one record's headers; it would name one trace and lose the others. It
writes no headers, and leaves that to an instrumentation of aiokafka's `send`, which batches built here never call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from models.errors import ConfigurationError
from models.wire.trace_context import Traces
from streams.settings import TelemetrySettings

if TYPE_CHECKING:
    from streams.observe.otel_spans import Spans


class Tracing:
    """Tracing of a role; does nothing until it is started."""

    def __init__(self) -> None:
        self._spans: Spans | None = None

    def start(
        self,
        settings: TelemetrySettings,
        role: str,
        *,
        counted: Callable[[int, str], None],
        exporter: Any = None,
    ) -> None:
        """Send spans from now on; nothing where no collector is named.

        Args:
            settings: Where to, and how many.
            role: Name of the service: `turntide-<role>`.
            counted: Told how many spans a collector took (`exported`) or did not take (`failed`).
            exporter: Takes spans in place of a collector (`opentelemetry.sdk.trace.export.SpanExporter`).

        Raises:
            ConfigurationError: A collector is named and the extra `otel` is not installed.
        """
        if exporter is None and settings.otlp_endpoint is None:
            return
        try:
            from streams.observe.otel_spans import Spans, otlp_exporter  # noqa: PLC0415 - extra `otel`
        except ImportError as error:
            raise ConfigurationError(
                f"telemetry.otlp_endpoint needs the Python package `{error.name}`, which is not installed: install "
                "`turntide[otel]`, or unset TURNTIDE_TELEMETRY__OTLP_ENDPOINT"
            ) from error
        if exporter is None and settings.otlp_endpoint is not None:
            exporter = otlp_exporter(settings.otlp_endpoint)
        self.stop()
        self._spans = Spans(
            exporter,
            role,
            sample_ratio=settings.sample_ratio,
            most_record_spans=settings.most_record_spans,
            counted=counted,
        )

    def stop(self) -> None:
        """Send what is waiting, and no more."""
        if self._spans is not None:
            self._spans.close()
            self._spans = None

    def batch(self, batches: Mapping[Any, Sized], traces: Traces) -> AbstractContextManager[None]:
        """The spans of one batch of records by partition, if it is one that is traced."""
        if self._spans is None:
            return nullcontext()
        return self._spans.batch(sum(map(len, batches.values())), traces)

    def stage(self, name: str) -> AbstractContextManager[None]:
        """The span of a stage, within that of its batch."""
        return nullcontext() if self._spans is None else self._spans.stage(name)


tracing = Tracing()
"""This process's traces."""
