"""F11: the archive's writer is killed at each of its steps, landing and maintenance. Kills at random: unit tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from streams.archive.catalog import open_reader
from streams.archive.verify import verify
from tests.support import lake_step_child
from tests.support.lake_records import NOW, PREFIX, paths
from tests.support.lake_step_child import ROWS

pytestmark = pytest.mark.fault("F11")

STEPS = ("INSERT INTO raw.turns", "COMMIT", "CALL ducklake_merge", "CALL ducklake_rewrite", "CALL ducklake_cleanup")


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_killed_at_each_step_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """One writer after another dies one statement later; each finds a whole archive, and so does the reader."""
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", lake_step_child.__name__, str(tmp_path)], capture_output=True, text=True, check=False
    )
    con = open_reader(paths(tmp_path))
    found = verify(con, prefix=PREFIX, now=NOW)
    rows, distinct, turns = con.execute(
        "SELECT count(*), count(DISTINCT kafka_offset), count(DISTINCT turn) FROM raw.turns"
    ).fetchall()[0]
    con.close()

    killed = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [step for step in STEPS if not any(line.startswith(step) for line in killed)] == []
    assert found.findings == []
    # Those killed before their commit landed nothing: as many batches as came after it, and the last writer's.
    assert rows == distinct == turns == found.partitions[0].next_offset
    assert rows == ROWS * (len(killed) - killed.index("COMMIT"))
