"""Settings of the gateway: how much it takes at once, and where it asks what readers see."""

from pydantic import BaseModel, Field


class GatewaySettings(BaseModel):
    """Turns over HTTP."""

    max_body_bytes: int = Field(
        16 * 1024 * 1024,
        ge=1024,
        description="A larger request body gets 413 unread, and so does OTLP that is larger unpacked. A batch "
        "of 512 spans, which SDKs send at once, is several MiB where each repeats a history.",
    )
    max_bytes_in_flight: int = Field(
        32 * 1024 * 1024,
        ge=1024 * 1024,
        description="Records on their way to Kafka; what comes on top gets 429 until the broker has some of them.",
    )
    memory_url: str = Field(
        "",
        description="Base address of a role that serves memory, `index` or `api`, for requests that wait until readers "
        "see their turns; none: the index role on this machine.",
    )
