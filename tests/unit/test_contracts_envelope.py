"""Headers of records: CloudEvents in binary mode, and the schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec

from jobs.alerts.command import harmless_alert
from models.events import DeadLetter, SessionEnded
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


def test_input_headers() -> None:
    """An input event has no id of its own: only schema and content type."""
    event = SessionEnded(session_id="s", timestamp=NOW)

    assert dict(headers_for(event)) == {"content-type": b"application/json", "schema": b"session_ended.v1"}


def test_dead_letter_headers() -> None:
    """A dead letter's time is when the bad record was appended."""
    letter = DeadLetter(
        id="x", topic="t", partition=0, offset=0, stage="decode", reason="not_json", detail="", key=None, value=b"",
        headers=[], appended_at=NOW,
    )  # fmt: skip
    headers = dict(headers_for(letter))

    assert (
        headers["ce_id"],
        headers["ce_time"],
        headers["ce_type"],
    ) == (b"x", b"2026-01-05T09:30:00Z", b"turntide.dead_letter.v1")


def test_headers_are_the_callers_own() -> None:
    """Adding a header to one record must not add it to the next."""
    event = SessionEnded(session_id="s", timestamp=NOW)
    headers_for(event).append(("traceparent", b"00"))

    assert len(headers_for(event)) == 2
