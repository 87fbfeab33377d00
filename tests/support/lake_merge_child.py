"""A merge in a process of its own, on a disk that takes the small files but not the merged one. Argument: folder."""

import random
import resource
import signal
import sys
from datetime import timedelta
from pathlib import Path

from streams.archive.maintenance import FILES_TO_MERGE, maintain
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, buffer_of, paths, turn

_TURNS_EACH = 8
TURNS = _TURNS_EACH * FILES_TO_MERGE
_CONTENT_BYTES = 100_000
_MORE_BYTES = 4_096


def main(folder: Path) -> None:
    """Land small files, then merge when no file may grow beyond the greatest there is, the catalog's log included."""
    writer = LakeWriter(paths(folder))
    for first in range(0, TURNS, _TURNS_EACH):
        contents = [(n, random.Random(n).randbytes(_CONTENT_BYTES).hex()) for n in range(first, first + _TURNS_EACH)]
        turns = [turn(n, content=content) for n, content in contents]
        writer.land(buffer_of(turns, first=first, expected=first or None), now=NOW)
    greatest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (greatest + _MORE_BYTES, greatest + _MORE_BYTES))
    maintain(writer, now=NOW, keep_replaced=timedelta(hours=1), everything=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
