"""How alerts are told: on the command line, to an Alertmanager, to a webhook; signatures and secrets."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from typer.testing import CliRunner

from jobs.alerts.command import app as alerts
from jobs.alerts.command import described, explained, harmless_alert
from models import events
from models.errors import ConfigurationError
from streams.notify.alertmanager import HOLD, postable
from streams.notify.delivery import Poster
from streams.notify.sinks import sinks_of
from streams.notify.webhook import WebhookSink, secret_bytes, sign
from streams.settings import NotifySettings
from tests.support.golden_text import assert_text

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - the specification's own test vector


def alert(**changes: object) -> events.AlertChanged:
    """An alert of a session by the source formulas, an hour old, with changes."""
    shares = [
        events.SignalShare("level", 0.7, 0.8),
        events.SignalShare("trajectory", 0.2, 0.2),
        events.SignalShare("anomaly", 0.0, 0.0),
    ]
    evidence = [events.EvidenceTurn("s_4", 4, 0.7, "risk 0.70", 1.25)]
    names: dict[str, object] = {"session_id": "s-1", "app_id": "shop", "turn": 4, "score": 0.61}
    rest = {"signals": shares, "evidence": evidence, "fired_at": NOW - timedelta(hours=1)}
    return msgspec.structs.replace(harmless_alert(NOW), **names | rest | changes)


def judged_alert() -> events.AlertChanged:
    """An alert that a model raised, by seven signals; base, parts and shares add up to its log-odds."""
    contributions = [
        events.Contribution(f"signal_{n}", 0.5, added, 0.2 + n / 10, alert_without=n > 2, why=f"reason {n}")
        for n, added in enumerate((2.0, 1.0, 0.5, 0.25, -0.125, 0.0625, 0.0625))
    ]
    escalation = events.Escalation(
        probability=0.68,
        log_odds=0.75,
        base_log_odds=-3.0,
        threshold=0.45,
        model="escalation-1@abc",
        contributions=contributions,
        turns=[events.TurnShare(2, 2.5), events.TurnShare(4, 1.25), events.TurnShare(4, -0.25)],
        earlier_log_odds=0.25,
    )
    return alert(escalation=escalation, policy_digest="def")


@pytest.mark.parametrize("name", ["formulas", "judged"])
def test_an_alert_is_told_on_its_grounds(name: str) -> None:
    """To people the strongest signals with their counterfactual, the rest as one; programs get all, unrounded."""
    told = alert() if name == "formulas" else judged_alert()
    row = described(told)

    assert_text(f"alert-{name}", f"{explained(told)}\n{msgspec.json.format(msgspec.json.encode(row)).decode()}")
    if told.escalation is not None:
        base, log_odds = told.escalation.base_log_odds, told.escalation.log_odds
        shares = [told.escalation.earlier_log_odds, *(each.log_odds for each in told.escalation.turns)]
        assert base + sum(each.log_odds for each in told.escalation.contributions) == base + sum(shares) == log_odds


def test_alertmanager_is_told_by_few_labels() -> None:
    """Labels are kept for ever as series: ids and the judgement are annotations.

    Nobody repeats an alert every few minutes: a firing one outlives the resolve time-out. One that is resolved ends at
    the change. The severity is part of its identity: one that worsened ends the milder one.
    """
    changes = {
        "fired": alert(),
        "resolved": alert(status=events.AlertStatus.RESOLVED, cause="resolved"),
        "worsened": alert(severity=events.Severity.CRITICAL, cause="worsened"),
        "judged": judged_alert(),
    }
    posted = {name: postable(change) for name, change in changes.items()}

    assert_text("alert-posted", msgspec.json.format(msgspec.json.encode(posted)).decode())
    assert posted["fired"][0].ends_at == NOW + HOLD


def test_a_warning_that_grew_ends_no_other_alert() -> None:
    """Only one that became critical ends the warning: the rise of a warning is news of the same one."""
    ((grown,), (warning, critical)) = (
        postable(alert(severity=severity, cause="worsened"))
        for severity in (events.Severity.WARNING, events.Severity.CRITICAL)
    )

    assert grown.labels == warning.labels != critical.labels
    assert (NOW + HOLD, NOW, NOW + HOLD) == (grown.ends_at, warning.ends_at, critical.ends_at)


async def test_webhook_carries_the_whole_judgement() -> None:
    """Also what an Alertmanager has no room for: every contribution, and each turn's share."""
    posts: list[tuple[bytes, Mapping[str, str]]] = []

    class Receiver(Poster):
        async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            posts.append((body, headers or {}))

    await WebhookSink(Receiver("webhook", "https://example.org/hook"), None).deliver([judged_alert()])

    ((body, headers),) = posts
    data = msgspec.json.decode(body)["data"]
    assert headers["webhook-id"] == data["id"]
    assert msgspec.convert(data, events.AlertChanged) == judged_alert()


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


def test_configured_sinks() -> None:
    """A sink for each address, none without."""
    both = NotifySettings(
        webhook_url="https://example.org/hook", webhook_secret=SECRET, alertmanager_url="http://example.org:9093/"
    )

    assert sinks_of(NotifySettings()) == []
    assert [sink.name for sink in sinks_of(both)] == ["webhook", "alertmanager"]


@pytest.mark.parametrize(("delivered", "code"), [((True, True), 0), ((True, False), 1), ((False, False), 1)])
def test_the_trial_says_whether_every_sink_took_it(
    monkeypatch: pytest.MonkeyPatch, delivered: tuple[bool, ...], code: int
) -> None:
    """One that did not is what whoever tries them out wants to know, though the other one did."""

    async def try_sinks(*_: object) -> list[dict[str, object]]:
        return [{"sink": str(number), "delivered": taken, "detail": ""} for number, taken in enumerate(delivered)]

    monkeypatch.setattr("jobs.alerts.command.try_sinks", try_sinks)

    assert CliRunner().invoke(alerts, ["test"]).exit_code == code
