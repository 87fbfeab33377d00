"""Pages of mapped files are given back, and nothing of the files is lost."""

import mmap
import re
import sys
from pathlib import Path

import pytest

from streams.index.edge_shard import give_back

SIZE = 64 * mmap.PAGESIZE


def resident_kib(file: Path) -> int:
    """Resident part of a mapped file."""
    entry = Path("/proc/self/smaps").read_text().split(str(file), 1)[1]
    found = re.search(r"^Rss: +(\d+) kB", entry, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is given back")
def test_what_was_written_and_not_yet_flushed_is_read_again(tmp_path: Path) -> None:
    """Only files below the folder, and a private mapping's own changes stay."""
    folder, other = tmp_path / "collection", tmp_path / "other"
    folder.mkdir()
    for file in (folder / "shared", folder / "private", other):
        file.write_bytes(bytes(SIZE))
    with (folder / "shared").open("r+b") as one, (folder / "private").open("rb") as two, other.open("r+b") as three:
        shared, elsewhere = mmap.mmap(one.fileno(), SIZE), mmap.mmap(three.fileno(), SIZE)
        private = mmap.mmap(two.fileno(), SIZE, access=mmap.ACCESS_COPY)
        shared[:], private[:], elsewhere[:] = b"s" * SIZE, b"p" * SIZE, b"e" * SIZE
        give_back(folder)
        left = [resident_kib(file) for file in (folder / "shared", folder / "private", other)]

        assert left == [0, SIZE // 1024, SIZE // 1024]
        assert (shared[:], private[:]) == (b"s" * SIZE, b"p" * SIZE)
