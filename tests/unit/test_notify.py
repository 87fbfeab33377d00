"""Alert sinks, the pure parts: signatures, secrets, and what an Alertmanager is told."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from jobs.alerts import harmless_alert
from models.errors import ConfigurationError
from models.events import AlertChanged, AlertStatus, Severity
from streams.notify.alertmanager import HOLD, postable
from streams.notify.sinks import configured_sinks
from streams.notify.webhook import secret_bytes, sign
from streams.settings import NotifySettings

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - the specification's own test vector


def alert(**changes: object) -> AlertChanged:
    """An alert of a session, an hour old, with changes."""
    base = {"session_id": "s-1", "app_id": "shop", "fired_at": NOW - timedelta(hours=1)}
    return msgspec.structs.replace(harmless_alert(NOW), **{**base, **changes})


def test_signature_is_the_specifications() -> None:
    """The test vector that the Standard Webhooks reference libraries share."""
    signature = sign(secret_bytes(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "whsec_***", SECRET.removeprefix("whsec_"), "whsec_" + base64.b64encode(b"short").decode()],
)
def test_bad_secrets_are_refused(secret: str) -> None:
    """A secret that is none, or too short to be one, is told before the first delivery, and not repeated."""
    with pytest.raises(ConfigurationError, match="webhook_secret") as refusal:
        secret_bytes(secret)

    assert not secret or len(secret) < 7 or secret not in str(refusal.value)


def test_labels_are_few_and_the_session_is_no_label() -> None:
    """Labels are kept for ever as series: a session id in them would be one series each."""
    (posted,) = postable(alert())

    assert {"alertname", "severity", "app_id", "fingerprint"} == posted.labels.keys()
    assert posted.annotations["session_id"] == "s-1"


def test_firing_outlives_the_resolve_timeout() -> None:
    """Nobody repeats it every few minutes: without an end of its own it would resolve itself."""
    (posted,) = postable(alert())

    assert (NOW - timedelta(hours=1), NOW + HOLD) == (posted.starts_at, posted.ends_at)


def test_resolved_ends_at_the_change() -> None:
    """Same labels as when it fired, and an end."""
    (fired,) = postable(alert())
    (resolved,) = postable(alert(status=AlertStatus.RESOLVED, cause="resolved"))

    assert (fired.labels, NOW) == (resolved.labels, resolved.ends_at)


def test_worsened_ends_the_milder_alert() -> None:
    """The severity is part of the identity: the warning would otherwise fire on beside the critical one."""
    ended, firing = postable(alert(severity=Severity.CRITICAL, cause="worsened"))

    assert [(posted.labels["severity"], posted.ends_at) for posted in (ended, firing)] == [
        ("warning", NOW),
        ("critical", NOW + HOLD),
    ]


def test_configured_sinks() -> None:
    """A sink for each address, none without."""
    both = NotifySettings(
        webhook_url="https://example.org/hook", webhook_secret=SECRET, alertmanager_url="http://example.org:9093/"
    )

    assert configured_sinks(NotifySettings()) == []
    assert [sink.name for sink in configured_sinks(both)] == ["webhook", "alertmanager"]
