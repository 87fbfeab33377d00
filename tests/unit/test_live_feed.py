"""From records to the board, and how roles are: what is read, and that nothing that fails ends it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, create_autospec

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import ConsumerRecord, OffsetAndTimestamp

from models.errors import InvalidRecord, StoreUnavailable
from models.events import AlertLabelled, AlertTriaged, SessionErased, SessionName, session_key
from models.events.erase import EraseRequested
from models.events.topics import ALERTS, COMPACTIONS, ERASURES, PROFILES, TURNS, Topic
from models.wire.codec import encode
from streams.api.live import feed as feeds
from streams.api.live.board import LiveBoard
from streams.api.live.feed import LiveFeed, take
from streams.api.live.hub import Hub
from streams.api.live.roles import MOST_DETAIL, RoleWatch
from streams.settings import load_settings
from streams.settings.live import LiveSettings
from tests.support.api_doubles import said
from tests.support.live_made import AT, alert, profile, segment

S = SessionName("a", "s")
TRACE = "0af7651916cd43dd8448eb211c80319c"


def record(
    topic: Topic, value: bytes | None, *, key: bytes = b"s", at: int = 1_000, headers: Any = ()
) -> ConsumerRecord[Any, Any]:
    """A record of a topic."""
    size = len(value or b"")
    return ConsumerRecord(topic.name, 0, 0, at, 0, key, value, None, len(key), size, headers)


def test_each_topic_tells_the_board_its_part() -> None:
    """Profiles, alerts with their trace, segments, labels, and notes of the session of that app."""
    board = LiveBoard()
    header = [("traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())]
    label = AlertLabelled(session_id="s", timestamp=AT, alert_id="alert-1", escalating=True)
    take(board, PROFILES, record(PROFILES, encode(profile())))
    take(board, ALERTS, record(ALERTS, encode(alert()), headers=header))
    take(board, COMPACTIONS, record(COMPACTIONS, encode(segment())))
    take(board, TURNS, record(TURNS, encode(label)))
    for app_id in ("a", "b"):
        note = AlertTriaged(session_id="s", app_id=app_id, timestamp=AT, alert_id="alert-1", note="seen", by=app_id)
        take(board, TURNS, record(TURNS, encode(note)))
    known, row = board.alert("alert-1"), board.row(S)

    assert known is not None
    assert row is not None
    assert (known.trace_id, known.label, len(board.segments(S))) == (TRACE, True, 1)
    assert ["a"] == [note.by for note in known.notes]


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        (PROFILES, b"s", None),
        (PROFILES, session_key("a", "s").encode(), None),
        (TURNS, b"s", encode(SessionErased(session_id="s", timestamp=AT, request_id="r"))),
        (TURNS, b"s", encode(SessionErased(session_id="s", app_id="a", timestamp=AT, request_id="r"))),
        (ERASURES, b"r", encode(EraseRequested(request_id="r", timestamp=AT, scope="app", app_id="a"))),
        (ERASURES, b"r", encode(EraseRequested(request_id="r", timestamp=AT, scope="session", session_id="s"))),
    ],
    ids=["tombstone of 0.2", "tombstone", "erased in 0.2", "erased", "requested", "requested in 0.2"],
)
def test_an_erasure_takes_a_session_from_the_board(topic: Topic, key: bytes, value: bytes | None) -> None:
    """Whichever of its marks is read first."""
    board = LiveBoard()
    take(board, PROFILES, record(PROFILES, encode(profile())))
    take(board, topic, record(topic, value, key=key, at=2_000))
    take(board, ALERTS, record(ALERTS, encode(alert()), at=1_500))

    assert (len(board), board.since(0, lambda _: True, 9).gone) == (0, [S])


@pytest.mark.parametrize(
    ("topic", "key", "event"),
    [
        (PROFILES, session_key("b", "s").encode(), None),
        (TURNS, b"s", SessionErased(session_id="s", app_id="b", timestamp=AT, request_id="r")),
        (TURNS, b"s", AlertLabelled(session_id="s", app_id="b", timestamp=AT, alert_id="alert-1", escalating=True)),
        (ERASURES, b"r", EraseRequested(request_id="r", timestamp=AT, scope="session", app_id="b", session_id="s")),
    ],
    ids=["tombstone", "erased", "labelled", "requested"],
)
def test_what_is_said_of_another_apps_session_of_the_same_id_changes_nothing(
    topic: Topic, key: bytes, event: Any
) -> None:
    """The record's key is what producers send: the event names the app."""
    board = LiveBoard()
    take(board, PROFILES, record(PROFILES, encode(profile())))
    take(board, ALERTS, record(ALERTS, encode(alert())))
    before = board.version
    take(board, topic, record(topic, None if event is None else encode(event), key=key, at=2_000))

    assert board.version == before


def test_what_cannot_be_trusted_changes_nothing() -> None:
    """Labels under another key or of another session, turns that quote them, other events; rubbish is refused."""
    board = LiveBoard()
    take(board, ALERTS, record(ALERTS, encode(alert())))
    label = encode(AlertLabelled(session_id="s", timestamp=AT, alert_id="alert-1", escalating=True))
    other = encode(AlertLabelled(session_id="other", timestamp=AT, alert_id="alert-1", escalating=True))
    quoting = encode(said(1, '{"type": "session_erased", "alert_labelled": 1}', session="s"))
    for value, key in ((label, b"other"), (other, b"other"), (quoting, b"s"), (b'{"type":"alert_labelled"}', b"s")):
        take(board, TURNS, record(TURNS, value, key=key, at=9_000))
    take(board, ALERTS, record(ALERTS, None))
    with pytest.raises(InvalidRecord):
        take(board, PROFILES, record(PROFILES, b"rubbish"))
    known = board.alert("alert-1")

    assert known is not None
    assert known.label is None


async def test_where_each_partition_is_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the window on, of turns from that of labels; at the end where nothing came since; a new one from its first.

    Partitions that were read before go on where they are.
    """
    settings, hour_ms = load_settings(live={"window": "PT24H", "label_window": "PT1H"}), 3_600_000
    feed, client = LiveFeed(settings, LiveBoard(), now_s=lambda: 100 * 3_600.0), create_autospec(AIOKafkaConsumer)
    client.position.return_value = 5
    client.end_offsets.side_effect = lambda places: dict.fromkeys(places, 9)
    client.offsets_for_times.side_effect = lambda times: {
        place: None if "turns" in place.topic else OffsetAndTimestamp(3, 0) for place in times
    }

    def placed() -> tuple[Any, dict[TopicPartition, int]]:
        """What was asked for last, and where it is read from; what is assigned anew stands nowhere."""
        sought = dict(each.args for each in client.seek.call_args_list)
        client.seek.reset_mock()
        return client.offsets_for_times.call_args.args[0], dict.fromkeys(client.assign.call_args.args[0], -1) | sought

    profiles, turns, added = (
        TopicPartition(topic.full_name(settings.topic_prefix), number)
        for topic, number in ((PROFILES, 0), (TURNS, 0), (PROFILES, 1))
    )
    there = {profiles, turns}
    monkeypatch.setattr(feed, "_there", AsyncMock(side_effect=lambda: frozenset(there)))
    known = await feed._look_around(client, frozenset())
    began = placed()
    there.add(added)
    again = await feed._look_around(client, known)

    assert began == ({profiles: 76 * hour_ms, turns: 99 * hour_ms}, {profiles: 3, turns: 9})
    assert placed() == ({added: 0}, {profiles: 5, turns: 5, added: 3})
    assert [set(known), set(again)] == [{profiles, turns}, {profiles, turns, added}]


async def test_a_feed_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time it connects anew: while its broker is away, and when the log cannot be read; the role goes on."""
    board, followed, tries = LiveBoard(), asyncio.Event(), list[int]()

    @asynccontextmanager
    async def away_at_first(*_: object, **__: object) -> AsyncIterator[Any]:
        tries.append(len(tries))
        if len(tries) == 1:
            raise StoreUnavailable("away")
        yield None

    async def follow(_client: Any) -> None:
        if len(tries) == 2:
            raise KafkaConnectionError
        followed.set()
        await asyncio.Event().wait()

    feed = LiveFeed(load_settings(), board)
    monkeypatch.setattr(feeds, "consumer", away_at_first)
    monkeypatch.setattr(feeds, "RETRY_S", 0.0)
    monkeypatch.setattr(feed, "_follow", follow)
    running = asyncio.create_task(feed.run())
    await asyncio.wait_for(followed.wait(), 30)

    assert (tries, running.done()) == ([0, 1, 2], False)
    running.cancel()


async def test_roles_are_asked_all_at_once_and_told_as_they_are() -> None:
    """Ready, not ready with the reason, away; a lag where it is known."""

    async def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/readyz"
        match request.url.host:
            case "sessions":
                return httpx.Response(200, text="ready")
            case "memory":
                return httpx.Response(503, text="recovering " + "x" * 1_000)
            case _:
                raise httpx.ConnectError("refused")

    addresses = {name: f"http://me:a-password@{name}:1" for name in ("sessions", "memory", "archive")}
    hub = Hub(LiveBoard(), LiveSettings())
    watch = RoleWatch(addresses, hub, AsyncMock(return_value={"sessions": 7}))
    first = [row.state for row in hub._roles]
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        rows = await watch.look(client)

    assert first == ["unknown"] * 3
    assert [("sessions", "ready", 7), ("memory", "not_ready", None), ("archive", "away", None)] == [
        (row.role, row.state, row.lag_records) for row in rows
    ]
    assert rows[1].detail.startswith("recovering")
    assert rows[2].detail == "archive:1 does not answer (ConnectError)"
    assert len(rows[1].detail) == MOST_DETAIL
