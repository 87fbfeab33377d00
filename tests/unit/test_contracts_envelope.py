"""Headers of records: CloudEvents in binary mode, and the schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec

from jobs.alerts.command import harmless_alert
from models.events import SessionEnded
from models.wire.envelope import headers_for

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def test_output_headers() -> None:
    """The attributes that CloudEvents require, the event's id, its time in UTC, and the schema."""
    berlin = timezone(timedelta(hours=1))
    alert = msgspec.structs.replace(harmless_alert(NOW), timestamp=NOW.astimezone(berlin))

    assert {
        "ce_specversion": b"1.0",
        "ce_id": alert.id.encode(),
        "ce_type": b"turntide.alert_changed.v1",
        "ce_source": b"/turntide/sessions",
        "ce_time": b"2026-01-05T09:30:00Z",
        "content-type": b"application/json",
        "schema": b"alert_changed.v1",
    } == dict(headers_for(alert))


def test_headers_are_the_callers_own() -> None:
    """Adding a header to one record must not add it to the next."""
    event = SessionEnded(session_id="s", timestamp=NOW)
    headers_for(event).append(("traceparent", b"00"))

    assert len(headers_for(event)) == 2
