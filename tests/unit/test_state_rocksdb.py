"""RocksDB as a cache that may vanish: kept over restarts and kills, dropped when it cannot be trusted, never large."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from models.errors import RecoveryFailed
from streams.state.partition import TableProgress, Tail
from streams.state.rocksdb import LAYOUT, RocksTable, open_table

_CHILD = """
import os, resource, sys
from pathlib import Path
from streams.state.rocksdb import open_table

folder, folds, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if file_limit := int((sys.argv[4:] or "0")[0]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
table = open_table(folder, cache_bytes=1024 * 1024, write_buffer_bytes=1024 * 1024)
before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = table.progress.applied
for fold in range(done, done + folds):
    parts = {f"s-{fold}-{n}\\x1fb0".encode(): os.urandom(size) for n in range(50)}
    parts |= {f"s-{fold}-{n}\\x1fhead".encode(): fold.to_bytes(8, "big") for n in range(50)}
    table.apply(parts, offset=fold, applied=fold + 1, tail=None, now_ms=0)
    print(fold + 1, flush=True)
heads = sum(1 for _, parts in table.entities.items() if parts["head"])
after_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("rss", (after_kib - before_kib) * 1024, table.size_bytes, heads, flush=True)
"""


def opened(folder: Path) -> RocksTable:
    """A table with small caches."""
    return open_table(folder, cache_bytes=64 * 1024, write_buffer_bytes=64 * 1024)


def filled(folder: Path, entities: int = 3) -> None:
    """A folder that holds some entities, closed."""
    table = opened(folder)
    parts = {f"s-{n:05d}\x1fhead".encode(): os.urandom(200) for n in range(entities)}
    table.apply(parts, offset=9, applied=entities, tail=Tail(entities - 1, 1), now_ms=5)
    table.close()


def test_what_was_stored_is_there_again_unless_of_another_layout(tmp_path: Path) -> None:
    """The table stands where it stood, counts included; a cache of another release is not misread."""
    filled(tmp_path / "0")
    table = opened(tmp_path / "0")

    assert TableProgress(applied=3, offset=9, tail=Tail(2, 1), current_ms=5) == table.progress
    assert (3, 600) == (len(table.entities), table.size_bytes)
    table._db[b"m"] = msgspec.msgpack.encode([LAYOUT + 1, [5, 5, None, 5], 0, 0])
    table.close()
    table = opened(tmp_path / "0")
    assert TableProgress() == table.progress
    table.close()


def test_a_damaged_block_drops_the_cache_instead_of_hiding_what_follows(tmp_path: Path) -> None:
    """Found while reading: the role stops with a message, and the next start begins anew."""
    filled(tmp_path / "0", entities=5_000)
    table = opened(tmp_path / "0")
    table._db.flush()
    table.close()
    largest = max((tmp_path / "0").glob("*.sst"), key=lambda file: file.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    third = len(damaged) // 3
    damaged[third : third + 20_000] = bytes(20_000)
    largest.write_bytes(damaged)
    table = opened(tmp_path / "0")

    with pytest.raises(RecoveryFailed, match="restart the worker"):
        assert 5_000 == sum(1 for _ in table.entities)
    table = opened(tmp_path / "0")
    assert TableProgress() == table.progress
    table.close()


def test_a_folder_that_is_held_is_left_alone(tmp_path: Path) -> None:
    """Whoever sleeps with the lock keeps it; the other one builds its own beside it."""
    first, second = opened(tmp_path / "0"), opened(tmp_path / "0")
    second.apply({b"s\x1fhead": b"1"}, offset=0, applied=1, tail=None, now_ms=0)

    assert (tmp_path / "0", tmp_path / "0.1", 0, 1) == (
        first.folder, second.folder, len(first.entities), len(second.entities),
    )  # fmt: skip
    first.close()
    second.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message names the folder and the setting."""
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(RecoveryFailed, match="TURNTIDE_DATA_DIR"):
        opened(tmp_path / "file" / "0")


def test_killed_at_any_moment_it_stands_after_some_fold(tmp_path: Path) -> None:
    """Kill −9 while folds are written: every acknowledged fold whole, at most one more, none in part."""
    for stop_after in (3, 17, 60):
        child = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", _CHILD, str(tmp_path / "0"), "100000", "2000"], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        seen = [int(child.stdout.readline()) for _ in range(stop_after)]
        child.send_signal(signal.SIGKILL)
        seen += [int(line) for line in child.stdout if line.endswith("\n")]
        child.wait()
        table = opened(tmp_path / "0")

        assert table.folder == tmp_path / "0"
        assert table.progress.applied in (seen[-1], seen[-1] + 1)
        assert (table.progress.applied * 50, table.progress.applied * 50 * 2008) == (
            len(table.entities), table.size_bytes,
        )  # fmt: skip
        assert len(table.entities) == sum(len(parts) == 2 for _, parts in table.entities.items())
        table.close()


def test_state_may_be_larger_than_memory(tmp_path: Path) -> None:
    """100 MB of state, every head read: the process grows by far less than the state."""
    printed = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", _CHILD, str(tmp_path / "0"), "500", "4000"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    grown, state, heads = map(int, printed.splitlines()[-1].removeprefix("rss ").split())

    assert (25_000, 25_000 * 4008) == (heads, state)
    assert grown < state / 4


@pytest.mark.fault("F10")
def test_a_full_disk_drops_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """Full while folding, and full already at the start: a message, and the table stands where it stood."""

    def child(file_limit: int) -> subprocess.CompletedProcess[str]:
        arguments = [str(tmp_path / "0"), "50", "400", str(file_limit)]
        return subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=False
        )

    def standing() -> int:
        table = opened(tmp_path / "0")
        applied = table.progress.applied
        table.close()
        return applied

    full = child(200_000)
    durable = len(full.stdout.split())
    stood = standing()
    full_at_start = child(1)
    roomy = child(0)

    assert 0 < durable < 50
    assert stood == durable
    for each in (full, full_at_start):
        assert each.returncode == 1
        assert f"StoreUnavailable: state folder {tmp_path / '0'} cannot be written, the disk is full" in each.stderr
    assert roomy.returncode == 0
    assert standing() == durable + 50
