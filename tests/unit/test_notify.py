"""How alerts are told: on the command line, to an Alertmanager, to a webhook; signatures and secrets."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from typer.testing import CliRunner

from jobs.alerts.command import app as alerts
from jobs.alerts.command import described, explained, harmless_alert
from models import events
from models.errors import ConfigurationError
from models.policy import NotifyPolicy, QuietHours, SinkRoute
from models.risk.telling import sentence
from streams.notify.forms import (
    HOLD,
    oncall_form,
    pagerduty_form,
    postable,
    session_link,
    slack_message,
    teams_form,
    teller,
)
from streams.notify.mail import mail_message
from streams.notify.sinks import RoutedSink, secret_bytes, sign, sinks_of
from streams.settings import load_settings
from tests.support.golden_text import assert_text

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
TELL = teller(NotifyPolicy(), "https://live.example.org")
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
    row = described(told, TELL(told))

    assert_text(
        f"alert-{name}", f"{explained(told, TELL(told))}\n{msgspec.json.format(msgspec.json.encode(row)).decode()}"
    )
    if told.escalation is not None:
        base, log_odds = told.escalation.base_log_odds, told.escalation.log_odds
        shares = [told.escalation.earlier_log_odds, *(each.log_odds for each in told.escalation.turns)]
        assert base + sum(each.log_odds for each in told.escalation.contributions) == base + sum(shares) == log_odds


def test_alertmanager_is_told_by_few_labels() -> None:
    """Labels are kept for ever as series: ids and the judgement are annotations.

    Nobody repeats an alert every few minutes: a firing one outlives the resolve time-out. One that is resolved ends at
    the change. The severity is part of its identity: one that became critical ends the warning, the rise of a warning
    is news of the same one.
    """
    changes = {
        "fired": alert(),
        "resolved": alert(status=events.AlertStatus.RESOLVED, cause="resolved"),
        "worsened": alert(severity=events.Severity.CRITICAL, cause="worsened"),
        "judged": judged_alert(),
    }
    posted = {name: postable(change, TELL(change)) for name, change in changes.items()}

    assert_text("alert-posted", msgspec.json.format(msgspec.json.encode(posted)).decode())
    (grown,) = postable(grew := alert(cause="worsened"), TELL(grew))
    warning, critical = posted["worsened"]

    assert posted["fired"][0].ends_at == NOW + HOLD
    assert grown.labels == warning.labels != critical.labels
    assert (NOW + HOLD, NOW, NOW + HOLD) == (grown.ends_at, warning.ends_at, critical.ends_at)


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


EVERY = {
    "webhook_url": "https://example.org/hook",
    "webhook_secret": SECRET,
    "alertmanager_url": "http://example.org:9093/",
    "slack_token": "xoxb-1",
    "slack_channel": "C1",
    "pagerduty_key": "key-1",
    "oncall_url": "https://example.org/oncall",
    "teams_url": "https://example.org/teams",
    "mail_host": "127.0.0.1",
    "mail_to": ["on-call@example.org"],
}


def test_configured_sinks() -> None:
    """A sink for each that is set, none without; one that lacks something says what."""
    every = sinks_of(load_settings(notify=EVERY), NotifyPolicy())

    assert sinks_of(load_settings(), NotifyPolicy()) == []
    assert [sink.name for sink in every] == ["webhook", "alertmanager", "slack", "pagerduty", "oncall", "teams", "mail"]
    for lacking in ("slack_channel", "mail_to"):
        with pytest.raises(ConfigurationError, match=lacking):
            sinks_of(load_settings(notify={**EVERY, lacking: type(EVERY[lacking])()}), NotifyPolicy())


def test_each_sink_tells_the_same_sentence() -> None:
    """In its own form, with link and next step; the judgement in log-odds below a fold. Look at the messages here.

    A user's id that is a link in Markdown is shown as it stands: nothing on Teams' card is rendered as Markdown.
    """
    told = msgspec.structs.replace(judged_alert(), user_id="u-3", category=events.Harm.FRAUD)
    words = TELL(told)
    forms = {
        "slack": slack_message(told, words, "C1", None),
        "pagerduty": pagerduty_form("key-1")(told, words, None),
        "oncall": oncall_form(told, words),
        "teams": teams_form(told, words),
    }
    pages = {name: msgspec.json.format(msgspec.json.encode(form)).decode() for name, form in forms.items()}
    pages["mail"] = mail_message(told, words, "turntide@example.org", ["on-call@example.org"]).as_string()

    assert_text("alert-messages", "\n\n".join(f"# {name}\n{page}" for name, page in pages.items()))
    assert all(words.sentence.split(";")[0] in page.replace("\n", " ") for page in pages.values())
    named = msgspec.structs.replace(told, user_id="[you](https://elsewhere.example)")
    card = msgspec.json.encode(teams_form(named, TELL(named))).decode()
    assert (named.user_id in card, '"TextBlock"' in card) == (True, False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Session s-1 (user u-3, app shop) has been escalating since turn 4; score 0.61, steady; worst turn 4."),
        (
            {"slope": events.Slope(0.1, 0.0, 5), "category": events.Harm.FRAUD},
            "has been asking about fraud since turn 4; score 0.61, rising;",
        ),
        (
            {"cause": "resolved", "slope": events.Slope(-0.1, 0.0, 5)},
            "Resolved: session s-1 (user u-3, app shop) has been escalating since turn 4; score 0.61, falling",
        ),
        ({"cause": "erased"}, "Session s-1 (app shop) was erased: its alert is over."),
        ({"evidence": []}, "score 0.61, steady; TEST: sent by"),
    ],
)
def test_an_alert_is_one_sentence(changes: dict[str, object], said: str) -> None:
    """What, who, since which turn, how probable, whether it rises, and the worst turn."""
    assert said in sentence(alert(user_id="u-3", **changes))


def test_the_link_opens_the_session_at_its_worst_turn() -> None:
    """Names are quoted as the page reads them; without a public address there is none."""
    named = alert(session_id="a/b c", app_id="shop&co")

    assert (
        session_link(named, "https://live.example.org/")
        == "https://live.example.org/live/#/session/a%2Fb%20c?app=shop%26co&turn=4"
    )
    assert session_link(named, "") == session_link(alert(cause="erased"), "https://live.example.org") == ""


class Noting:
    """A sink that notes which changes it is handed."""

    name = "slack"

    def __init__(self) -> None:
        self.causes: list[str] = []

    async def deliver(self, alerts: Sequence[events.AlertChanged], trace_ids: Mapping[str, str] = {}) -> None:  # noqa: ARG002
        """Note them."""
        self.causes += [each.cause for each in alerts]

    async def close(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("route", "wanted"),
    [
        ({"apps": ("shop",), "severities": (events.Severity.WARNING,)}, True),
        ({"apps": ("desk",)}, False),
        ({"categories": (events.Harm.FRAUD,)}, False),
        ({"hours": QuietHours(start="09:00", end="17:00")}, True),
        ({"hours": QuietHours(start="17:00", end="09:00")}, False),
        ({"sinks": ("mail",), "apps": ("desk",)}, True),
    ],
)
async def test_routes_say_which_sink_is_told(route: dict[str, object], wanted: bool) -> None:
    """By app, severity, category and hours; a sink that no route names is told of everything."""
    sink = Noting()
    policy = NotifyPolicy(routes=(msgspec.convert({"sinks": ("slack",), **route}, SinkRoute),))
    await RoutedSink(sink, policy, lambda: NOW).deliver([alert()])

    assert bool(sink.causes) is wanted


async def test_who_was_told_of_an_alert_is_told_of_its_end() -> None:
    """Though by then another category or hour is it: an incident that nobody closes wakes people for nothing.

    After a restart nobody remembers who was told: it goes by the route's hours when it was raised.
    """
    policy = NotifyPolicy(routes=(SinkRoute(sinks=("slack",), hours=QuietHours(start="09:00", end="17:00")),))
    sink, times = Noting(), iter([NOW, NOW + timedelta(hours=10), NOW + timedelta(hours=10)])
    routed = RoutedSink(sink, policy, times.__next__)
    await routed.deliver([alert()])
    await routed.deliver([alert(cause="resolved"), alert(cause="resolved", alert_id="of-the-night")])
    await routed.deliver([alert(cause="worsened")])
    later = Noting()
    restarted = RoutedSink(later, policy, lambda: NOW + timedelta(hours=10))
    await restarted.deliver([alert(cause="resolved"), alert(cause="resolved", alert_id="of-the-day", fired_at=NOW)])
    await restarted.deliver([alert(cause="renotified", fired_at=NOW)])

    assert (sink.causes, later.causes) == (["raised", "resolved"], ["resolved"])


@pytest.mark.parametrize(("delivered", "code"), [((True, True), 0), ((True, False), 1), ((False, False), 1)])
def test_the_trial_says_whether_every_sink_took_it(
    monkeypatch: pytest.MonkeyPatch, delivered: tuple[bool, ...], code: int
) -> None:
    """One that did not is what whoever tries them out wants to know, though the other one did."""

    async def try_sinks(*_: object) -> list[dict[str, object]]:
        return [{"sink": str(number), "delivered": taken, "detail": ""} for number, taken in enumerate(delivered)]

    monkeypatch.setattr("jobs.alerts.command.try_sinks", try_sinks)

    assert CliRunner().invoke(alerts, ["test"]).exit_code == code


@pytest.mark.parametrize(
    ("changes", "news", "incident", "group"),
    [
        ({"cause": "assigned", "assignee": "bob"}, "Assigned to bob: session s-1", None, None),
        (
            {"cause": "snoozed", "snoozed_until": NOW, "assignee": "bob"},
            "Snoozed until 2026-01-05 09:30Z: session s-1",
            "resolve",
            "ok",
        ),
        ({"cause": "duplicate", "duplicate_of": "a-7"}, "Duplicate of alert a-7: session s-1", "resolve", "ok"),
        ({"cause": "judged", "duplicate_of": "a-7"}, "Session s-1", "resolve", "ok"),
        ({"cause": "woken", "assignee": "bob"}, "Again, after a rest: session s-1", "trigger", "alerting"),
    ],
)
def test_an_alert_that_rests_pages_nobody(
    changes: dict[str, object], news: str, incident: str | None, group: str | None
) -> None:
    """Its incident is over until it wakes: one that is only acknowledged would not page again. Who has it is told."""
    told = alert(**changes)
    bodies = [
        msgspec.json.decode(msgspec.json.encode(form(told, TELL(told), None)))
        for form in (pagerduty_form("k"), oncall_form)
    ]
    posted = postable(told, TELL(told))[-1]

    assert sentence(told).startswith(news)
    assert sentence(told).endswith("; assigned to bob.") is (told.assignee == "bob" and told.cause != "assigned")
    assert [incident, group] == [body and body.get("event_action", body.get("state")) for body in bodies]
    assert posted.annotations.get("assignee", "") == told.assignee
    assert (posted.ends_at == NOW) is told.is_silenced


async def test_sinks_are_told_what_becomes_of_their_alerts_but_no_notes() -> None:
    """A route that is for critical alerts alone stays closed for what was never told there."""
    told = Noting()
    routes = (SinkRoute(sinks=("slack",), severities=(events.Severity.CRITICAL,)),)
    sink = RoutedSink(told, NotifyPolicy(routes=routes), lambda: NOW)
    for alert_id, severity in (("grave", events.Severity.CRITICAL), ("mild", events.Severity.WARNING)):
        for cause in ("raised", "assigned", "noted", "snoozed", "woken"):
            await sink.deliver([alert(alert_id=alert_id, severity=severity, cause=cause)])

    assert told.causes == ["raised", "assigned", "snoozed", "woken"]
