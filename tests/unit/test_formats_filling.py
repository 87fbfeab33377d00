"""An opened input: cut into documents, told apart, gaps filled, sessions ended; for any input."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.produce.command import FormatName
from jobs.produce.formats import FORMATS, Documents, Filling, InputConversation, detect
from jobs.produce.formats.filling import FileMessage
from jobs.produce.formats.source import InputReading, InputSource, RawLine
from jobs.shared.sending import Pace
from models.errors import ConfigurationError
from models.events import SessionEnded

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILLING = Filling(source="chats", now=NOW)
_PAST = st.integers(0, 5 * 365 * 86_400).map(lambda seconds: NOW - timedelta(days=1, seconds=seconds))


@pytest.mark.parametrize("document", [b"", b"{}", b"nope", b'"text"', b'{"text": "x"}'])
def test_undetectable(document: bytes) -> None:
    """Anything else asks for --format."""
    with pytest.raises(ConfigurationError, match="--format"):
        detect(document)


def test_format_option_names_every_format() -> None:
    """A new format must also be offered on the command line."""
    assert ["auto", *FORMATS] == [name.value for name in FormatName]


def test_documents_of_lines_and_of_an_array() -> None:
    """Blank lines, a byte order mark and Windows line ends do not matter; an array is cut into its elements."""
    lines = Documents(io.BytesIO(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": 2}'))
    array = b' [{"a": 1},\n {"b": [2]}]'
    elements = Documents(io.BytesIO(array))

    assert lines.first() == b'{"a": 1}'
    assert list(lines) == [(1, b'{"a": 1}'), (3, b'{"b": 2}')]
    assert list(elements) == [(1, b'{"a": 1}'), (2, b'{"b": [2]}')]
    assert elements.bytes_read <= len(array)


def test_broken_array() -> None:
    """A cut-off array is an error of the whole input: none of its elements can be trusted to be whole."""
    with pytest.raises(ConfigurationError, match="no JSON array"):
        list(Documents(io.BytesIO(b'[{"a": 1}, {"b"')))


@given(st.lists(st.none() | _PAST, max_size=20))
def test_given_times_stay_and_missing_ones_follow(times: list[datetime | None]) -> None:
    """Given times are kept, a missing one is five seconds after the turn before, and none lies in the future."""
    made = [
        turn.timestamp
        for turn in FILLING.turns("s", [FileMessage(role="user", content="", timestamp=t) for t in times])
    ]

    assert len(times) == len(made)
    assert all(given is None or given == time for given, time in zip(times, made, strict=True))
    assert all(made[n] == made[n - 1] + timedelta(seconds=5) for n in range(1, len(made)) if times[n] is None)
    assert all(time <= NOW for time in made)


@given(st.text(max_size=400))
def test_derived_ids_fit(name: str) -> None:
    """Ids derived from any file name have 1-256 characters and are the same each time."""
    filling = Filling(source=name, now=NOW)
    session_id = filling.session_id(7)

    assert session_id == filling.session_id(7)
    assert 1 <= len(session_id) <= 256
    assert 1 <= len(filling.user_of(session_id)) <= 256


CHAT = b'{"messages": [{"role": "user", "content": "Hi"}], "session_id": "s"}\n'
TURN = (
    b'{"session_id":"s","user_id":"u","app_id":"a","turn":0,"role":"user","content":"Hi",'
    b'"timestamp":"2026-01-01T00:00:00Z"}\n'
)


def test_transcripts_are_followed_by_their_end() -> None:
    """A transcript is over: its session need not wait for a time-out."""
    (item,) = InputSource(io.BytesIO(CHAT), InputReading(filling=FILLING)).items
    assert isinstance(item, InputConversation)

    ended = SessionEnded(session_id="s", app_id=FILLING.app_id, timestamp=FILLING.now, reason="end of transcript")
    assert ended == item.events[-1]


@pytest.mark.parametrize(("line", "end_sessions"), [(CHAT, False), (TURN, None)])
def test_no_end_where_it_is_not_wanted(line: bytes, end_sessions: bool | None) -> None:
    """Not when switched off, and not for Turntide's own events, which bring theirs."""
    (item,) = InputSource(io.BytesIO(line), InputReading(filling=FILLING, end_sessions=end_sessions)).items
    assert isinstance(item, InputConversation)

    assert len(item.events) == 1


def test_end_sessions_does_not_go_with_turntide() -> None:
    """Lines of several sessions alternate there: which one is the last cannot be known."""
    with pytest.raises(ConfigurationError, match="session_ended"):
        InputSource(io.BytesIO(TURN), InputReading(filling=FILLING, end_sessions=True))


def test_raw_lines_keep_every_byte() -> None:
    """Bad input is sent byte for byte, keyed where the session id can be read."""
    lines = b'{"session_id": "s", "x": 1}\r\n\xff\xfe\n\n{"session_id": 5}\n[1]'
    source = InputSource(io.BytesIO(lines), InputReading(filling=FILLING, raw=True))

    assert [
        RawLine(1, b"s", b'{"session_id": "s", "x": 1}'),
        RawLine(2, None, b"\xff\xfe"),
        RawLine(3, None, b""),
        RawLine(4, None, b'{"session_id": 5}'),
        RawLine(5, None, b"[1]"),
    ] == list(source.items)


def test_empty_input() -> None:
    """Nothing to send is no error."""
    source = InputSource(io.BytesIO(b"\n"), InputReading(filling=FILLING))

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
