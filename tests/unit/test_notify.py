"""Alert sinks, the pure parts: signatures, secrets, and what an Alertmanager is told."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from typer.testing import CliRunner

from jobs.alerts.command import app as alerts
from jobs.alerts.command import harmless_alert
from models.errors import ConfigurationError
from models.events import AlertChanged, AlertStatus, Contribution, Escalation, Severity, TurnShare
from streams.notify.alertmanager import HOLD, postable
from streams.notify.delivery import Poster
from streams.notify.webhook import WebhookSink, secret_bytes, sign
from streams.settings import NotifySettings
from streams.wiring import sinks_of

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - the specification's own test vector


def alert(**changes: object) -> AlertChanged:
    """An alert of a session, an hour old, with changes."""
    base = {"session_id": "s-1", "app_id": "shop", "fired_at": NOW - timedelta(hours=1)}
    return msgspec.structs.replace(harmless_alert(NOW), **{**base, **changes})


def judged_alert() -> AlertChanged:
    """An alert that a model raised; base, parts and shares add up to 0.5."""
    contributions = [
        Contribution("level", 0.1, -0.5, 0.731, alert_without=True),
        Contribution("information_gathering", 0.5, 2.0, 0.182, alert_without=False),
        Contribution("refusals", 0.4, 1.5, 0.269, alert_without=False),
        Contribution("trend", 0.1, 0.0004, 0.6224, alert_without=True),
    ]
    escalation = Escalation(
        probability=0.622,
        log_odds=0.5004,
        base_log_odds=-2.5,
        threshold=0.45,
        model="escalation-1@abc",
        contributions=contributions,
        turns=[TurnShare(0, 1.0004), TurnShare(2, 2.0)],
        earlier_log_odds=0.0,
    )
    return alert(escalation=escalation, policy_digest="def")


def test_signature_is_the_specifications() -> None:
    """The test vector that the Standard Webhooks reference libraries share."""
    signature = sign(secret_bytes(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_***", SECRET.removeprefix("whsec_"), "whsec_" + base64.b64encode(b"short").decode()]
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

    assert sinks_of(NotifySettings()) == []
    assert [sink.name for sink in sinks_of(both)] == ["webhook", "alertmanager"]


def test_alertmanager_is_told_the_judgement_in_annotations() -> None:
    """Whoever is woken sees how sure it is, from where on it alerts, what decided and what would be without it."""
    (posted,) = postable(judged_alert())

    assert {name: posted.annotations[name] for name in ("probability", "threshold", "model", "policy")} == {
        "probability": "0.622",
        "threshold": "0.450",
        "model": "escalation-1@abc",
        "policy": "test (def)",
    }
    assert posted.annotations["contributions"] == (
        "information gathering +2.0 (without it 0.18, no alert); refusals +1.5 (without it 0.27, no alert); "
        "level -0.5 (without it 0.73, still an alert)"
    )
    assert posted.annotations["counterfactual"] == (
        "Without information gathering it would be 0.18, without refusals 0.27: no alert."
    )
    assert {"alertname", "severity", "app_id", "fingerprint"} == posted.labels.keys()


async def test_webhook_carries_the_whole_judgement() -> None:
    """Also what an Alertmanager has no room for: every contribution, and each turn's share; they still add up."""
    posts: list[tuple[bytes, Mapping[str, str]]] = []

    class Receiver(Poster):
        async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            posts.append((body, headers or {}))

    await WebhookSink(Receiver("webhook", "https://example.org/hook"), None).deliver([judged_alert()])

    ((body, headers),) = posts
    data = msgspec.json.decode(body)["data"]
    told = data["escalation"]
    assert (data["policy_version"], data["policy_digest"], told["model"]) == ("test", "def", "escalation-1@abc")
    assert headers["webhook-id"] == data["id"]
    assert msgspec.convert(told, Escalation) == judged_alert().escalation


@pytest.mark.parametrize(("delivered", "code"), [((True, True), 0), ((True, False), 1), ((False, False), 1)])
def test_the_trial_says_whether_every_sink_took_it(
    monkeypatch: pytest.MonkeyPatch, delivered: tuple[bool, ...], code: int
) -> None:
    """One that did not is what whoever tries them out wants to know, though the other one did."""

    async def try_sinks(*_: object) -> list[dict[str, object]]:
        return [{"sink": str(number), "delivered": taken, "detail": ""} for number, taken in enumerate(delivered)]

    monkeypatch.setattr("jobs.alerts.command.try_sinks", try_sinks)

    assert CliRunner().invoke(alerts, ["test"]).exit_code == code
