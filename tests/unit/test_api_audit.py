"""What the audit says of a request, and what becomes of records that cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from pydantic import SecretStr

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.events.erase import EraseRequested
from models.wire.codec import encode
from streams.api.mcp.server import McpEndpoint
from streams.http import audit_log
from streams.http.audit_log import BatchedAudit, KafkaAudit
from streams.observe.telemetry import metrics
from streams.settings import load_settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.api_audit import Log, audited_app
from tests.api_doubles import fact, said

TOKEN, QUERY = "a-token-of-the-support-desk", "a question about pelicans"


@asynccontextmanager
async def asked(log: Log) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the support desk's, of a role that knows two facts and three turns."""
    token = ApiToken(token=SecretStr(TOKEN), role=TokenRole.ADMIN, name="support desk")
    app, served = audited_app(HttpSettings(tokens=[token]), log)
    served.users.known_facts += [fact("name", "Alex", app="a"), fact("city", "Bern", app="a")]
    await served.say(*[said(n, f"{QUERY} {n}", app="a", user="u", session="s/1") for n in range(3)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        yield client
    await served.close()


async def test_who_read_what_of_whom_and_never_the_words() -> None:
    """The route's template, ids of path, query and body, how much was given; of an erasure nobody's name."""
    log = Log()
    async with asked(log) as client:
        await client.get("/v1/sessions/s%2F1/turns?last=2")
        await client.post("/v1/retrieve", json={"user_id": "u", "app_id": "a", "query": QUERY})
        await client.get("/v1/sessions/s/topics/none")
        await client.post("/v1/erase", json={"user_id": "forgotten", "app_id": "a"})
        await client.get("/v1/index")
    told = [(e.kind, e.method, e.route, e.status, e.given, e.session_id, e.user_id, e.app_id) for e in log.events]

    assert told == [
        ("text_read", "GET", "/v1/sessions/{session_id}/turns", 200, 2, "s/1", "", ""),
        ("text_read", "POST", "/v1/retrieve", 200, 2, "", "u", "a"),
        ("text_read", "GET", "/v1/sessions/{session_id}/topics/{topic}", 404, 0, "s", "", ""),
        ("acted", "POST", "/v1/erase", 202, 1, "", "", ""),
    ]
    assert {"support desk"} == {event.by for event in log.events}
    written = b"".join(map(encode, log.events))
    assert not any(secret in written for secret in (TOKEN.encode(), QUERY.encode(), b"forgotten", b"pelicans"))


async def test_what_people_do_about_an_alert_is_on_record() -> None:
    """Who it was, also of what is refused."""
    log, path = Log(), "/v1/live/alerts/{}/{}".format
    async with asked(log) as client:
        for deed in ("acknowledge", "label"):
            await client.post(path("x", deed), json={})

    assert [("acted", "support desk", path("{alert_id}", deed), 422) for deed in ("acknowledge", "label")] == [
        (each.kind, each.by, each.route, each.status) for each in log.events
    ]


async def test_what_fails_half_way_or_is_a_tool_is_on_record_with_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A deed that broke off may be done all the same; a tool that refuses answers 200 like every tool."""
    log = Log()
    app, served = audited_app(HttpSettings(), log)
    endpoint = next(each for each in app.state.endpoints if isinstance(each, McpEndpoint))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    call = {"name": "list_facts", "arguments": {"user_id": 7}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    async with endpoint.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        told = await client.post("/mcp", json=asked, headers=accept)
        monkeypatch.setattr(served.erasures, "request", _breaks)
        broken = await client.post("/v1/erase", json={"user_id": "u"})
        monkeypatch.setattr(served.erasures, "request", _is_cancelled)
        with pytest.raises(asyncio.CancelledError):
            await client.post("/v1/erase", json={"user_id": "u"})
    await served.close()

    assert (told.status_code, broken.status_code) == (200, 500)
    assert [(each.kind, each.status) for each in log.events] == [("text_read", 422), ("acted", 500), ("acted", 504)]


async def test_the_record_of_a_tool_says_how_much_it_gave() -> None:
    """A tool that reads a whole memory is no smaller a reading than the route beside it."""
    log = Log()
    app, served = audited_app(HttpSettings(), log)
    served.users.known_facts += [fact("name", "Alex", app="a"), fact("city", "Bern", app="a")]
    endpoint = next(each for each in app.state.endpoints if isinstance(each, McpEndpoint))
    call = {"name": "list_facts", "arguments": {"user_id": "u"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    transport = httpx.ASGITransport(app)
    async with endpoint.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        await client.post("/mcp", json=asked, headers=accept)
    await served.close()

    assert [(each.kind, each.status, each.given, each.user_id) for each in log.events] == [("text_read", 200, 2, "u")]


async def _breaks(_request: EraseRequested) -> None:
    raise RuntimeError


async def _is_cancelled(_request: EraseRequested) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(("required", "status"), [(True, 503), (False, 200)])
async def test_words_wait_for_their_record_where_it_is_required(required: bool, status: int) -> None:
    """503 before a word is out; figures, and everything where it is not required, are answered."""
    log = Log(required=required)
    log.away = True
    async with asked(log) as client:
        words = await client.get("/v1/sessions/s%2F1/turns")
        figures = await client.get("/v1/index")
        log.away = False
        again = await client.get("/v1/sessions/s%2F1/turns")

    assert (words.status_code, figures.status_code, again.status_code) == (status, 200, 200)
    assert (QUERY in words.text) is not required
    if required:
        assert (words.json()["code"], "retry-after" in words.headers) == ("audit_unavailable", True)


async def test_nothing_follows_the_refusal_of_words() -> None:
    """The server is handed one answer: what stood behind goes on, and none of it goes out."""
    log, sent = Log(required=True), list[Any]()
    log.away = True
    app, served = audited_app(HttpSettings(), log)
    await served.say(said(0, QUERY, app="a", user="u", session="s"))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/v1/sessions/s/turns", "query_string": b""}
    await app({**scope, "headers": [(b"host", b"127.0.0.1")]}, receive, send)
    await served.close()

    assert [("http.response.start", 503), ("http.response.body", None)] == [
        (each["type"], each.get("status")) for each in sent
    ]
    assert QUERY.encode() not in b"".join(each.get("body", b"") for each in sent)


def event(number: int = 0) -> AccessAudited:
    """A record."""
    at = fact("x", "y").valid_from
    return AccessAudited(id=str(number), timestamp=at, kind="acted", by="b", method="GET", route="/", status=200)


def counted(result: str) -> float:
    """Records of that result so far."""
    value: float = metrics.counter("audit_records_total", result=result)._value.get()
    return value


class Topic:
    """What writes: keeps batches, or fails."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.away = False

    async def __call__(self, events: Sequence[AccessAudited]) -> None:
        """Write a batch."""
        if self.away:
            raise DeliveryFailed("away")
        self.batches.append(len(events))


async def test_records_are_written_together_and_none_is_lost_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded; what is left at the end is written; what cannot be is counted."""
    monkeypatch.setattr(audit_log, "MOST_WAITING", 3)
    topic = Topic()
    log, written, lost = BatchedAudit(topic, required=False), counted("written"), counted("lost")
    async with log.running():
        for number in range(5):
            log.record(event(number))
    topic.away = True
    async with log.running():
        log.record(event())
        with pytest.raises(DeliveryFailed):
            await log.write(event())
    topic.away = False
    async with log.running():
        await asyncio.gather(log.write(event()), log.write(event()))

    assert topic.batches == [3, 2]
    assert (counted("written") - written, counted("lost") - lost) == (5, 4)


@pytest.mark.parametrize("required", [True, False])
async def test_the_settings_say_whether_it_is_required(required: bool) -> None:
    """As `http.audit_required` is documented."""
    assert KafkaAudit(load_settings(http={"audit_required": required})).required is required


async def test_the_connection_ends_with_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """After what waits is written: a role that ends leaves no client behind, also where it ends in an error."""
    producer = AsyncMock()
    monkeypatch.setattr(audit_log, "ProducerOnDemand", lambda _settings: producer)
    log = KafkaAudit(load_settings())
    with suppress(RuntimeError):
        async with log.running():
            log.record(event())
            raise RuntimeError

    assert [name for name, *_ in producer.mock_calls] == ["write", "close"]


async def test_many_records_go_in_batches_and_none_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has its bound; what does not fit goes with the next."""
    monkeypatch.setattr(audit_log, "MOST_AT_ONCE", 2)
    topic = Topic()
    log = BatchedAudit(topic, required=False)
    async with log.running():
        for number in range(5):
            log.record(event(number))

    assert topic.batches == [2, 2, 1]


async def test_who_waits_for_a_record_is_refused_where_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that is away takes no memory, whoever asks."""
    monkeypatch.setattr(audit_log, "MOST_WAITING", 2)
    log = BatchedAudit(Topic(), required=True)
    async with log.running():
        log.record(event(1))
        log.record(event(2))
        with pytest.raises(DeliveryFailed, match="wait for the log already"):
            await log.write(event(3))


async def test_what_a_log_that_hangs_did_not_take_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that is under way and those behind it: the role ends, and no record is lost in silence."""
    monkeypatch.setattr(audit_log, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(audit_log, "WRITTEN_WITHIN_S", 0.01)
    writing, lost = asyncio.Event(), counted("lost")

    async def hangs(_events: Sequence[AccessAudited]) -> None:
        writing.set()
        await asyncio.Event().wait()

    log = BatchedAudit(hangs, required=False)
    async with log.running():
        for number in range(5):
            log.record(event(number))
        await writing.wait()

    assert counted("lost") - lost == 5
