"""Many records at once land as each of them alone: same rows, same refusals, whatever stands between them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events import AlertStatus, ClockTicked, SessionEnded, SessionErased
from models.events.topics import ALERTS, COMPACTIONS, CONVERSATION_TOPICS, PROFILES, TURNS, WINDOWS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.archive.buffer import LandingBuffer
from streams.archive.landed import land, land_all
from streams.archive.rows import Landed
from streams.archive.schema import TABLES, Skipped
from tests.support.lake_records import NOW, PREFIX, Record, alert, app_window, profile, record, segment, topic, turn

INTAKE = IntakePolicy(max_content_bytes=1_024)
LATE = timedelta(days=9)
TEXTS = st.text(max_size=8) | st.sampled_from(["a\x00b", r"\u0000", "é" * 9, "\u2400", "𝄞"])
TURN_BYTES = st.builds(lambda n, text: encode(turn(n, content=text)), st.integers(0, 10_000), TEXTS)
ODD = st.sampled_from(
    [
        None,
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"type":"turn"}',
        encode(turn(1))[:-1] + b',"model":"m"}',
        encode(turn(1))[:-1] + b',"bad":"\xff"}',
        encode(turn(1))[:-1] + b',"m\x00":"\\u0000"}',
        encode(turn(1)).replace(b'"turn":1', b'"turn":-1'),
        encode(turn(1)).replace(b'"turn":1', b'"turn":1,"turn":2'),
        encode(turn(1)).replace(b'"s-1"', b'"s\\n1"'),
        encode(turn(1)).replace(b'"u-1"', b'"u\\u0007"'),
        encode(turn(1)).replace(b'Z"', b'+02:00"'),
        encode(turn(1)).replace(b"2026", b"2031"),
        encode(turn(1)).replace(b"2026", b"1931"),
        encode(turn(1, metadata={"a": 1, "b": 0.5, "c": None, "d": "\x00"})),
        encode(turn(1, risk=0.5, project_id="p")),
        encode(turn(1, content="x" * 1_025)),
        encode(turn(1, content="é" * 400)),
        encode(SessionEnded(session_id="s-1", timestamp=NOW)),
        encode(ClockTicked(session_id="s-1", timestamp=NOW + LATE)),
        encode(SessionErased(session_id="s-1", timestamp=NOW, request_id="r")),
        b" " + encode(turn(2)) + b"\n",
        encode(turn(2)) + b"\n" + encode(turn(3)),
    ]
)
KEYS = st.sampled_from([b"s-1"] * 12 + [b"other", None, b"s\n1"])
OUTPUTS: dict[Topic, list[Any]] = {
    PROFILES: [profile("p", turns=0), profile("q", turns=3), profile("r\x00", turns=1)],
    ALERTS: [alert("a", AlertStatus.FIRING), alert("b", AlertStatus.RESOLVED)],
    WINDOWS: [app_window("w", source_partition=1, turns=3)],
    COMPACTIONS: [segment("c", "text"), segment("d", "\x00")],
    CONVERSATION_TOPICS: [topic("t"), topic("u", active_turns=[1, 2], tags=["x"], summary="é")],
}


def one_by_one(of: Topic, records: list[Record]) -> LandingBuffer:
    """What `land` makes of each."""
    buffer = LandingBuffer()
    for each in records:
        row = land(of, of.full_name(PREFIX), each, INTAKE)
        if isinstance(row, Landed):
            buffer.add(row)
        else:
            buffer.skip(row)
    return buffer


def at_once(of: Topic, records: list[Record]) -> LandingBuffer:
    """What `land_all` makes of them."""
    buffer = LandingBuffer()
    landing = land_all(of, of.full_name(PREFIX), records, INTAKE)
    buffer.take(landing.rows)
    buffer.skip_all(landing.skipped)
    return buffer


def written(buffer: LandingBuffer) -> tuple[dict[str, pl.DataFrame], list[Skipped], int, int]:
    """What a landing would write of it."""
    frames = {name: TABLES[name].frame(rows) for name, rows in sorted(buffer.rows.items())}
    return frames, buffer.skipped, buffer.records, buffer.bytes


def assert_same(of: Topic, records: list[Record]) -> None:
    """Both ways write the same."""
    expected, actual = written(one_by_one(of, records)), written(at_once(of, records))

    assert expected[1:] == actual[1:]
    assert expected[0].keys() == actual[0].keys()
    for name, frame in expected[0].items():
        assert frame.schema == actual[0][name].schema
        assert frame.equals(actual[0][name], null_equal=True), name


@given(st.lists(st.tuples(TURN_BYTES | ODD, KEYS), max_size=12))
def test_turns_land_as_each_alone(values: list[tuple[bytes | None, bytes | None]]) -> None:
    """Good turns, controls, refusals, fields of their own and U+0000 in any order."""
    records = [record(value, offset)._replace(key=key) for offset, (value, key) in enumerate(values)]

    assert_same(TURNS, records)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4))
def test_whatever_a_producer_calls_its_time_a_turn_lands(times_ms: list[int]) -> None:
    """As each alone, and in a row or among the refusals; the last day that a column has is in the year 9999."""
    records = [Record(0, n, at_ms, b"s-1", encode(turn(n))) for n, at_ms in enumerate(times_ms)]

    assert_same(TURNS, records)
    rows = one_by_one(TURNS, records)
    assert rows.records + len(rows.skipped) >= len(records)


@pytest.mark.parametrize("of", list(OUTPUTS), ids=[of.name for of in OUTPUTS])
@given(st.data())
def test_outputs_land_as_each_alone(of: Topic, data: st.DataObject) -> None:
    """Tombstones and damaged records between them."""
    values = data.draw(st.lists(st.sampled_from([*OUTPUTS[of], None, b"{broken"]), max_size=8))

    assert_same(of, [record(value, offset) for offset, value in enumerate(values)])
