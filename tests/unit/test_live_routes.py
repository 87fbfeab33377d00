"""`/v1/live` and `/live/`: who may ask what, what is masked, and that whatever was said arrives as data."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from models.events import (
    AlertAcknowledged,
    AlertLabelled,
    AlertStatus,
    AlertTriaged,
    Mode,
    ModeTransition,
    Position,
    SessionTurns,
)
from models.wire.codec import encode
from streams.api.live.messages import AlertNote
from streams.api.live.timeline import MOST_QUOTED_CHARS
from streams.index.collections import SEGMENTS
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.settings.http import TokenRole
from tests.support.api_doubles import said
from tests.support.api_tenants import canary, topic_of, user_events_of
from tests.support.http_api import client_of
from tests.support.live_made import AT, alert, at_ms, profile, segment
from tests.support.live_served import Holders, LiveServed, live_token
from tests.support.loaded import loaded_embedder

XSS = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
ODD = f"a/b/../{XSS}?q=1#f%2F \\ 雪"
"""A session id of anything."""
OF = {
    "ops-a": (TokenRole.OPERATOR, ["a"], True),
    "blind": (TokenRole.OPERATOR, [], False),
    "all": (TokenRole.OPERATOR, [], True),
    "reader": (TokenRole.READER, [], True),
}


class Watched(LiveServed):
    """A role with two tenants' sessions, and their memory; the board is filled by hand."""

    def __init__(self, holders: Holders = OF, **http: Any) -> None:
        super().__init__(holders, **http)
        self.served = self.app()

    async def fill(self) -> None:
        """A session of each tenant with an alert, one called by an odd name, and what is remembered of them."""
        board = self.page.board
        for app in ("a", "b"):
            session, user = f"session-{app}", f"user-{app}"
            spoken = [said(n, f"{canary(app)} {XSS} pelicans {n}", app=app, user=user, session=session) for n in (0, 1)]
            fact, episode, stats = user_events_of(app, user, session)
            await self.remember(spoken, topic_of(app, session), [fact], episode, stats)
            modes = [ModeTransition(1, Mode.CRITICAL)]
            board.take_profile(profile(session, app=app, user=user, mode_transitions=modes), at_ms())
            compacted = segment(session, app=app)
            board.take_segment(compacted, at_ms())
            await SEGMENTS.note(self.store, loaded_embedder().dim, [(compacted, 1)])
            board.take_alert(alert(session, f"alert-{app}", app=app, user=user, evidence=[1, 1]), at_ms(), "1" * 32)
        odd = said(7, XSS, app="a", user=XSS, session=ODD)
        await SessionVectorMemory(self.store, loaded_embedder()).add_turns(
            [odd], loaded_embedder().embed([odd.content])
        )
        board.take_profile(profile(ODD, app="a", user=XSS), at_ms())
        board.take_alert(alert(ODD, "alert/../odd", app="a", user=XSS, reason=XSS), at_ms())

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[httpx.AsyncClient]:
        """A client with the token of that name."""
        headers = {"Authorization": f"Bearer {live_token(name)}"} if name else {}
        async with client_of(self.served, headers) as client:
            yield client


@pytest.fixture
async def served() -> AsyncIterator[Watched]:
    """With both tenants' sessions."""
    made = Watched()
    await made.fill()
    yield made
    await made.store.close()


async def test_a_timeline_has_everything_but_text(served: Watched) -> None:
    """Titles, values and summaries are null until they are asked for by who may."""
    async with served.client("all") as client:
        masked = (await client.get("/v1/live/sessions/session-a")).json()
        shown = (await client.get("/v1/live/sessions/session-a?text=true")).json()
    async with served.client("blind") as client:
        refused = await client.get("/v1/live/sessions/session-a?text=true")

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_text")
    assert canary("a") not in msgspec.json.encode(masked).decode()
    assert (shown["segments"][0]["summary"], masked["segments"][0]["summary"]) == (segment().summary, None)
    assert [shown["topics"][0]["title"], shown["facts"][0]["value"], shown["episodes"][0]["summary"]] == [
        f"{canary('a')} canary about pelicans",
        canary("a"),
        f"{canary('a')}: canary about pelicans",
    ]
    assert [(1, "critical")] == [(each["turn"], each["to_mode"]) for each in masked["modes"]]


async def test_an_alert_quotes_its_worst_turn_masked(served: Watched) -> None:
    """With `text` alone; secrets and addresses are replaced, what is long is cut. A search without it says places."""
    secret = f"my mail is ann@example.org, redis://:hunter2@cache.example:6379/0 {'and so on ' * 100}"
    turn = said(1, secret, app="a", user="user-a", session="session-a")
    await SessionVectorMemory(served.store, loaded_embedder()).add_turns([turn], loaded_embedder().embed([secret]))
    async with served.client("all") as client:
        plain, text = [
            (await client.get(f"/v1/live/sessions/session-a?text={asked}")).json()["alerts"][-1]
            for asked in ("false", "true")
        ]
        places = (await client.get("/v1/live/search?q=my+mail&text=false")).json()["hits"]

    assert plain["quote"] is None
    assert text["quote"].startswith("my mail is [email], redis://:[password]@cache.example:6379/0 and so on")
    assert len(text["quote"]) == MOST_QUOTED_CHARS
    assert ("session-a", 1, None) in {(hit["session_id"], hit["turn"], hit["text"]) for hit in places}


async def test_a_timeline_tells_of_its_session_and_a_search_of_what_holds(served: Watched) -> None:
    """Facts that held once are in their session's timeline and are found no more; other sessions' are not in it."""
    users = UserMemory(served.store, loaded_embedder())
    fact, episode, _ = user_events_of("a", "user-a", "session-a")
    once = msgspec.structs.replace(fact, key="once", active=False)
    elsewhere = msgspec.structs.replace(fact, key="elsewhere", session_id="another")
    other = msgspec.structs.replace(episode, episode=2, first_turn=21, turns=[SessionTurns("another", [0])])
    await users.add_facts([(once, 1), (elsewhere, 2)])
    await users.add_episodes([(other, 1)])
    async with served.client("ops-a") as client:
        timeline = (await client.get("/v1/live/sessions/session-a")).json()
        found = (await client.get("/v1/live/search?q=once+elsewhere&kind=facts")).json()["hits"]

    assert {("name", True), ("once", False)} == {(each["key"], each["active"]) for each in timeline["facts"]}
    assert [1] == [each["episode"] for each in timeline["episodes"]]
    assert ["elsewhere: canary-of-a"] == [hit["text"] for hit in found]


async def test_a_text_has_a_thousand_turns_at_most(served: Watched) -> None:
    """One more is refused, and so are a last one before the first and a search of nothing."""
    async with served.client("ops-a") as client:
        asked = [
            (await client.get(f"/v1/live/texts/session-a?{query}")).status_code
            for query in ("first=0&last=999", "first=0&last=1000", "first=1&last=0")
        ]
        asked += [
            (await client.get(f"/v1/live/search?{query}")).status_code
            for query in ("q=", "q=%20", "q=x&kind=all", "q=x&limit=0")
        ]

    assert asked == [200, *[422] * 6]


async def test_ids_and_text_of_anything_are_data(served: Watched) -> None:
    """Markup arrives as JSON of the right type, unchanged, and nothing sniffs it; any id finds its session."""
    path = f"/v1/live/sessions/{quote(ODD, safe='')}"
    async with served.client("all") as client:
        timeline = await client.get(path)
        text = await client.get(f"/v1/live/texts/{quote(ODD, safe='')}?first=7&last=7")
        acknowledged = await client.post(
            f"/v1/live/alerts/{quote('alert/../odd', safe='')}/acknowledge", json={"session_id": ODD}
        )
        unknown = [
            await client.get(f"/v1/live/sessions/{each}")
            for each in (quote("../../etc/passwd", safe=""), "%2e%2e%2f%2e%2e", "x" * 256, quote(XSS, safe=""))
        ]
        unfit = [await client.get(f"/v1/live/sessions/{each}") for each in ("x" * 257, "%00", "a%0Ab", "%E2%80%A8")]

    assert {"application/json"} == {each.headers["content-type"] for each in (timeline, text, acknowledged)}
    assert (timeline.json()["session"]["session_id"], timeline.json()["session"]["user_id"]) == (ODD, XSS)
    assert timeline.json()["alerts"][0]["reason"] == XSS
    assert [(7, XSS)] == [(turn["turn"], turn["content"]) for turn in text.json()["turns"]]
    assert acknowledged.status_code == 202
    assert [(404, "application/problem+json")] * 4 == [(e.status_code, e.headers["content-type"]) for e in unknown]
    assert not any("script" in each.text for each in unknown)
    assert [422] * 4 == [each.status_code for each in unfit]


async def test_what_people_do_is_written_as_the_command_line_writes_it(served: Watched) -> None:
    """Where the session stands, with who did it; what cannot be is refused before anything is written."""
    board = served.page.board
    stands = Position("turns.v1", 5, 7)
    board.take_alert(alert("s", "firing", source=stands), at_ms())
    board.take_alert(alert("s", "over", status=AlertStatus.RESOLVED, source=stands), at_ms())
    path = "/v1/live/alerts/{}/{}".format
    async with served.client("ops-a") as client:
        refused = [
            await client.post(path("nobody", "label"), json={"session_id": "s", "label": True}),
            await client.post(path("firing", "label"), json={"session_id": "other", "label": True}),
            await client.post(path("over", "acknowledge"), json={"session_id": "s"}),
            await client.post(path("firing", "label"), json={"session_id": "s", "label": "yes"}),
            await client.post(path("firing", "label"), json={"session_id": "s"}),
            await client.post(path("firing", "acknowledge"), json={"session_id": "s", "note": "x" * 1_001}),
            await client.post(path("firing", "label"), json={"session_id": "s", "label": True, "reason": "x" * 1_001}),
            await client.post(path("firing", "acknowledge"), json={"session_id": "s", "by": "somebody else"}),
        ]
        nothing = list(served.log.records)
        done = [
            await client.post(path("firing", "acknowledge"), json={"session_id": "s", "note": "looking"}),
            await client.post(path("over", "label"), json={"session_id": "s", "label": False, "reason": XSS}),
        ]
    (first, acknowledged), (second, labelled) = served.log.records
    ack = msgspec.json.decode(acknowledged.value or b"", type=AlertAcknowledged)
    label = msgspec.json.decode(labelled.value or b"", type=AlertLabelled)
    known = board.alert("over")

    assert [404, 404, 409, 422, 422, 422, 422, 422] == [each.status_code for each in refused]
    assert nothing == []
    assert [{"topic": "turns.v1", "partition": 3, "offset": n} for n in (1, 2)] == [each.json() for each in done]
    assert (first, acknowledged.key, ack.by, ack.note) == ("turns.v1", b"s", "ops-a", "looking")
    assert (acknowledged.partition, labelled.partition) == (5, 5)
    assert (second, label.escalating, label.reason, label.by) == ("turns.v1", False, XSS, "ops-a")
    assert labelled.value == encode(label)
    assert known is not None
    assert known.label is False


async def test_several_alerts_are_triaged_and_labelled_at_once(served: Watched) -> None:
    """All or none: one that is resolved, unknown or another tenant's leaves all as they are; a note is always taken."""
    kinds: dict[str, dict[str, Any]] = {
        "one": {},
        "two": {"duplicate_of": "one"},
        "over": {"status": AlertStatus.RESOLVED},
        "theirs": {"app": "b"},
    }
    for alert_id, more in kinds.items():
        served.page.board.take_alert(alert("s", alert_id, source=Position("turns.v1", 5, 7), **more), at_ms())

    def named(*alert_ids: str) -> dict[str, Any]:
        return {"alerts": [{"alert_id": each, "session_id": "s"} for each in alert_ids]}

    triage, label = "/v1/live/alerts/triage", "/v1/live/alerts/label"
    async with served.client("ops-a") as client:
        refused = [
            await client.post(triage, json=named("one", "theirs") | {"assignee": "eve"}),
            await client.post(triage, json=named("one", "over") | {"assignee": "bob"}),
            await client.post(triage, json=named("one") | {"duplicate_of": "one"}),
            await client.post(triage, json=named("one") | {"duplicate_of": "two"}),
            await client.post(triage, json=named("one") | {"duplicate_of": "theirs"}),
            await client.post(triage, json=named("one")),
            await client.post(triage, json=named() | {"note": "nothing"}),
            await client.post(label, json=named("one", "unknown") | {"label": True}),
        ]
        nothing = list(served.log.records)
        done = [
            await client.post(triage, json=named("two", "over") | {"note": "one campaign"}),
            await client.post(triage, json=named("two") | {"duplicate_of": "", "assignee": "bob"}),
            await client.post(label, json=named("one", "over") | {"label": False, "reason": "homework"}),
        ]
    said = [
        msgspec.json.decode(record.value or b"", type=AlertTriaged | AlertLabelled) for _, record in served.log.records
    ]

    assert [404, 409, 422, 422, 422, 422, 422, 404] == [each.status_code for each in refused]
    assert nothing == []
    assert [(202, 2), (202, 1), (202, 2)] == [(each.status_code, len(each.json()["written"])) for each in done]
    assert ["two", "over", "two", "one", "over"] == [each.alert_id for each in said]
    assert {("s", "a", "ops-a")} == {(each.session_id, each.app_id, each.by) for each in said}
    assert isinstance(said[2], AlertTriaged)
    assert ("bob", "", None, "") == (said[2].assignee, said[2].duplicate_of, said[2].snoozed_until, said[2].note)


async def test_sessions_like_that_of_an_alert(served: Watched) -> None:
    """Of its app alone, the most like first, each once with its alert; without the words, and not for other tenants."""
    turns = [
        said(n, f"{canary('a')} {words}", app="a", user="u", session=session)
        for session, words in (("twin", f"{XSS} pelicans"), ("far", "the train leaves at noon"))
        for n in (3, 4)
    ]
    memory = SessionVectorMemory(served.store, loaded_embedder())
    await memory.add_turns(turns, loaded_embedder().embed([each.content for each in turns]))
    served.page.board.take_profile(profile("twin", app="a"), at_ms())
    served.page.board.take_alert(alert("twin", "alert-twin", app="a"), at_ms())
    path = "/v1/live/alerts/{}/similar".format
    async with served.client("ops-a") as client:
        found = await client.get(path("alert-a"))
        one = (await client.get(path("alert-a") + "?limit=1")).json()["sessions"]
        refused = [(await client.get(path(each))).status_code for each in ("alert-b", "unknown")]
    rows = found.json()["sessions"]

    assert [404, 404] == refused
    assert ["twin"] == [each["session_id"] for each in one]
    assert ("twin", "far") == (rows[0]["session_id"], rows[-1]["session_id"])
    assert {"a"} == {each["app_id"] for each in rows}
    assert "session-a" not in {each["session_id"] for each in rows}
    assert ["alert-twin", None] == [each["alert"] and each["alert"]["alert_id"] for each in (rows[0], rows[-1])]
    assert rows[0]["similarity"] > rows[-1]["similarity"]
    assert "pelicans" not in found.text


async def test_notes_are_shown_to_who_may_read_text(served: Watched) -> None:
    """Others see that there is one, and whose."""
    served.page.board.take_note("alert-a", note := AlertNote(by="bob", at=AT, note="asked the desk"))
    served.page.board.take_note("alert-a", note)
    async with served.client("all") as client:
        shown = [
            (await client.get(f"/v1/live/sessions/session-a?app_id=a{text}")).json() for text in ("", "&text=true")
        ]

    assert [[("bob", None)], [("bob", "asked the desk")]] == [
        [(each["by"], each["note"]) for alert in timeline["alerts"] for each in alert["notes"]] for timeline in shown
    ]


@pytest.mark.parametrize(
    ("name", "query"),
    [("ops-a", b""), ("all", b"app_id=a"), ("", b"app_id=a")],
    ids=["a tenant", "one app of all", "without tokens"],
)
async def test_a_stream_takes_no_place_among_requests(name: str, query: bytes) -> None:
    """It lasts longer than a request may, and others are answered beside it; markup in ids stays in its line."""
    served = Watched(OF if name else {}, max_concurrent_requests=1, request_timeout="PT1S")
    await served.fill()
    came, left = asyncio.Event(), asyncio.Event()
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)
        came.set()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/live/stream",
        "query_string": query,
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {live_token(name)}".encode())],
    }
    answering = asyncio.ensure_future(served.served(scope, receive, send))
    while len(messages) < 2:
        came.clear()
        await asyncio.wait_for(came.wait(), 30)
    async with served.client("all") as client:
        beside = [(await client.get("/v1/live/me")).json() for _ in range(3)]
    await asyncio.wait({answering}, timeout=1.1)
    still, watching = not answering.done(), dict(served.page.hub._streams)
    left.set()
    await asyncio.wait_for(answering, 30)
    await served.store.close()
    headers = dict(messages[0]["headers"])
    event, number, data, *rest = messages[1]["body"].split(b"\n")
    rows = msgspec.json.decode(data.removeprefix(b"data: "))["sessions"]

    assert [(each["role"], each["tokens"]) for each in beside] == [("operator", True) if name else ("admin", False)] * 3
    assert name or {"name": "local", "role": "admin", "text": True, "apps": None, "tokens": False} == beside[0]
    assert (still, messages[0]["status"]) == (True, 200)
    assert watching == {name: 1}, "each token has its share of the places"
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert (headers[b"cache-control"], b"content-length" in headers) == (b"no-store", False)
    assert headers[b"x-accel-buffering"] == b"no", "a proxy that gathers would show nothing for long"
    assert (event, number.startswith(b"id: "), rest) == (b"event: snapshot", True, [b"", b""])
    assert {"session-a", ODD} == {row["session_id"] for row in rows}


async def test_the_pages_files_are_open_and_strict(served: Watched) -> None:
    """Without a token, with the policy that keeps everything foreign out, and never stale."""
    async with served.client("") as client:
        page = await client.get("/live/")
        moved = await client.get("/live")
        again = await client.get("/live/", headers={"If-None-Match": page.headers["etag"]})
        head = await client.head("/live/")
        missing = [
            await client.get(f"/live/{name}")
            for name in ("nothing.js", "..%2fpage.py", "%2e%2e/routes.py", "..%5cpage.py", "%00", "index.html%00.js")
        ]

    assert page.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (page.headers["x-content-type-options"], page.headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert (page.headers["cache-control"], again.status_code, head.status_code) == ("no-cache", 304, 200)
    assert (moved.status_code, moved.headers["location"]) == (308, "/live/")
    assert [404] * 6 == [each.status_code for each in missing]
