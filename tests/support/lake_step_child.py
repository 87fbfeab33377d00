"""Writers that are killed −9 at each of their steps in turn: before the first statement, the second, …, the end.

Argument: folder. Each writer is a fork of its own that verifies what the one before left, goes on there, lands one
batch and maintains. Standard output has a line for each that was killed: the statement it did not come to.
"""

import os
import signal
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition

from models.events.topics import TURNS
from streams.archive.maintenance import maintain
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, buffer_of, paths, turn

ROWS = 7


class Deadly:
    """A connection that counts its statements and dies before one of them."""

    def __init__(self, con: Any, fatal: int) -> None:
        self._con = con
        self._left = fatal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def execute(self, sql: str, *arguments: Any) -> Any:
        """Run a statement, or die if it is the one."""
        self._left -= 1
        if self._left == 0:
            os.write(1, " ".join(sql.split())[:80].encode() + b"\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return self._con.execute(sql, *arguments)


def land_and_maintain(folder: Path, fatal: int) -> None:
    """Land the next batch where the archive stands, then merge, expire and delete everything there is."""
    writer = LakeWriter(paths(folder))
    move = writer.offsets().get(TopicPartition(TURNS.full_name(PREFIX), 0))
    first = move.next if move else 0
    if findings := verify(writer.con, prefix=PREFIX, now=NOW).findings:
        sys.exit(f"what the writer before left is not whole: {findings}")
    writer.con = Deadly(writer.con, fatal)  # type: ignore[assignment]
    turns = [turn(k, session_id=f"s-{k % 3}", app_id=f"app-{k % 2}") for k in range(first, first + ROWS)]
    writer.land(buffer_of(turns, first=first, expected=first or None), now=NOW)
    maintain(writer, now=NOW + timedelta(days=1), keep_replaced=timedelta(0), everything=True)
    writer.con.close()


def main(folder: Path) -> None:
    """Fork writers until one comes to its end. The archive is made before: so signatures are checked once for all."""
    LakeWriter(paths(folder)).close()
    for fatal in count(1):
        child = os.fork()
        if child == 0:
            land_and_maintain(folder, fatal)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
