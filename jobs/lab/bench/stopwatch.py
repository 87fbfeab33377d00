"""Times a contender's turns, after a warm-up."""

from __future__ import annotations

from time import perf_counter

from jobs.lab.bench.figures import Timing

WARM_UP_TURNS = 500
"""Not timed: connections, caches, first allocations. Of a short run, a quarter."""


class Stopwatch:
    """Counts turns and times those after the warm-up.

    Args:
        turns: How many are taken, the warm-up among them; none: without end.
    """

    def __init__(self, turns: int | None) -> None:
        self._turns = turns
        self._warm_up = min(WARM_UP_TURNS, (turns or 0) // 4)
        self._taken = 0
        self._began_s = self._ended_s = perf_counter()

    @property
    def done(self) -> bool:
        """Whether all were taken."""
        return self._taken == self._turns

    def took_one(self) -> bool:
        """Count a turn; whether it was the last."""
        self._taken += 1
        if self._taken == self._warm_up:
            self._began_s = perf_counter()
        if self.done:
            self._ended_s = perf_counter()
        return self.done

    def timing(self) -> Timing:
        """From the end of the warm-up to the last turn."""
        return Timing(self._taken - self._warm_up, self._ended_s - self._began_s)
