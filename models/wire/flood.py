"""Floods of refused records: when dead letters of a partition leave out the bytes, decided from its log alone."""

from collections import deque

from models.policy import IntakePolicy


class FloodGauge:
    """Refused offsets of one partition of late; in a flood only a sample of its dead letters keeps the bytes.

    A flood holds at an offset if the `dead_letter_consecutive` offsets before it were all refused, or a share of
    `dead_letter_ratio` of the `dead_letter_window` offsets before it. What it decides depends on the log's last `reach`
    offsets and nothing else: a worker that takes the partition over looks back so far and decides the same, and so does
    a replay.

    >>> gauge = FloodGauge(IntakePolicy(dead_letter_consecutive=2, dead_letter_window=4, dead_letter_ratio=1.0))
    >>> [gauge.refuse(offset) for offset in (1, 2, 3, 4, 7)]
    [False, False, True, False, False]
    """

    def __init__(self, limits: IntakePolicy) -> None:
        self._window = limits.dead_letter_window
        self._consecutive = limits.dead_letter_consecutive
        self._enough = limits.dead_letter_ratio * self._window
        self._refused: deque[int] = deque()
        self.reach = max(self._window, self._consecutive)
        """Offsets that it looks back."""

    def refuse(self, offset: int) -> bool:
        """Take in a refused record; True: its letter leaves out the bytes.

        Args:
            offset: Its own; one that is not above the last one begins a reading anew from there.
        """
        refused = self._refused
        while refused and refused[-1] >= offset:
            refused.pop()
        while refused and refused[0] < offset - self.reach:
            refused.popleft()
        is_flood = self._is_flood(offset)
        refused.append(offset)
        return is_flood and offset % self._window != 0

    def _is_flood(self, offset: int) -> bool:
        refused, row = self._refused, self._consecutive
        if len(refused) >= row and refused[-row] == offset - row:
            return True
        if len(refused) < self._enough:
            return False
        return sum(each >= offset - self._window for each in refused) >= self._enough
