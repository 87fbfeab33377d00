"""From records to rows: what is kept, noted and changed; columns built at once hold what each value alone would be."""

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from models.entities import REGISTRY, carried_by
from models.events import UnnumberedTurn
from models.events.topics import ALERTS, PROFILES, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.archive.columns import fields_of, type_of
from streams.archive.landed import UNREADABLE, land
from streams.archive.rows import Landed
from streams.archive.schema import FORGETTING, MAX_APP_FOLDERS, OTHER_APPS, ROWS_OF_A_FOLDER, TABLE_OF, Skipped, folders
from tests.support.lake_records import NOW, PREFIX, record, turn


def landed(topic: Topic, event: object) -> Landed | Skipped:
    """The event as the archive keeps it."""
    return land(topic, topic.full_name(PREFIX), record(event, 7), IntakePolicy())


def test_every_public_event_has_a_table() -> None:
    """A new event without a table would stop the role at its first record, but for those that are never kept."""
    carried = {event for topic in REGISTRY.archived_topics for event in carried_by(topic)}

    assert carried - TABLE_OF.keys() == {*FORGETTING, UnnumberedTurn}


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
        encode(msgspec.structs.replace(turn(0), timestamp=NOW + timedelta(days=9))),
        None,
    ],
)
def test_refused_input_is_noted_without_its_bytes(value: bytes | None) -> None:
    """As the sessions role refuses it. Its offset is accounted for here, its bytes travel as a dead letter."""
    row = landed(TURNS, value)

    assert isinstance(row, Skipped)
    assert (row.first_offset, row.last_offset, row.key, row.value) == (7, 7, None, None)


@pytest.mark.parametrize(
    ("topic", "value", "reason", "key"),
    [(ALERTS, b"{broken", "undecodable_output", b"s-1"), (PROFILES, None, "tombstone", None)],
)
def test_what_is_no_event_of_ours_is_noted(topic: Topic, value: bytes | None, reason: str, key: bytes | None) -> None:
    """With its bytes, as nobody writes a dead letter for Turntide's own topics; a deleted key without."""
    row = landed(topic, value)

    assert isinstance(row, Skipped)
    assert (row.reason, row.value, row.key) == (reason, value, key)


_BAD = encode(turn(0))[:-1] + b',"bad":"\xff"}'


@pytest.mark.parametrize(
    ("value", "fields", "exact", "extra"),
    [
        (
            encode(turn(0, content="a\x00b", metadata={"k": "v\x00"})),
            {"content": "a\u2400b", "metadata": {"k": "v\u2400"}},
            b"a\x00b",
            None,
        ),
        (encode(turn(0, content=r"\u0000")), {"content": r"\u0000"}, None, None),
        (
            encode(turn(0))[:-1] + b',"model":"m","tokens":123456789012345678901234567890}',
            {},
            None,
            {"model": "m", "tokens": 123456789012345678901234567890},
        ),
        (_BAD, {}, None, {UNREADABLE: base64.b64encode(_BAD).decode()}),
    ],
    ids=["U+0000", "its escape as text", "unknown fields", "unknown field that is no text"],
)
def test_what_is_kept_of_a_turn(
    value: bytes, fields: dict[str, object], exact: bytes | None, extra: dict[str, object] | None
) -> None:
    """U+0000 spoils DuckLake's statistics, yet the turn must be replayable; what the schema does not name stays."""
    row = landed(TURNS, value)

    assert isinstance(row, Landed)
    assert {name: getattr(row.event, name) for name in fields} == fields
    assert (row.content_exact, None if row.extra is None else json.loads(row.extra)) == (exact, extra)


def test_folders_are_safe_short_and_few() -> None:
    """Producers choose app ids: neither a path nor the number of files may depend on them."""
    apps = ["../../etc", "é" * 256, "a b/c", "plain-1.0", ""]
    many = [f"app-{n}" for n in range(500)]

    assert folders(apps * ROWS_OF_A_FOLDER)[:5] == [".._.._etc", "_" * 64, "a_b_c", "plain-1.0", ""]
    assert len(set(folders(many * ROWS_OF_A_FOLDER))) == MAX_APP_FOLDERS + 1
    assert set(folders(many * (ROWS_OF_A_FOLDER - 1))) == {OTHER_APPS}
    assert folders(["a", "a"]) == ["a", "a"]


_EXACT = NOW + timedelta(microseconds=1)


class _Part(msgspec.Struct):
    name: str
    at: datetime | None = None


class _Whole(msgspec.Struct):
    parts: list[_Part]
    part: _Part | None
    words: list[str] | None
    counts: dict[str, int] | None


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        (
            "parts",
            [[_Part("a", _EXACT)], [], [_Part("b"), _Part("c")]],
            [[{"name": "a", "at": _EXACT}], [], [{"name": "b", "at": None}, {"name": "c", "at": None}]],
        ),
        ("part", [None, _Part("a")], [None, {"name": "a", "at": None}]),
        ("words", [["a", "b"], None, [], ["c"]], [["a", "b"], None, [], ["c"]]),
        ("counts", [{"a": 1}, None, {}], ['{"a":1}', None, "{}"]),
    ],
)
def test_a_column_holds_each_value_in_its_place(field: str, values: list[Any], expected: list[Any]) -> None:
    """Nothing is shifted, cut or turned into null, also where lists are empty and structs are missing."""
    (kept,) = (type_of(each.type) for each in fields_of(_Whole) if each.name == field)

    assert kept.build(values).to_list() == expected
    assert kept.build([]).dtype == kept.polars
