"""Many records at once land as each alone; settled views show what the plain definitions show."""

# ruff: noqa: S608 - tables and views are constants

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import duckdb
import polars as pl
import pytest
from aiokafka import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from models.events import AlertStatus, ClockTicked, SessionEnded, SessionErased
from models.events.topics import ALERTS, COMPACTIONS, CONVERSATION_TOPICS, NUMBERED, PROFILES, TURNS, WINDOWS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import LAKE
from streams.archive.deduplication import deduplicate, look_again
from streams.archive.landed import land, land_all
from streams.archive.rows import Landed
from streams.archive.schema import RAW, TABLES, Skipped, ddl
from streams.archive.views.definitions import ONCE, definitions
from streams.archive.views.published import create_views
from streams.archive.writer import LakeWriter
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


_TABLES = {
    "turns": TURNS,
    "numbered_turns": NUMBERED,
    "profiles": PROFILES,
    "risk_points": PROFILES,
    "compactions": COMPACTIONS,
}
_VIEWS = [view for view, rule in ONCE.items() if rule.table in _TABLES]
_PARTITIONS = st.integers(0, 2)


class InMemory:
    """What settling needs of a writer, over tables in memory: without files, thousands of steps take a second."""

    def __init__(self) -> None:
        self.con = duckdb.connect()
        self.con.execute(f"ATTACH ':memory:' AS {LAKE}; USE {LAKE}; CREATE SCHEMA {RAW}")
        for table, columns in ddl().items():
            self.con.execute(
                f"CREATE TABLE {RAW}.{table} ({', '.join(f'{n!r} {t}' for n, t in columns.items())})".replace("'", '"')
            )
        create_views(self.con)
        self.next: dict[TopicPartition, int] = {}

    def offsets(self) -> dict[TopicPartition, Move]:
        """Where each partition stands."""
        return {place: Move(next_, 0, next_) for place, next_ in self.next.items()}

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """All or nothing."""
        self.con.execute("BEGIN")
        yield self.con
        self.con.execute("COMMIT")

    def land(self, table: str, partition: int, keys: list[int]) -> None:
        """One record for each number; equal numbers have equal keys."""
        place = TopicPartition(f"t.{_TABLES[table].name}", partition)
        for number in keys:
            offset = self.next.get(place, 0)
            self.next[place] = offset + 1
            named = {
                "session_id": f"s{number % 2}",
                "turn": number,
                "id": f"i{number}",
                "first_turn": number % 3,
                "last_turn": 3,
                # Before, or behind, the records of the other turns with these numbers.
                "source": {"topic": "t", "partition": number % 3, "offset": number + (1_000 if number % 2 else -1_000)},
            }
            columns = {name: value for name, value in named.items() if name in ddl()[table]}
            values = ", ".join(f"? AS {name}" for name in (*columns, "kafka_partition", "kafka_offset"))
            self.con.execute(
                f"INSERT INTO {RAW}.{table} BY NAME SELECT {values}", [*columns.values(), partition, offset]
            )

    def remove(self, table: str, partition: int, offset: int) -> None:
        """One record goes, as by an erasure."""
        with self.transaction() as con:
            con.execute(
                f"DELETE FROM {RAW}.{table} WHERE kafka_partition = ? AND kafka_offset = ?", [partition, offset]
            )
            look_again(con, (table,))


_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("land"), st.sampled_from(sorted(_TABLES)), _PARTITIONS, st.lists(st.integers(0, 4), max_size=4)
        ),
        st.tuples(st.just("settle")),
        st.tuples(st.just("remove"), st.sampled_from(sorted(_TABLES)), _PARTITIONS, st.integers(0, 4)),
    ),
    max_size=12,
)


def differing(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Views whose rows are not those of the plain definition."""
    plain, found = definitions({}), []
    for view in _VIEWS:
        queries = (f"FROM v1.{view}", plain[view])
        rows = [con.execute(f"SELECT r::VARCHAR FROM ({query}) AS r ORDER BY 1").fetchall() for query in queries]
        if rows[0] != rows[1]:
            found.append(view)
    return found


def act(lake: InMemory, step: tuple[Any, ...]) -> None:
    """Do one step."""
    match step:
        case ("land", table, partition, keys):
            lake.land(table, partition, keys)
        case ("remove", table, partition, offset):
            lake.remove(table, partition, offset)
        case _:
            deduplicate(cast("LakeWriter", lake))


@settings(max_examples=settings().max_examples // 2)
@given(_STEPS)
def test_settled_views_show_what_the_plain_ones_show(steps: list[tuple[Any, ...]]) -> None:
    """After every step, for every view that leaves repeats out."""
    lake = InMemory()
    for step in steps:
        act(lake, step)

        assert [] == differing(lake.con)
