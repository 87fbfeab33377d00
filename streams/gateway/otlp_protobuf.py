"""OTLP's protobuf; `streams.gateway.otlp` alone imports this, when the first comes: it loads for 0.17 s."""

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from models.messages import otlp
from models.messages.spans import TracedSpan


def spans_in(body: bytes, signal: str) -> Iterable[TracedSpan]:
    """Spans of a request of `traces`, or of `logs`.

    Raises:
        msgspec.DecodeError: It is none.
    """
    kind: Any = ExportLogsServiceRequest if signal == "logs" else ExportTraceServiceRequest
    try:
        told = kind.FromString(body)
    except DecodeError:
        raise msgspec.DecodeError("not OTLP") from None
    return otlp.of_logs(told.resource_logs) if signal == "logs" else otlp.of_spans(told.resource_spans)


def answer(told: dict[str, Any], signal: str) -> bytes:
    """An answer, given in JSON's names."""
    kind: Any = ExportLogsServiceResponse if signal == "logs" else ExportTraceServiceResponse
    return bytes(ParseDict(told, kind()).SerializeToString())
