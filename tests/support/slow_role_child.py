"""`turntide worker ROLE` with one slow call, for tests that stop it in there.

Arguments: the role, and what is slow: `score` blocks the event loop, `sink` (writing outputs) and `store` (the vector
store's upsert) wait in it. The slow call, the first of its kind, says so on standard output.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from jobs import cli
from models.events import AnyTurn
from streams.index import edge
from streams.index.edge import EdgeStore
from streams.inference import trained_scorer as trained
from streams.inference.trained_scorer import TrainedScorer
from streams.kafka import producer
from streams.ports import Point, Vectors
from streams.roles import batch_role

SLOW_S = 3.0
ENTERED = "in the slow call"
_once = iter([SLOW_S])


def _entered() -> float:
    """Say so; gives how long this call takes, in seconds."""
    slow_s = next(_once, 0.0)
    if slow_s:
        sys.stdout.write(ENTERED + "\n")
        sys.stdout.flush()
    return slow_s


class SlowScorer(TrainedScorer):
    """A scorer that takes its time."""

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> list[float]:
        """As the scorer, after a while."""
        time.sleep(_entered())
        return super().score(turns, vectors)


async def _slow_sink(pending: Iterable[asyncio.Future[Any]]) -> list[Any]:
    """The broker has them, but says so late."""
    await asyncio.sleep(_entered())
    return await producer.acknowledged(pending)


class SlowStore(EdgeStore):
    """A store that takes its time."""

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As the store, after a while."""
        await asyncio.sleep(_entered())
        await super().upsert(collection, points)


def main(role: str, slow: str) -> None:
    """Run the role."""
    match slow:
        case "score":
            trained.TrainedScorer = SlowScorer  # type: ignore[misc]
        case "sink":
            batch_role.acknowledged = _slow_sink  # type: ignore[attr-defined]
        case _:
            edge.EdgeStore = SlowStore  # type: ignore[misc]
    sys.argv = ["turntide", "worker", role]
    cli.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
