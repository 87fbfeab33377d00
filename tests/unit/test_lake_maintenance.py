"""Merging, deleting, and what the catalog may know of the text."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock, patch

import pytest

from models.policy import IntakePolicy
from streams.archive import maintenance
from streams.archive.maintenance import FILES_TO_MERGE, CutShort, maintain
from streams.archive.schema import OFFSETS
from streams.archive.verify import status, verify
from streams.archive.writer import LANDING_LEVEL, LakeWriter
from streams.roles.archive import Archivist
from streams.settings import load_settings
from tests.support.lake_records import NOW, PREFIX, buffer_of, copied, land, paths, turn

_LATER = timedelta(days=400_000 // 24)
"""Far enough that everything written by the wall clock is old."""


def files(writer: LakeWriter, table: str = "turns") -> list[Path]:
    """The table's files on disk."""
    return sorted(Path(writer.paths.data).glob(f"raw/{table}/**/*.parquet"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many landings as are merged at once."""
    folder = tmp_path_factory.mktemp("landed")
    with closing(LakeWriter(paths(folder))) as writer:
        land(writer, range(FILES_TO_MERGE))
    return folder


@pytest.fixture
def landed(made: Path, tmp_path: Path) -> Iterator[LakeWriter]:
    """A writer of an archive of the test's own with these."""
    with closing(copied(made, tmp_path)) as writer:
        yield writer


def test_enough_small_files_become_one(writer: LakeWriter) -> None:
    """Fewer are left alone, so that a row is not rewritten every minute."""
    land(writer, range(FILES_TO_MERGE - 1))
    too_few = maintain(writer, now=NOW + _LATER, keep_replaced=timedelta(0))
    land(writer, range(FILES_TO_MERGE - 1, FILES_TO_MERGE))

    enough = maintain(writer, now=NOW + _LATER, keep_replaced=timedelta(0))

    assert (too_few.merged_files, enough.merged_files) == (0, FILES_TO_MERGE)
    assert len(files(writer)) == 1
    assert verify(writer.con, prefix=PREFIX, now=NOW).findings == []


async def test_a_revocation_or_a_stop_cuts_it_short() -> None:
    """The group would give up on a member that goes on."""
    role: Any = Archivist(load_settings(), {}, IntakePolicy(), MagicMock())
    role._upkeep, role._consumer = AsyncMock(), AsyncMock(getmany=AsyncMock(return_value={}))
    await role._round()
    (is_urgent,) = role._upkeep.maintain.call_args.args
    urgent = [is_urgent()]
    await role.on_partitions_revoked(set())
    urgent.append(is_urgent())
    role._is_revoked = False
    role._stop.set()

    assert [*urgent, is_urgent()] == [False, True, True]


@pytest.mark.parametrize("steps", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3)), 4])
def test_maintenance_that_is_cut_short_is_made_up_for(landed: LakeWriter, steps: int) -> None:
    """Between any two steps the archive is whole; the next round does the rest."""
    left = iter(range(steps))

    def look() -> None:
        if next(left, None) is None:
            raise CutShort

    with pytest.raises(CutShort):
        maintain(landed, now=NOW + _LATER, keep_replaced=timedelta(0), look=look)
    cut = verify(landed.con, prefix=PREFIX, now=NOW).findings
    maintain(landed, now=NOW + _LATER, keep_replaced=timedelta(0))

    assert cut == []
    assert len(files(landed)) == 1
    assert verify(landed.con, prefix=PREFIX, now=NOW).findings == []


def held(writer: LakeWriter) -> dict[str, int]:
    """Bytes that DuckDB holds, by purpose."""
    rows = writer.con.execute("SELECT tag, memory_usage_bytes FROM duckdb_memory() WHERE memory_usage_bytes > 0")
    return dict(rows.fetchall())


def test_memory_does_not_grow_with_landings(writer: LakeWriter) -> None:
    """What the engine gathers with each landing goes with the merge."""
    land(writer, range(FILES_TO_MERGE))
    maintain(writer, now=datetime.now(UTC), keep_replaced=timedelta(minutes=1))
    writer.offsets()
    first = sum(held(writer).values())

    land(writer, range(FILES_TO_MERGE, 5 * FILES_TO_MERGE))
    grown = sum(held(writer).values())
    maintain(writer, now=datetime.now(UTC), keep_replaced=timedelta(minutes=1))
    writer.offsets()

    assert sum(held(writer).values()) < 1.05 * first < grown


def test_past_offsets_leave_the_catalog(writer: LakeWriter) -> None:
    """They change with every landing: without this the catalog grows for ever."""
    for n in range(3):
        land(writer, range(5 * n, 5 * n + 5))
        maintain(writer, now=NOW + _LATER, keep_replaced=timedelta(0))

    with sqlite3.connect(writer.paths.catalog) as catalog:
        names = catalog.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'ducklake_inlined_data_%_%' AND type = 'table'"
        ).fetchall()
        inlined = [
            catalog.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for (name,) in names
            if name != "ducklake_inlined_data_tables"
        ]

    assert inlined == [0]
    assert len(files(writer, OFFSETS)) == 1
    assert next(iter(writer.offsets().values())).next == 45


def test_catalog_forgets_text(writer: LakeWriter) -> None:
    """Statistics of text must not outlive an erasure, and widening them must not hide a row."""
    land(writer, range(2), content="secret")
    maintain(writer, now=NOW, keep_replaced=timedelta(0))
    land(writer, range(2, 3), content="afterwards")
    maintain(writer, now=NOW, keep_replaced=timedelta(0))

    with sqlite3.connect(writer.paths.catalog) as catalog:
        kept = [
            value
            for scope in ("file", "table")
            for pair in catalog.execute(f"SELECT min_value, max_value FROM ducklake_{scope}_column_stats")  # noqa: S608
            for value in pair
            if value and ("secret" in value or "afterwards" in value)
        ]
    found = writer.con.execute(
        "SELECT (SELECT count(*) FROM turns WHERE content = 'secret 0'), "
        "(SELECT count(*) FROM turns WHERE content LIKE 'after%'), (SELECT max(content) FROM turns), "
        "(SELECT count(*) FROM turns WHERE session_id = 's-1'), (SELECT count(*) FROM turns WHERE session_id > 's-1')"
    ).fetchall()

    assert kept == []
    assert found == [(3, 3, "secret 1", 9, 0)]


def test_status_counts_rows_files_and_bytes(writer: LakeWriter) -> None:
    """The ratio compares with the records' JSON."""
    land(writer, range(2))

    found = status(writer.con)
    turns = next(table for table in found.tables if table.table == "turns")

    assert (6, 2, sum(path.stat().st_size for path in files(writer))) == (turns.rows, turns.files, turns.bytes)
    assert turns.ratio == pytest.approx(turns.bytes / turns.json_bytes, abs=1e-3)
    assert [partition.next_offset for partition in found.partitions] == [6]


def test_merged_files_are_packed_more_tightly(tmp_path: Path) -> None:
    """And what lands afterwards is not: it must be quick."""
    place = paths(tmp_path)
    with closing(LakeWriter(place)) as writer:
        for part in range(3):
            writer.land(buffer_of([turn(part)], first=part, expected=part or None), now=NOW)
        with patch.object(maintenance, "_merge", side_effect=lambda *_: int(level_of(writer))):
            merging = maintain(writer, now=NOW, keep_replaced=timedelta(0))

        assert maintenance.MERGED_LEVEL * len(maintenance.SIZE_CLASSES) == merging.merged_files
        assert str(LANDING_LEVEL) == level_of(writer)


def level_of(writer: LakeWriter) -> str:
    """The zstd level of what is written now."""
    found = writer.con.execute(
        "SELECT value FROM ducklake_options('lake') WHERE option_name = 'parquet_compression_level'"
    ).fetchone()
    assert found is not None
    return str(found[0])
