"""What every alert sink promises, on a real receiver over loopback HTTP."""

import base64
import hmac
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import pytest

from jobs.alerts.command import harmless_alert
from models.errors import StoreUnavailable
from models.events import AlertChanged, AlertStatus
from streams.notify.alertmanager import API_PATH, AlertmanagerSink
from streams.notify.delivery import DeliveryRetry, Poster
from streams.notify.webhook import WebhookSink
from streams.ports import AlertSink
from tests.support.http_server import Request, answering
from tests.support.traced import TRACE_ID

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
KEY = b"k" * 32
PAUSES = timedelta(seconds=1), timedelta(seconds=2)


class Received(NamedTuple):
    """A request as the receiver saw it."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Answers with the given statuses, then with 200; None answers never."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int | None] = []
        self.closing = threading.Event()
        self.open = ExitStack()
        self.url = ""

    def event_ids(self) -> list[str]:
        """Of the alert changes that came, whatever the sink's form."""
        told: list[Any] = [json.loads(each.body) for each in self.received]
        return [each[0]["annotations"]["event_id"] if isinstance(each, list) else each["data"]["id"] for each in told]

    def answer(self, request: Request) -> None:
        """Note a request and answer it."""
        self.received.append(Received(request.path, request.names_and_values(), request.body()))
        status = self.answers.pop(0) if self.answers else 200
        if status is None:
            self.closing.wait(30)
        else:
            request.reply(status)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    running = Receiver()
    with running.open:
        running.url = running.open.enter_context(answering(running.answer))
        running.open.callback(running.closing.set)
        yield running


Making = Callable[[timedelta], AlertSink]


@pytest.fixture
def pauses() -> list[float]:
    """Seconds that the sink waited between its tries; no test waits for them."""
    return []


@pytest.fixture(params=["webhook", "alertmanager"])
def making(request: pytest.FixtureRequest, receiver: Receiver, pauses: list[float]) -> Making:
    """Each sink there is, by how long it waits for an answer."""

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def made(timeout: timedelta) -> AlertSink:
        path = "/hook/top-secret" if request.param == "webhook" else API_PATH
        retry = DeliveryRetry(pauses=PAUSES, timeout=timeout)
        poster = Poster(request.param, receiver.url + path, retry=retry, pause=pause)
        return WebhookSink(poster, KEY, clock=lambda: NOW) if request.param == "webhook" else AlertmanagerSink(poster)

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


async def test_delivers_each_in_order(sink: AlertSink, receiver: Receiver) -> None:
    """Every change arrives once, the earlier first."""
    await sink.deliver([alert(1), alert(2), alert(3, status=AlertStatus.RESOLVED)])

    assert receiver.event_ids() == ["id-1", "id-2", "id-3"]


async def test_repeats_can_be_told(sink: AlertSink, receiver: Receiver) -> None:
    """The same change twice is the same request, so that the receiver can drop it."""
    await sink.deliver([alert(1)])
    await sink.deliver([alert(1)])
    first, second = receiver.received

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
    with pytest.raises(StoreUnavailable, match=str(refusal)):
        await sink.deliver([alert(1), alert(2)])

    assert receiver.event_ids() == ["id-1"]


async def test_gives_up(sink: AlertSink, receiver: Receiver, pauses: list[float]) -> None:
    """After the last pause the caller must know: the offset stays."""
    receiver.answers = [503] * 10
    with pytest.raises(StoreUnavailable, match="503"):
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
    sink = WebhookSink(Poster("webhook", f"{receiver.url}/hook"), KEY, clock=lambda: NOW)
    await sink.deliver([alert(1)])
    await sink.close()
    (request,) = receiver.received
    signed = f"id-1.{int(NOW.timestamp())}.".encode() + request.body
    signature = base64.b64encode(hmac.new(KEY, signed, sha256).digest()).decode()

    assert request.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert request.headers["webhook-signature"] == f"v1,{signature}"
    assert json.loads(request.body)["type"] == "turntide.alert_changed.v1"
    assert "trace_id" not in json.loads(request.body)


async def test_alertmanager_gets_its_api(receiver: Receiver) -> None:
    """The v2 path, camel-case names and RFC 3339 times."""
    sink = AlertmanagerSink(Poster("alertmanager", receiver.url + API_PATH))
    await sink.deliver([alert(1, status=AlertStatus.RESOLVED, cause="resolved")])
    await sink.close()
    (request,) = receiver.received
    (posted,) = json.loads(request.body)

    assert request.path == "/api/v2/alerts"
    assert posted["labels"]["alertname"] == "TurntideSessionEscalating"
    assert (posted["startsAt"], posted["endsAt"]) == ("2026-01-05T09:30:00Z", "2026-01-05T09:30:00Z")
    assert "trace_id" not in posted["annotations"]


async def test_the_trace_of_the_turn_is_told(receiver: Receiver, sink: AlertSink) -> None:
    """Where it has one: beside the alert, never as a label, which would be a series for each."""
    await sink.deliver([alert(1), alert(2)], {alert(2).id: TRACE_ID})
    first, second = [json.loads(each.body) for each in receiver.received]
    told = [each[0]["annotations"] if isinstance(each, list) else each for each in (first, second)]

    assert [each.get("trace_id") for each in told] == [None, TRACE_ID]
    assert TRACE_ID not in json.dumps([each["labels"] for each in second] if isinstance(second, list) else [])
