"""Deadlines of many sessions in a heap: nearest first, one entry each."""

from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush, heapreplace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SPARE_ENTRIES = 64


class Deadlines:
    """Names with one deadline each, in the order of (deadline, name).

    A later deadline, as after every turn of a session, does not move the heap entry; it is corrected when it comes up.
    So the order depends only on the deadlines and not on their history, and a recovered partition continues exactly
    like an uninterrupted one.

    Deadlines are stored as whole microseconds, which are smaller than a `datetime` and as exact.
    """

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def __len__(self) -> int:
        """Number of names."""
        return len(self._due)

    def __contains__(self, name: str) -> bool:
        """Whether a name has a deadline."""
        return name in self._due

    def set(self, name: str, deadline: datetime) -> bool:
        """Set the deadline of a name; returns whether it had one."""
        at = (deadline - _EPOCH) // _MICROSECOND
        known = self._due.get(name)
        self._due[name] = at
        if known is None or at < known:
            heappush(self._heap, (at, name))
            self._tidy()
        return known is not None

    def drop(self, name: str) -> bool:
        """Remove the deadline of a name; returns whether it had one."""
        if self._due.pop(name, None) is None:
            return False
        self._tidy()
        return True

    def may_be_due(self, at: datetime) -> bool:
        """Whether a deadline may be at or before this time: fast, without false negatives."""
        # An entry that was left where it is lies before its true deadline: the heap's top is before all of them.
        return bool(self._heap) and self._heap[0][0] <= (at - _EPOCH) // _MICROSECOND

    def first(self) -> tuple[datetime, str] | None:
        """The nearest deadline and its name, among equal ones the lowest name; None without any."""
        heap, due = self._heap, self._due
        while heap:
            at, name = heap[0]
            true = due.get(name)
            if true == at:
                return _EPOCH + timedelta(microseconds=at), name
            if true is None or true < at:
                heappop(heap)
            else:
                heapreplace(heap, (true, name))
        return None

    def _tidy(self) -> None:
        """Rebuild the heap if removed names have more entries than current ones."""
        if len(self._heap) > 2 * len(self._due) + _SPARE_ENTRIES:
            self._heap = [(at, name) for name, at in self._due.items()]
            heapify(self._heap)
