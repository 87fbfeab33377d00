"""What the audit says of a request, and what becomes of records that cannot be written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from pydantic import SecretStr

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.wire.codec import encode
from streams.http import audit
from streams.http.audit import BatchedAudit, KafkaAudit
from streams.settings import load_settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Log, Served, called, counted, fact, said
from tests.support.blank_events import blank

TOKEN, QUERY = "a-token-of-the-support-desk", "a question about pelicans"


@asynccontextmanager
async def asked(log: Log) -> AsyncIterator[tuple[httpx.AsyncClient, Served]]:
    """A client of the support desk's, and the role that it asks, which knows two facts and three turns."""
    token = ApiToken(token=SecretStr(TOKEN), role=TokenRole.ADMIN, name="support desk")
    served = Served(settings=HttpSettings(tokens=[token]), log=log)
    served.users.known_facts += [fact("name", "Alex", app="a"), fact("city", "Bern", app="a")]
    await served.say(*[said(n, f"{QUERY} {n}", app="a", user="u", session="s/1") for n in range(3)])
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    async with served.tools.running(), served.client(headers) as client:
        yield client, served


def listing(user: Any) -> dict[str, Any]:
    """A call of a tool."""
    call = {"name": "list_facts", "arguments": {"user_id": user}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


async def test_who_read_what_of_whom_and_never_the_words() -> None:
    """The route's template, ids of path, query and body, how much was given; of an erasure nobody's name."""
    log = Log()
    async with asked(log) as (client, _):
        await client.get("/v1/sessions/s%2F1/turns?last=2")
        await client.post("/v1/retrieve", json={"user_id": "u", "app_id": "a", "query": QUERY})
        await client.get("/v1/sessions/s/topics/none")
        await client.post("/v1/erase", json={"user_id": "forgotten", "app_id": "a"})
        await client.get("/v1/index")
    told = [(e.kind, e.method, e.route, e.status, e.given, e.session_id, e.user_id, e.app_id) for e in log.events]

    assert told == [
        ("text_read", "GET", "/v1/sessions/{session_id}/turns", 200, 2, "s/1", "", "a"),
        ("text_read", "POST", "/v1/retrieve", 200, 2, "", "u", "a"),
        ("text_read", "GET", "/v1/sessions/{session_id}/topics/{topic}", 404, 0, "s", "", ""),
        ("acted", "POST", "/v1/erase", 202, 1, "", "", ""),
    ]
    assert {"support desk"} == {event.by for event in log.events}
    written = b"".join(map(encode, log.events))
    assert not any(secret in written for secret in (TOKEN.encode(), QUERY.encode(), b"forgotten", b"pelicans"))


async def test_what_fails_half_way_or_is_a_tool_is_on_record_with_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A deed that broke off may be done all the same; a tool gives as much as a route, and refuses with 200."""
    log = Log()
    async with asked(log) as (client, served):
        told = [(await client.post("/mcp", json=listing(user))).status_code for user in ("u", 7)]
        refused = [await client.post(f"/v1/live/alerts/x/{deed}", json={}) for deed in ("acknowledge", "label")]
        monkeypatch.setattr(served.erasures, "request", AsyncMock(side_effect=RuntimeError))
        broken = await client.post("/v1/erase", json={"user_id": "u"})
        monkeypatch.setattr(served.erasures, "request", AsyncMock(side_effect=asyncio.CancelledError))
        with pytest.raises(asyncio.CancelledError):
            await client.post("/v1/erase", json={"user_id": "u"})

    assert (told, [each.status_code for each in refused], broken.status_code) == ([200, 200], [422, 422], 500)
    assert [(each.kind, each.status, each.given, each.user_id) for each in log.events] == [
        ("text_read", 200, 2, "u"),
        ("text_read", 422, 0, ""),
        *[("acted", 422, 0, "")] * 2,
        ("acted", 500, 0, ""),
        ("acted", 504, 0, ""),
    ]
    assert {"support desk"} == {each.by for each in log.events}
    assert [each.route for each in log.events][2:4] == [
        f"/v1/live/alerts/{{alert_id}}/{deed}" for deed in ("acknowledge", "label")
    ]


@pytest.mark.parametrize(("required", "status"), [(True, 503), (False, 200)])
async def test_words_wait_for_their_record_where_it_is_required(required: bool, status: int) -> None:
    """503 before a word is out; figures, and everything where it is not required, are answered."""
    log = Log(required=required)
    log.away = True
    async with asked(log) as (client, _):
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
    log = Log(required=True)
    log.away = True
    body = AsyncMock(return_value={"type": "http.request", "body": b""})
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    async with asked(log) as (_, served):
        sent = await called(served.app, receive=body, path="/v1/sessions/s/1/turns", headers=headers)

    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]
    assert (sent[0]["status"], QUERY.encode() in sent[1]["body"]) == (503, False)


def event(number: int = 0) -> AccessAudited:
    """A record."""
    return blank(AccessAudited, id=str(number), kind="acted", by="b")


@pytest.mark.parametrize(("at_once", "batches"), [(100, [3, 2, 2]), (2, [2, 1, 2, 2])])
async def test_records_are_written_together_and_none_is_lost_in_silence(
    monkeypatch: pytest.MonkeyPatch, at_once: int, batches: list[int]
) -> None:
    """What waits is bounded, and a batch; what is left at the end is written; what cannot be is counted."""
    monkeypatch.setattr(audit, "MOST_WAITING", 3)
    monkeypatch.setattr(audit, "MOST_AT_ONCE", at_once)
    topic = AsyncMock()
    log, results = BatchedAudit(topic, required=False), ("written", "lost")
    before = [counted("audit_records_total", result=each) for each in results]
    async with log.running():
        for number in range(5):
            log.record(event(number))
    topic.side_effect = DeliveryFailed("away")
    async with log.running():
        log.record(event())
        with pytest.raises(DeliveryFailed):
            await log.write(event())
    topic.side_effect = None
    async with log.running():
        await asyncio.gather(log.write(event()), log.write(event()))

    assert [len(call.args[0]) for call in topic.await_args_list] == batches
    assert [counted("audit_records_total", result=r) - was for r, was in zip(results, before, strict=True)] == [5, 4]


@pytest.mark.parametrize("required", [True, False])
async def test_the_settings_say_whether_it_is_required(required: bool) -> None:
    """As `http.audit_required` is documented."""
    assert KafkaAudit(load_settings(http={"audit_required": required})).required is required
