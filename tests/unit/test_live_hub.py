"""Streams of the live page: coalesced, bounded whoever stops reading, ended at once when they have to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
import pytest

from models.events import SessionName
from streams.api.live import hub as hubs
from streams.api.live.board import LiveBoard
from streams.api.live.hub import Apps, Hub
from streams.api.live.messages import RoleRow
from streams.api.live.routes import PING_S, LiveStream
from streams.http.problems import Problem
from streams.settings.live import LiveSettings
from tests.support.api_doubles import Clock, counted
from tests.support.live_made import alert, profile

_Event = tuple[str, dict[str, Any]]


class Client:
    """A browser at the other end, which takes what is sent as long as it reads.

    Attributes:
        body: What it took.
        ended: Whether the answer was finished.
    """

    def __init__(self, hub: Hub, apps: Apps = None, clock: Callable[[], float] | None = None) -> None:
        self.body = b""
        self.ended = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.handed = 0
        self.came = asyncio.Event()
        self._left = asyncio.Event()
        stream = LiveStream(hub, apps) if clock is None else LiveStream(hub, apps, clock=clock)
        self.answering = asyncio.ensure_future(stream({"type": "http"}, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.handed = max(self.handed, len(message["body"]))
        await self.reads.wait()
        self.body += message.get("body", b"")
        self.ended = message.get("more_body") is False
        self.came.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.leave()
        await asyncio.wait_for(self.answering, 30)

    def leave(self) -> None:
        """Close the tab."""
        self._left.set()

    async def take(self, many: int) -> list[_Event]:
        """Wait until so many events came, and forget them."""
        while len(events := self._events()) < many:
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 30)
        self.body = b""
        return events

    async def until(self, content: bytes) -> None:
        """Wait until this came."""
        while content not in self.body:
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 30)

    def _events(self) -> list[_Event]:
        found = []
        for text in self.body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
            if "event" in fields:
                found.append((fields["event"], msgspec.json.decode(fields["data"])))
        return found


@asynccontextmanager
async def watching(hub: Hub, apps: Apps = None, clock: Callable[[], float] | None = None) -> AsyncIterator[Client]:
    """A client that knows all there is."""
    async with Client(hub, apps, clock) as client:
        await client.take(1)
        yield client


async def passing(turns: int = 10) -> None:
    """Let what can run, run."""
    for _ in range(turns):
        await asyncio.sleep(0)


def hub_of(count: int, **options: Any) -> tuple[LiveBoard, Hub]:
    """A board with so many sessions of two apps, and its hub."""
    board = LiveBoard()
    for n in range(count):
        board.take_profile(profile(f"s{n}", app="ab"[n % 2]), n)
    return board, Hub(board, LiveSettings(), **options)


async def test_a_stream_begins_with_all_that_is_known_in_pieces() -> None:
    """Sessions and alerts once each, the roles in the first, and only the last says that it is the last."""
    board, hub = hub_of(700)
    board.take_alert(alert("s1"), 1)
    hub.set_roles([RoleRow(role="sessions", state="ready")])
    async with Client(hub) as client:
        events = await client.take(3)
    pieces = [data for _, data in events]

    assert [("snapshot", True), ("snapshot", True), ("snapshot", False)] == [(n, data["more"]) for n, data in events]
    assert [["sessions"], [], []] == [[each["role"] for each in piece["roles"]] for piece in pieces]
    assert sorted(f"s{n}" for n in range(700)) == sorted(row["session_id"] for p in pieces for row in p["sessions"])
    assert ["alert-1"] == [row["alert_id"] for p in pieces for row in p["alerts"]]
    assert all(len(piece["sessions"]) <= hubs.PIECE_CHANGES for piece in pieces)


async def test_changes_between_ticks_are_one_frame_with_the_latest() -> None:
    """Sixty changes of a session are one row; without a tick nothing is sent, nor of other tenants' sessions."""
    board, hub = hub_of(2)
    async with watching(hub) as client, watching(hub, frozenset({"b"})) as other:
        for n in range(60):
            board.take_profile(profile("s0", scores=[n / 100], first=n), n)
        await passing()
        before = client.body
        hub.tick()
        ((name, data),) = await client.take(1)
        hub.tick()
        await passing()
        after = client.body
        board.erase_session(SessionName("a", "s0"), 99)
        hub.tick()
        await passing()

    assert (before, after, other.body) == (b"", b"", b"")
    assert (name, [(row["session_id"], row["risk"]) for row in data["sessions"]]) == ("changes", [("s0", 0.59)])


async def test_a_frame_is_made_once_for_all_that_read_the_same_apps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty readers of two tenants cost two encodings a tick, and see their own apps alone."""
    made: list[str] = []
    event = hubs._event

    def noted(name: str, data: msgspec.Struct, number: int) -> bytes:
        made.append(name)
        return event(name, data, number)

    monkeypatch.setattr(hubs, "_event", noted)
    board, hub = hub_of(2)
    clients = [Client(hub, frozenset({"ab"[n % 2]})) for n in range(50)]
    first = [await client.take(1) for client in clients]
    made.clear()
    board.take_profile(profile("s0", app="a", scores=[0.9]), 9)
    board.take_profile(profile("s1", app="b", scores=[0.9]), 9)
    hub.tick()
    told = [await client.take(1) for client in clients]
    for client in clients:
        client.leave()
    await asyncio.gather(*[client.answering for client in clients])

    assert made == ["changes"] * 2
    for events in (first, told):
        assert [[f"s{n % 2}"] for n in range(50)] == [
            [row["session_id"] for row in data["sessions"]] for ((_, data),) in events
        ]


async def test_a_silent_stream_is_kept_open_by_pings() -> None:
    """Proxies close what says nothing; the page sees that the server is there."""
    clock = Clock()
    hub = Hub(LiveBoard(), LiveSettings())
    async with watching(hub, clock=clock) as client:
        clock.now_s += PING_S
        hub.tick()
        hub._wake()  # somebody else's change: it looks at the clock again
        await client.until(b": ping\n\n")


async def test_clients_that_stop_reading_cost_a_piece_each_and_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand changes later each still holds one piece of one frame; then it is dropped, others never wait."""
    board, hub = hub_of(2_000)
    loop, later_s = asyncio.get_running_loop(), [0.0]
    now_s = loop.time
    monkeypatch.setattr(loop, "time", lambda: now_s() + later_s[0])
    stuck = [Client(hub) for _ in range(40)]
    for client in stuck:
        client.reads.clear()
    reader, before = Client(hub), counted("live_stream_drops_total")
    await reader.take(8)
    for n in range(10_000):
        board.take_profile(profile(f"s{n % 2_000}", scores=[0.9]), n)
        if n % 500 == 0:
            hub.tick()
            await passing(2)
    frames = sum(len(each.content) for each in hub._frames.values())
    assert frames <= hubs.CACHED_BYTES
    assert [0] * 40 == [len(client.body) for client in stuck]
    assert hub.streams == 41
    later_s[0] = hub.stall_s
    await asyncio.wait_for(asyncio.gather(*[client.answering for client in stuck]), 30)
    alive = hub.streams
    reader.leave()
    await reader.answering

    assert (alive, hub.streams, counted("live_stream_drops_total") - before) == (1, 0, 40)
    assert all(client.handed <= 64 * 1024 for client in [*stuck, reader])
    assert not any(client.ended for client in stuck)  # the server closes a connection whose answer is not finished


async def test_a_slow_reader_is_told_the_latest_when_it_reads_again() -> None:
    """It misses what was in between, not what is."""
    board, hub = hub_of(1)
    async with watching(hub) as client:
        client.reads.clear()
        for n in range(1, 100):
            board.take_profile(profile("s0", app="a", scores=[n / 100], first=n), n)
            hub.tick()
            await passing(2)
        client.reads.set()
        events = await client.take(2)

    assert [0.01, 0.99] == [data["sessions"][0]["risk"] for _, data in events]


async def test_who_missed_names_of_sessions_that_went_begins_anew() -> None:
    """Its stream ends, and it connects again."""
    board, hub = hub_of(1)
    before = counted("live_stream_drops_total")
    async with watching(hub) as client:
        client.reads.clear()
        board.take_profile(profile("s0", app="a"), 5)
        hub.tick()
        await passing()
        board.erase_session(SessionName("a", "s0"), 6)
        board.forget_gone(board.version)
        hub.tick()
        client.reads.set()
        await client.answering

    assert (client.ended, counted("live_stream_drops_total") - before) == (True, 1)


async def test_names_of_those_that_went_are_forgotten_when_nobody_can_have_missed_them() -> None:
    """Twice the time that a reader may stall."""
    clock = Clock()
    board, hub = hub_of(3, clock=clock)
    board.erase_session(SessionName("a", "s0"), 10)
    kept = []
    for _ in range(3):
        clock.now_s += 2 * hub.stall_s + 1
        hub.tick()
        kept.append(len(board._gone))

    assert kept == [1, 0, 0]


async def test_one_stream_too_many_is_refused() -> None:
    """503 with when to come again; a place that is left can be taken. One token has its share, and no more."""
    hub, before = Hub(LiveBoard(), LiveSettings(max_streams=1)), counted("live_stream_drops_total")
    async with watching(hub):
        with pytest.raises(Problem) as refused:
            hub.require_room("")
        others = [Client(hub) for _ in range(2)]  # at the same time
        await asyncio.gather(*[other.answering for other in others])
    hub.require_room("")

    assert (refused.value.status, "Retry-After" in refused.value.headers) == (503, True)
    assert [True] * 2 == [b"too_many_streams" in other.body for other in others]
    assert counted("live_stream_drops_total") - before == 3
    shared = Hub(LiveBoard(), LiveSettings(max_streams=3))  # one each
    with shared.watching("desk"):
        with pytest.raises(Problem, match="max_streams_per_token"):
            shared.require_room("desk")
        shared.require_room("night")
    shared.require_room("desk")


async def test_streams_end_when_the_server_stops() -> None:
    """At once and in good order, also while one waits; nobody is let in any more."""
    hub = Hub(LiveBoard(), LiveSettings())
    clients = [Client(hub) for _ in range(3)]
    for client in clients:
        await client.take(1)
    hub.end()
    await asyncio.wait_for(asyncio.gather(*[client.answering for client in clients]), 30)
    with pytest.raises(Problem):
        hub.require_room("")

    assert [True] * 3 == [client.ended for client in clients]
    assert hub.streams == 0
