"""F10, F11 of the fault matrix without Kafka: the writer is killed anywhere, or the disk is full."""

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from models.events.topics import TURNS
from streams.archive.catalog import open_reader
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support import lake_child
from tests.support.lake_child import ROWS
from tests.support.lake_records import NOW, PREFIX, buffer_of, paths, turn

_TURNS = TopicPartition(TURNS.full_name(PREFIX), 0)
_KILLS = 5
_LONGER_THAN_ANY = 100_000


def child(folder: Path, batches: int, file_limit: int = 0) -> subprocess.Popen[str]:
    """Start a writer, return once it is about to land; without a home directory, as in a container."""
    process = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, lake_child.__file__, str(folder), str(batches), str(file_limit)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(folder / "nowhere")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.fault("F11")
def test_killed_at_any_moment_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """F11: kill -9 while it lands and merges; the next one goes on where the catalog stands."""
    moments = random.Random(7)
    for _ in range(_KILLS):
        process = child(tmp_path, _LONGER_THAN_ANY)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.05, 1.0))
        process.kill()
        process.communicate()
    last = child(tmp_path, 1)
    last.communicate()

    con = open_reader(paths(tmp_path))
    rows, distinct, turns, sessions = con.execute(
        "SELECT count(*), count(DISTINCT kafka_offset), count(DISTINCT turn), count(DISTINCT session_id) FROM raw.turns"
    ).fetchall()[0]
    found = verify(con, prefix=PREFIX, now=NOW)
    con.close()

    assert last.returncode == 0
    assert found.findings == []
    assert rows == distinct == turns == found.partitions[0].next_offset
    assert rows >= ROWS
    assert rows % ROWS == 0
    assert sessions == 7


@pytest.mark.parametrize(
    ("file_limit", "meaning"),
    [(40_000, "the file system refuses files of this size"), (1_000, "the disk refuses to be written")],
    ids=["rows", "catalog"],
)
@pytest.mark.fault("F10")
def test_full_disk_is_a_clear_error_and_commits_nothing(tmp_path: Path, file_limit: int, meaning: str) -> None:
    """F10: the process exits non-zero and says what to do; the archive stays whole, and the next one lands the rest."""
    writer = LakeWriter(paths(tmp_path))
    writer.land(buffer_of([turn(0)]), now=NOW)
    writer.close()

    process = child(tmp_path, _LONGER_THAN_ANY, file_limit)
    _, said = process.communicate()
    again = LakeWriter(paths(tmp_path))
    stands, findings = again.offsets()[_TURNS].next, verify(again.con, prefix=PREFIX, now=NOW).findings
    again.close()
    roomy = child(tmp_path, 1)
    roomy.communicate()
    con = open_reader(paths(tmp_path))
    landed = con.execute("SELECT count(*), count(DISTINCT kafka_offset) FROM raw.turns").fetchall()
    findings += verify(con, prefix=PREFIX, now=NOW).findings
    con.close()

    assert (process.returncode, stands, roomy.returncode) == (1, 1, 0)
    assert "models.errors.StoreUnavailable: " in said
    assert meaning in said
    assert landed == [(1 + ROWS, 1 + ROWS)]
    assert findings == []
