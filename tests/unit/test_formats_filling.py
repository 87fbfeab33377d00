"""Cutting inputs into documents, telling formats apart, and filling gaps: for any input."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.produce.command import FormatName
from jobs.produce.formats import FORMATS, Documents, Filling, detect
from jobs.produce.formats.filling import Said
from models.errors import ConfigurationError

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
    made = [turn.timestamp for turn in FILLING.turns("s", [Said(role="user", content="", timestamp=t) for t in times])]

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
