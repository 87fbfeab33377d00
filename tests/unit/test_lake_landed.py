"""From records to rows: what is kept, what is noted, what is changed."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import msgspec
import pytest

from models.entities import REGISTRY, carried_by
from models.events.topics import ALERTS, PROFILES, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.archive.landed import UNREADABLE, land
from streams.archive.rows import Landed
from streams.archive.schema import FORGETTING, MAX_APP_FOLDERS, OTHER_APPS, TABLE_OF, Skipped, folders
from tests.support.lake_records import NOW, PREFIX, record, turn


def landed(topic: Topic, event: object) -> Landed | Skipped:
    """The event as the archive keeps it."""
    return land(topic, topic.full_name(PREFIX), record(event, 7), IntakePolicy())


def test_every_public_event_has_a_table() -> None:
    """A new event without a table would stop the role at its first record, but for those that are never kept."""
    carried = {event for topic in REGISTRY.archived_topics for event in carried_by(topic)}

    assert carried - TABLE_OF.keys() == {*FORGETTING}


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"\xff",
        b"[]",
        b'{"type":"turn"}',
        b'{"type":"unheard_of"}',
        encode(turn(0)).replace(b'"s-1"', b'"other"'),
        encode(turn(0, content="x")).replace(b'"content":"x"', b'"content":1'),
        None,
    ],
)
def test_refused_input_is_noted_without_its_bytes(value: bytes | None) -> None:
    """Its offset is accounted for here, its bytes travel as a dead letter."""
    row = landed(TURNS, value)

    assert isinstance(row, Skipped)
    assert (row.first_offset, row.last_offset) == (7, 7)
    assert (row.key, row.value) == (None, None)


def test_undecodable_output_keeps_its_bytes() -> None:
    """Nobody writes a dead letter for Turntide's own topics."""
    row = landed(ALERTS, b"{broken")

    assert isinstance(row, Skipped)
    assert (row.reason, row.value, row.key) == ("undecodable_output", b"{broken", b"s-1")


def test_tombstone_is_no_error() -> None:
    """A deleted key of a compacted topic is noted as such."""
    row = landed(PROFILES, None)

    assert isinstance(row, Skipped)
    assert (row.reason, row.value, row.key) == ("tombstone", None, None)


def test_nul_is_shown_and_the_exact_content_kept() -> None:
    """U+0000 spoils DuckLake's statistics, yet the turn must be replayable."""
    row = landed(TURNS, turn(0, content="a\x00b", metadata={"k": "v\x00"}))

    assert isinstance(row, Landed)
    assert getattr(row.event, "content", None) == "a\u2400b"
    assert row.content_exact == b"a\x00b"
    assert getattr(row.event, "metadata", None) == {"k": "v\u2400"}


def test_escaped_backslash_is_no_nul() -> None:
    """The six characters of the escape, written as text, stay as they are."""
    row = landed(TURNS, turn(0, content=r"\u0000"))

    assert isinstance(row, Landed)
    assert (getattr(row.event, "content", None), row.content_exact) == (r"\u0000", None)


def test_unknown_fields_are_kept_as_written() -> None:
    """Also numbers that no 64-bit integer holds."""
    value = encode(turn(0))[:-1] + b',"model":"m","tokens":123456789012345678901234567890}'
    row = landed(TURNS, value)

    assert isinstance(row, Landed)
    assert json.loads(row.extra or "") == {"model": "m", "tokens": 123456789012345678901234567890}


def test_unknown_field_that_is_no_text_is_kept_in_base64() -> None:
    """The decoder skips what it does not know, so a turn can be valid around bytes that are not."""
    value = encode(turn(0))[:-1] + b',"bad":"\xff"}'
    row = landed(TURNS, value)

    assert isinstance(row, Landed)
    kept = json.loads(row.extra or "")
    assert value == base64.b64decode(kept[UNREADABLE])


def test_future_turn_is_refused_as_by_the_sessions_role() -> None:
    """Both must agree, else a record is in neither the turns nor the dead letters."""
    row = landed(TURNS, msgspec.structs.replace(turn(0), timestamp=NOW + timedelta(days=9)))

    assert isinstance(row, Skipped)
    assert row.reason == "future_timestamp"


def test_folders_are_safe_short_and_few() -> None:
    """Producers choose app ids: neither a path nor the number of files may depend on them."""
    apps = ["../../etc", "é" * 256, "a b/c", "plain-1.0", ""]
    many = [f"app-{n}" for n in range(500)]

    assert folders(apps) == [".._.._etc", "_" * 64, "a_b_c", "plain-1.0", ""]
    assert len(set(folders(many))) == MAX_APP_FOLDERS + 1
    assert OTHER_APPS in folders(many)
