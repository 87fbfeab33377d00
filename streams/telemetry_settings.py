"""What telemetry is told, beside the metrics that every role always has."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TelemetrySettings(BaseModel):
    """Traces by OpenTelemetry (extra `otel`); off unless a collector is named."""

    otlp_endpoint: str | None = Field(None, description="OTLP over HTTP, e.g. http://127.0.0.1:4318; none: no traces.")
    sample_ratio: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Of the batches without a sampled `traceparent`; those with one are always traced.",
    )
