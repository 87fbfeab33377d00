"""One suite for every store of a partition's state: memory and RocksDB."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.events import Position, session_key
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from streams.encryption.keyring import sealer_of
from streams.settings import Settings
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable
from streams.state.partition import PartitionTable, Tail
from streams.state.rocksdb import open_table
from tests.support.encrypted import encrypted
from tests.support.session_driver import said

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
Open = Callable[[str], PartitionTable]


@pytest.fixture(params=["memory", "rocksdb", "encrypted"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens empty tables of the store, by name; all are closed at the end."""
    tables: list[PartitionTable] = []
    sealer = sealer_of(Settings(encryption=encrypted(tmp_path))) if request.param == "encrypted" else None

    def open_one(name: str) -> PartitionTable:
        table: PartitionTable = (
            MemoryTable()
            if request.param == "memory"
            else open_table(tmp_path / name, cache_bytes=64 * 1024, write_buffer_bytes=64 * 1024, sealer=sealer)
        )
        tables.append(table)
        return table

    yield open_one
    for table in tables:
        table.close()


def store(table: PartitionTable, offset: int, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
    """One fold's changes, as `StateTable.write` hands them over."""
    parts = keyed(changes)
    applied = table.progress.applied + len(parts)
    table.apply(parts, offset=offset, applied=applied, tail=Tail(applied - 1, 7), now_ms=1000 + offset)


def content(table: PartitionTable) -> dict[str, dict[str, bytes]]:
    """Everything in it."""
    return {entity: dict(parts) for entity, parts in table.entities.items()}


def test_entities_are_told_apart_whatever_their_ids_hold(opened: Open) -> None:
    """Prefixes of each other, separators and other scripts in ids are ids like any other."""
    ids = ["s", "s\x1f", "s\x1e", "s\x1fhead", "s1", "\x1fapp:x", "сессия", "ÿ" * 40, "h", "p", "m"]
    table = opened("0")
    for number, entity in enumerate(ids):
        store(table, number, {entity: {"head": entity.encode(), "b0": b"0", "s3": b"3"}})

    assert {entity: {"head": entity.encode(), "b0": b"0", "s3": b"3"} for entity in ids} == content(table)
    assert all(table.entities[entity]["head"] == entity.encode() for entity in ids)
    assert sorted(ids) == sorted(table.entities)


def test_parts_named_while_iterating_are_all_there(opened: Open) -> None:
    """Iteration may be lazy; whoever looks closer finds every part."""
    table = opened("0")
    store(table, 1, {"a": {"head": b"1", "b0": b"2"}, "": {"clock": b"3", "app:x": b"4"}})

    seen = {entity: (len(parts), sorted(parts), parts.get("b0")) for entity, parts in table.entities.items()}

    assert {"a": (2, ["b0", "head"], b"2"), "": (2, ["app:x", "clock"], None)} == seen


CHANGE = st.dictionaries(
    st.sampled_from(["", "a", "b", "c"]),
    st.dictionaries(st.sampled_from(["b0", "v1"]), st.one_of(st.none(), st.binary(max_size=4)), max_size=2),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(CHANGE, max_size=12))
def test_any_changes_leave_what_a_dictionary_would_hold(
    opened: Open, changes: list[dict[str, dict[str, bytes | None]]]
) -> None:
    """Against a plain dictionary, with counts and bytes, for any run of folds."""
    table, model = opened(uuid.uuid4().hex), MemoryTable()
    for offset, change in enumerate(changes):
        whole = {entity: {**({"head": b"h"} if entity else {}), **parts} for entity, parts in change.items()}
        store(table, offset, whole)
        store(model, offset, whole)

    assert (model.entities, model.progress) == (content(table), table.progress)
    assert (model.size_bytes, len(model.entities)) == (table.size_bytes, len(table.entities))


def test_the_fold_schedules_every_session_and_goes_on(opened: Open) -> None:
    """A fold over the store sees all deadlines and loads a session whole, as one over a dictionary does."""
    table, policy = opened("0"), Policy()
    for session in range(20):
        turn = said(0, session_id=f"s-{session}", timestamp=START)
        for folded in PartitionFold(table.entities, policy).fold(
            [DecodedArrival(turn, Position("turns", 0, session), START, 0.1)]
        ):
            store(table, folded.offset, folded.changed)

    again = PartitionFold(table.entities, policy)

    assert (19, 20) == (again.offset, again.open_sessions)
    assert PartitionFold(content(table), policy).next_deadline() == again.next_deadline()
    assert 21 == len(table.entities)
    assert {"head", "b0"} <= set(table.entities[session_key("a", "s-3")])
