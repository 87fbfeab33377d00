"""Settled views show what the plain definitions show, whatever landed, was settled or went, in any order."""

# ruff: noqa: S608 - tables and views are constants

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from models.events.topics import COMPACTIONS, PROFILES, TURNS
from streams.archive.buffer import ArchivedPartition, Move
from streams.archive.catalog import LAKE
from streams.archive.deduplication import deduplicate, look_again
from streams.archive.schema import RAW, ddl
from streams.archive.views.definitions import ONCE, definitions
from streams.archive.views.published import create_views
from streams.archive.writer import LakeWriter

_TABLES = {"turns": TURNS, "profiles": PROFILES, "risk_points": PROFILES, "compactions": COMPACTIONS}
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
        self.next: dict[ArchivedPartition, int] = {}

    def offsets(self) -> dict[ArchivedPartition, Move]:
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
        place = ArchivedPartition(f"t.{_TABLES[table].name}", partition)
        for number in keys:
            offset = self.next.get(place, 0)
            self.next[place] = offset + 1
            named = {
                "session_id": f"s{number % 2}",
                "turn": number,
                "id": f"i{number}",
                "first_turn": number % 3,
                "last_turn": 3,
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


@settings(max_examples=15)
@given(_STEPS)
def test_settled_views_show_what_the_plain_ones_show(steps: list[tuple[Any, ...]]) -> None:
    """After every step, for every view that leaves repeats out."""
    lake = InMemory()
    for step in steps:
        act(lake, step)

        assert [] == differing(lake.con)
