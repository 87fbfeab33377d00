"""What every alert sink promises, on a real receiver over loopback: HTTP, and SMTP with TLS."""

import asyncio
import base64
import email
import hmac
import json
import re
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from jobs.alerts.command import harmless_alert
from jobs.shared.role_process import free_port
from models.errors import StoreUnavailable
from models.events import AlertChanged, AlertStatus
from models.policy import NotifyPolicy
from streams.notify.delivery import DeliveryRetry, Poster
from streams.notify.forms import (
    ALERTMANAGER_PATH,
    FormSink,
    SlackSink,
    oncall_form,
    pagerduty_form,
    postable,
    teams_form,
    teller,
)
from streams.notify.mail import MailSink
from streams.notify.sinks import WebhookSink
from streams.ports import AlertSink
from streams.settings import NotifySettings
from tests.support.http_server import Request, answering
from tests.support.traced import TRACE_ID

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
KEY = b"k" * 32
TELL = teller(NotifyPolicy(), "https://live.example.org")
PAUSES = timedelta(seconds=1), timedelta(seconds=2)


class Received(NamedTuple):
    """A request, or an e-mail, as the receiver saw it."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Answers with the given statuses, then with 200; None answers never. By SMTP a reply of that kind."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int | None] = []
        self.closing = threading.Event()
        self.open = ExitStack()
        self.url = ""
        self.mail_port = 0

    def event_ids(self) -> list[str]:
        """Of the alert changes that came, whatever the sink's form."""
        return [re.findall(rb"\bid-\d+", each.body)[0].decode() for each in self.received]

    def answer(self, request: Request) -> None:
        """Note a request and answer it."""
        self.received.append(Received(request.path, request.names_and_values(), request.body()))
        status = self._next()
        if status is None:
            self.closing.wait(30)
        else:
            request.reply(status, b'{"ok": true, "ts": "1767605400.000100"}')

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802, ARG002 - as it is called
        """Note an e-mail and answer it; only encrypted ones come."""
        assert session.ssl is not None
        whole = envelope.original_content or b""
        self.received.append(Received(",".join(envelope.rcpt_tos), dict(email.message_from_bytes(whole)), whole))
        status = self._next()
        if status is None:
            await asyncio.to_thread(self.closing.wait, 30)
        if status == 200:
            return "250 taken"
        return f"451 later ({status})" if status in PASSING else f"550 no ({status})"

    def _next(self) -> int | None:
        return self.answers.pop(0) if self.answers else 200


PASSING = {500, 503, 429, 408}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whom the mail server's certificate is of."""
    return trustme.CA()


@pytest.fixture
def receiver(authority: trustme.CA) -> Iterator[Receiver]:
    """A running receiver."""
    running = Receiver()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    mail = Controller(running, "127.0.0.1", free_port(), tls_context=context, require_starttls=True)
    with running.open:
        running.url = running.open.enter_context(answering(running.answer))
        mail.start()
        running.open.callback(mail.stop)
        running.open.callback(running.closing.set)
        running.mail_port = mail.port
        yield running


Making = Callable[[timedelta], AlertSink]


@pytest.fixture
def pauses() -> list[float]:
    """Seconds that the sink waited between its tries; no test waits for them."""
    return []


FORMS = {"pagerduty": pagerduty_form("key-1"), "oncall": oncall_form, "teams": teams_form}


@pytest.fixture(params=["webhook", "alertmanager", "slack", "mail", *FORMS])
def making(
    request: pytest.FixtureRequest, receiver: Receiver, pauses: list[float], authority: trustme.CA, tmp_path: Path
) -> Making:
    """Each sink there is, by how long it waits for an answer."""
    name: str = request.param
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def made(timeout: timedelta) -> AlertSink:
        retry = DeliveryRetry(pauses=PAUSES, timeout=timeout)
        poster = Poster(name, receiver.url + "/hook/top-secret", retry=retry, pause=pause)
        if name == "mail":
            settings = NotifySettings(
                mail_host="127.0.0.1",
                mail_port=receiver.mail_port,
                mail_ca_file=str(tmp_path / "ca.pem"),
                mail_to=["on-call@example.org"],
            )
            return MailSink(settings, TELL, retry=retry, pause=pause)
        if name == "slack":
            return SlackSink(poster, TELL, token="xoxb-1", channel="C1")  # noqa: S106 - none
        if name in FORMS:
            return FormSink(name, poster, TELL, FORMS[name])
        return (
            WebhookSink(poster, KEY, TELL, clock=lambda: NOW)
            if name == "webhook"
            else FormSink(name, poster, TELL, postable)
        )

    return made


@pytest.fixture
async def sink(making: Making) -> AsyncIterator[AlertSink]:
    """A patient one."""
    made = making(timedelta(seconds=30))
    yield made
    await made.close()


def alert(number: int, **changes: object) -> AlertChanged:
    """A change with an id of its own."""
    return msgspec.structs.replace(harmless_alert(NOW), id=f"id-{number}", **changes)


async def test_delivers_each_in_order_and_repeats_can_be_told(sink: AlertSink, receiver: Receiver) -> None:
    """The same change twice is the same request, so that the receiver can drop it; Slack has it in one thread."""
    await sink.deliver([alert(1), alert(2), alert(3, status=AlertStatus.RESOLVED)])
    await sink.deliver([alert(1)])
    first, *_, second = receiver.received

    assert receiver.event_ids() == ["id-1", "id-2", "id-3", "id-1"]
    if sink.name == "slack":
        assert json.loads(second.body)["thread_ts"] == "1767605400.000100"
        return
    assert (first.body, first.headers.get("webhook-id")) == (second.body, second.headers.get("webhook-id"))


@pytest.mark.parametrize("trouble", [500, 503, 429, 408, None])
async def test_tries_again(making: Making, receiver: Receiver, pauses: list[float], trouble: int | None) -> None:
    """Server errors and time-outs pass: the second try, after a pause, delivers."""
    receiver.answers = [trouble]
    sink = making(timedelta(seconds=30 if trouble else 1))
    await sink.deliver([alert(1)])
    await sink.close()

    assert receiver.event_ids() == ["id-1", "id-1"]
    assert pauses == [1.0]


@pytest.mark.parametrize("refusal", [400, 401, 404, 410, 302])
async def test_refusal_is_final(sink: AlertSink, receiver: Receiver, refusal: int) -> None:
    """What will not pass by itself is told at once, and later changes are held back: order is kept."""
    receiver.answers = [refusal]
    with pytest.raises(StoreUnavailable, match=rf"{refusal}|reply 550"):
        await sink.deliver([alert(1), alert(2)])

    assert receiver.event_ids() == ["id-1"]


async def test_gives_up(sink: AlertSink, receiver: Receiver, pauses: list[float]) -> None:
    """After the last pause the caller must know: the offset stays."""
    receiver.answers = [503] * 10
    with pytest.raises(StoreUnavailable, match=r"503|reply 451"):
        await sink.deliver([alert(1)])

    assert pauses == [1.0, 2.0]
    assert len(receiver.received) == 3


async def test_nobody_listens(sink: AlertSink, receiver: Receiver, pauses: list[float]) -> None:
    """A refused connection is tried again, then told, without the path, which may hold a secret."""
    receiver.open.close()
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1") as refusal:
        await sink.deliver([alert(1)])

    assert pauses == [1.0, 2.0]
    assert "top-secret" not in str(refusal.value)


async def test_webhook_is_signed(receiver: Receiver) -> None:
    """A receiver can verify each delivery as Standard Webhooks say: over id, time and the very bytes of the body."""
    sink = WebhookSink(Poster("webhook", f"{receiver.url}/hook"), KEY, TELL, clock=lambda: NOW)
    await sink.deliver([alert(1)])
    await sink.close()
    (request,) = receiver.received
    signed = f"id-1.{int(NOW.timestamp())}.".encode() + request.body
    signature = base64.b64encode(hmac.new(KEY, signed, sha256).digest()).decode()

    assert request.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert request.headers["webhook-signature"] == f"v1,{signature}"
    assert json.loads(request.body)["type"] == "turntide.alert_changed.v1"
    assert msgspec.convert(json.loads(request.body)["data"], AlertChanged) == alert(1)
    assert "trace_id" not in json.loads(request.body)


async def test_alertmanager_gets_its_api(receiver: Receiver) -> None:
    """The v2 path, camel-case names and RFC 3339 times."""
    sink = FormSink("alertmanager", Poster("alertmanager", receiver.url + ALERTMANAGER_PATH), TELL, postable)
    await sink.deliver([alert(1, status=AlertStatus.RESOLVED, cause="resolved")])
    await sink.close()
    (request,) = receiver.received
    (posted,) = json.loads(request.body)

    assert request.path == "/api/v2/alerts"
    assert posted["labels"]["alertname"] == "TurntideSessionEscalating"
    assert (posted["startsAt"], posted["endsAt"]) == ("2026-01-05T09:30:00Z", "2026-01-05T09:30:00Z")
    assert "trace_id" not in posted["annotations"]


@pytest.mark.parametrize("making", ["webhook", "alertmanager"], indirect=True)
async def test_the_trace_of_the_turn_is_told(receiver: Receiver, sink: AlertSink) -> None:
    """Where it has one: beside the alert, never as a label, which would be a series for each."""
    await sink.deliver([alert(1), alert(2)], {alert(2).id: TRACE_ID})
    first, second = [json.loads(each.body) for each in receiver.received]
    told = [each[0]["annotations"] if isinstance(each, list) else each for each in (first, second)]

    assert [each.get("trace_id") for each in told] == [None, TRACE_ID]
    assert TRACE_ID not in json.dumps([each["labels"] for each in second] if isinstance(second, list) else [])


async def test_slack_keeps_an_alert_in_one_thread(receiver: Receiver) -> None:
    """What follows of an alert answers its first message; when it grew worse the channel sees it too."""
    sink = SlackSink(Poster("slack", receiver.url), TELL, token="xoxb-1", channel="C1")  # noqa: S106 - none
    await sink.deliver([alert(1), alert(2, cause="renotified"), alert(3, cause="worsened"), alert(4, alert_id="other")])
    await sink.close()
    said = [json.loads(each.body) for each in receiver.received]

    assert [each.get("thread_ts") for each in said] == [None, "1767605400.000100", "1767605400.000100", None]
    assert [each.get("reply_broadcast") for each in said] == [None, False, True, None]
    assert {each.headers["authorization"] for each in receiver.received} == {"Bearer xoxb-1"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b'{"ok": false, "error": "channel_not_found"}', "channel_not_found"), (b"<html>", "is not Slack's API")],
)
async def test_what_slack_refuses_with_status_200_is_not_delivered(answer: bytes, said: str) -> None:
    """Its API says so in the body, a proxy answers something else: the offset must stay, and other sinks go on."""

    def refuse(request: Request) -> None:
        request.body()
        request.reply(200, answer)

    with answering(refuse) as url:
        sink = SlackSink(Poster("slack", url), TELL, token="xoxb-1", channel="C1")  # noqa: S106 - none
        with pytest.raises(StoreUnavailable, match=said):
            await sink.deliver([alert(1)])
        await sink.close()


async def test_pagerduty_follows_the_life_of_an_alert(receiver: Receiver) -> None:
    """One incident: its key is the alert's, its actions are the alert's states."""
    sink = FormSink("pagerduty", Poster("pagerduty", receiver.url), TELL, FORMS["pagerduty"])
    states = (AlertStatus.FIRING, AlertStatus.ACKNOWLEDGED, AlertStatus.RESOLVED)
    await sink.deliver([alert(n, status=status) for n, status in enumerate(states)])
    await sink.close()
    said = [json.loads(each.body) for each in receiver.received]

    assert [each["event_action"] for each in said] == ["trigger", "acknowledge", "resolve"]
    assert {(each["routing_key"], each["dedup_key"]) for each in said} == {("key-1", alert(0).alert_id)}


async def test_a_mail_server_without_tls_gets_nothing(receiver: Receiver, tmp_path: Path) -> None:
    """A certificate that is not trusted is refused before anything is said."""
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    settings = NotifySettings(
        mail_host="127.0.0.1", mail_port=receiver.mail_port, mail_ca_file=str(tmp_path / "other.pem"), mail_to=["a@b.c"]
    )
    with pytest.raises(StoreUnavailable, match="SSLCertVerificationError"):
        await MailSink(settings, TELL, retry=DeliveryRetry(pauses=())).deliver([alert(1)])

    assert receiver.received == []
