"""Settings of the live page."""

from datetime import timedelta

from pydantic import BaseModel, Field

LIVE_PATH = "/live"
"""Folder of the page's files."""
LIVE_PAGE = f"{LIVE_PATH}/"
"""The page itself."""


class LiveSettings(BaseModel):
    """The live page: sessions by risk, alerts, health of the roles; served where memory is read."""

    enabled: bool = Field(True, description="Whether the index and api roles serve the page at /live/.")
    window: timedelta = Field(
        timedelta(hours=24), gt=timedelta(0), description="Period of sessions and alerts that is read at the start."
    )
    label_window: timedelta = Field(
        timedelta(hours=1),
        ge=timedelta(0),
        description="Period of alert labels that is read at the start, from the topic of all turns.",
    )
    max_sessions: int = Field(20_000, ge=100, description="Sessions on the page; the longest inactive go first.")
    max_streams: int = Field(256, ge=1, description="Open pages; further ones get 503.")
    max_streams_per_token: int | None = Field(
        None, ge=1, description="Maximum number of open pages for one token. Default: half of `max_streams`."
    )
    stall_timeout: timedelta = Field(
        timedelta(seconds=15),
        ge=timedelta(seconds=1),
        description="A page that reads nothing for this long is disconnected; it reconnects.",
    )
    roles: dict[str, str] = Field(
        default_factory=dict,
        description='Address of each role, as JSON in the environment: {"sessions": "http://sessions:8701", …}. '
        "Default: this host, at the ports of http.",
    )
