"""A writer in a process of its own, for tests that kill it: lands and merges until it is stopped.

Arguments: folder, batches to land, largest file in bytes that the system allows (0: any).
"""

import random
import resource
import signal
import sys
from datetime import timedelta
from pathlib import Path

from aiokafka import TopicPartition

from models.events.topics import TURNS
from streams.archive.maintenance import maintain
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, buffer_of, paths, turn

ROWS = 50
_MERGE_EVERY = 5


def main(folder: Path, batches: int, file_limit: int) -> None:
    """Go on where the archive stands."""
    writer = LakeWriter(paths(folder))
    move = writer.offsets().get(TopicPartition(TURNS.full_name(PREFIX), 0))
    first = move.next if move else 0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if file_limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    for n in range(first, first + batches * ROWS, ROWS):
        turns = [
            turn(k, session_id=f"s-{k % 7}", app_id=f"app-{k % 3}", content=random.Random(k).randbytes(3_000).hex())
            for k in range(n, n + ROWS)
        ]
        writer.land(buffer_of(turns, first=n, expected=n or None), now=NOW)
        if n // ROWS % _MERGE_EVERY == 0:
            maintain(writer, now=NOW, keep_replaced=timedelta(hours=1), everything=True)
    writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
