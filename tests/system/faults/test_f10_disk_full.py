"""F10: the disk is full, for local data as for the archive: a clear message, nothing torn, on when there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from models.events.topics import TURNS
from streams.archive.buffer import ArchivedPartition
from streams.archive.catalog import open_reader
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from streams.index.collections import TURNS as TURN_POINTS
from streams.index.edge import EdgeStore
from tests.support import edge_child, lake_child
from tests.support.lake_records import NOW, PREFIX, paths

pytestmark = [pytest.mark.system, pytest.mark.fault("F10")]

BATCHES = 3
FULL_BYTES = 40_000
TURNS_TO_INDEX = 60


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A child to its end."""
    return subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_archive_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """A landing that the disk refuses leaves no row and no offset; the next process lands it, each row once."""
    full = run(lake_child.__name__, tmp_path, BATCHES, FULL_BYTES)
    writer = LakeWriter(paths(tmp_path))
    stats = writer.offsets().get(ArchivedPartition(TURNS.full_name(PREFIX), 0))
    writer.close()
    roomy = run(lake_child.__name__, tmp_path, BATCHES, 0)
    con = open_reader(paths(tmp_path))
    rows, distinct = con.execute("SELECT count(*), count(DISTINCT kafka_offset) FROM raw.turns").fetchall()[0]
    found = verify(con, prefix=PREFIX, now=NOW)
    con.close()

    assert (full.returncode, stats, roomy.returncode) == (1, None, 0)
    assert "the file system refuses files of this size" in full.stderr
    assert found.findings == []
    assert rows == distinct == BATCHES * lake_child.ROWS


async def test_the_local_vector_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """What was said to be durable is there, the refused turn can be written again, and the message names the place."""
    full = run(edge_child.__name__, tmp_path, 0, TURNS_TO_INDEX, 1_000)
    durable = len(full.stdout.split())
    store = EdgeStore(tmp_path, embedder="test")
    kept = {payload["turn"] for payload in await store.latest(TURN_POINTS.name, where={}, by="turn", limit=1_000)}
    await store.close()
    roomy = run(edge_child.__name__, tmp_path, durable, TURNS_TO_INDEX, 0)
    store = EdgeStore(tmp_path, embedder="test")
    in_the_end = await store.count(TURN_POINTS.name)
    await store.close()

    assert (full.returncode, roomy.returncode) == (1, 0)
    assert "Check space and rights there" in full.stderr
    assert str(tmp_path) in full.stderr
    assert set(range(durable)) <= kept
    assert in_the_end == TURNS_TO_INDEX
