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
        timedelta(hours=24), gt=timedelta(0), description="How far back sessions and alerts are read at the start."
    )
    label_window: timedelta = Field(
        timedelta(hours=1),
        ge=timedelta(0),
        description="How far back labels of alerts are read at the start; they stand among all turns.",
    )
    max_sessions: int = Field(20_000, ge=100, description="Sessions kept for the page; the longest silent go first.")
    max_streams: int = Field(256, ge=1, description="Pages open at once; further ones get 503.")
    max_streams_per_token: int | None = Field(
        None, ge=1, description="Of these for one token, where there are tokens; none: half of them."
    )
    stall_timeout: timedelta = Field(
        timedelta(seconds=15),
        ge=timedelta(seconds=1),
        description="A page that takes nothing of what it was sent for so long is let go; it connects again.",
    )
    roles: dict[str, str] = Field(
        default_factory=dict,
        description='Where each role answers, as JSON in the environment: {"sessions": "http://sessions:8701", …}. '
        "None: this host, at the ports of http.",
    )
