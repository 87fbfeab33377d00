"""The time of a record in the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""Dates end with the year 9999: what is added to this one is a date still."""


class Timed(Protocol):
    """A record of whichever client."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; where the topic does not have the broker's own, whatever the producer says."""


def appended_ms(record: Timed) -> int:
    """Milliseconds since 1970, not negative, at most of the year 9000."""
    return min(max(record.timestamp, 0), _LATEST_MS)


def appended_at(record: Timed) -> datetime:
    """When a record was appended; likewise always a date."""
    return _EPOCH + timedelta(milliseconds=appended_ms(record))
