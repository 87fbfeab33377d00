"""Settings of telemetry."""

from pydantic import BaseModel, Field


class TelemetrySettings(BaseModel):
    """Metrics, and traces by OpenTelemetry (extra `otel`); traces are off unless a collector is named."""

    otlp_endpoint: str | None = Field(None, description="OTLP over HTTP, e.g. http://127.0.0.1:4318; none: no traces.")
    sample_ratio: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Of the batches without a sampled `traceparent`; those with one are always traced.",
    )
    most_record_spans: int = Field(
        50, ge=0, le=10_000, description="Records of one batch with a sampled `traceparent` that get a span."
    )
    metrics: bool = Field(True, description="Off only to measure what counting costs: /metrics shows zeros then.")
    watts_per_core: float = Field(
        10.0, ge=0, le=1_000, description="What a core draws at work, for the estimate energy_joules_total."
    )
    price_in_per_million: float = Field(
        0.0, ge=0, description="Price of a million tokens of prompts to the model this process asks, in any currency."
    )
    price_out_per_million: float = Field(0.0, ge=0, description="Of a million tokens of its answers.")
