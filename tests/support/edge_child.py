"""An index writer on Qdrant Edge in a process of its own, whose system allows no file above a size.

Arguments: folder, first turn, turn to end before, and the largest file in bytes (0: any). The limit comes once the
first turn is written. It prints the number of every turn that was durable, and ends with 1 and the store's words.
"""

import asyncio
import resource
import signal
import sys
from pathlib import Path

import numpy as np

from models.errors import StoreUnavailable
from models.events import SessionName
from streams.index.collections import TURNS, turn_key
from streams.index.edge import EdgeStore
from streams.ports import Point

DIM = 64
TEXT = "x" * 3_000


def point(turn: int) -> Point:
    """A turn's point."""
    vector = np.random.default_rng(turn).normal(size=DIM).astype(np.float32)
    return Point(
        turn_key(SessionName("a", "s"), turn),
        vector / np.linalg.norm(vector),
        {"session_id": "s", "turn": turn, "t": TEXT},
    )


async def main(folder: Path, first: int, last: int, file_limit: int) -> int:
    """Index turn by turn; gives the exit code."""
    store = EdgeStore(folder, embedder="test")
    await store.upsert(TURNS.name, [point(first)])
    print(first, flush=True)  # noqa: T201 - the parent reads it
    if file_limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    try:
        for turn in range(first + 1, last):
            await store.upsert(TURNS.name, [point(turn)])
            print(turn, flush=True)  # noqa: T201
    except StoreUnavailable as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201
        return 1
    await store.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))))
