"""An opened input: raw lines, ends of sessions, and what does not go together."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from jobs.produce.formats import Conversation, Filling
from jobs.produce.formats.source import RawLine, Reading, Source
from jobs.shared.sending import Pace
from models.errors import ConfigurationError
from models.events import SessionEnded

FILLING = Filling(source="chats", now=datetime(2026, 3, 1, tzinfo=UTC))
CHAT = b'{"messages": [{"role": "user", "content": "Hi"}], "session_id": "s"}\n'
TURN = (
    b'{"session_id":"s","user_id":"u","app_id":"a","turn":0,"role":"user","content":"Hi",'
    b'"timestamp":"2026-01-01T00:00:00Z"}\n'
)


def test_transcripts_are_followed_by_their_end() -> None:
    """A transcript is over: its session need not wait for a time-out."""
    (item,) = Source(io.BytesIO(CHAT), Reading(filling=FILLING)).items
    assert isinstance(item, Conversation)

    assert SessionEnded(session_id="s", timestamp=FILLING.now, reason="end of transcript") == item.events[-1]


@pytest.mark.parametrize(("line", "end_sessions"), [(CHAT, False), (TURN, None)])
def test_no_end_where_it_is_not_wanted(line: bytes, end_sessions: bool | None) -> None:
    """Not when switched off, and not for Turntide's own events, which bring theirs."""
    (item,) = Source(io.BytesIO(line), Reading(filling=FILLING, end_sessions=end_sessions)).items
    assert isinstance(item, Conversation)

    assert len(item.events) == 1


def test_end_sessions_does_not_go_with_turntide() -> None:
    """Lines of several sessions alternate there: which one is the last cannot be known."""
    with pytest.raises(ConfigurationError, match="session_ended"):
        Source(io.BytesIO(TURN), Reading(filling=FILLING, end_sessions=True))


def test_raw_lines_keep_every_byte() -> None:
    """Bad input is sent byte for byte, keyed where the session id can be read."""
    lines = b'{"session_id": "s", "x": 1}\r\n\xff\xfe\n\n{"session_id": 5}\n[1]'
    source = Source(io.BytesIO(lines), Reading(filling=FILLING, raw=True))

    assert [
        RawLine(1, b"s", b'{"session_id": "s", "x": 1}'),
        RawLine(2, None, b"\xff\xfe"),
        RawLine(3, None, b""),
        RawLine(4, None, b'{"session_id": 5}'),
        RawLine(5, None, b"[1]"),
    ] == list(source.items)


def test_empty_input() -> None:
    """Nothing to send is no error."""
    source = Source(io.BytesIO(b"\n"), Reading(filling=FILLING))

    assert list(source.items) == []


def test_pace_by_rate() -> None:
    """Ten a second: the third is due after 0.2 s, whatever its time."""
    pace = Pace(rate_per_s=10)

    assert [pace.due(FILLING.now) for _ in range(3)] == [0.0, 0.1, 0.2]


def test_pace_by_own_speed() -> None:
    """An hour's gap at speed-up 3600 takes a second; an event out of order is due at once."""
    times = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (5, 6, 4)]
    pace = Pace(speedup=3600)

    assert [pace.due(time) for time in times] == [0.0, 1.0, -1.0]
