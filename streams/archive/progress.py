"""How far each partition is taken, and which records may be taken next. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class Place(NamedTuple):
    """A partition of a topic, by the topic's full name."""

    topic: str
    partition: int


class Move(NamedTuple):
    """A partition's progress through one landing."""

    expected: int | None
    """`next` in the catalog before it, None where the archive has nothing of the partition yet."""
    first: int
    """Where the archive of the partition starts."""
    next: int
    """The next offset to archive after it."""

    @property
    def standing(self) -> int:
        """The next offset to archive before it."""
        return self.first if self.expected is None else self.expected

    @property
    def landed(self) -> Move:
        """The move to start the following landing from."""
        return Move(self.next, self.first, self.next)


class Verdict(Enum):
    """What to do with fetched records."""

    TAKE = auto()
    """They continue where the partition stands."""
    READ_AGAIN = auto()
    """They leave a hole: around a rebalance records are fetched and dropped (hazards 22), so seek back."""
    TAKE_AFTER_HOLE = auto()
    """They leave the same hole again: it is the log's own."""
    DROP = auto()
    """The partition is not owned any more, or they were taken before."""


class Progress:
    """The owned partitions, by what is in the catalog and what is on its way there."""

    def __init__(self) -> None:
        self._moves: dict[Place, Move] = {}
        self._holes: dict[Place, int] = {}

    def __contains__(self, place: object) -> bool:
        return place in self._moves

    def __iter__(self) -> Iterator[Place]:
        return iter(self._moves)

    def __getitem__(self, place: Place) -> Move:
        return self._moves[place]

    def stand(self, place: Place, move: Move) -> None:
        """Own the partition and stand there."""
        self._moves[place] = move

    def advance(self, place: Place, next_offset: int) -> Move:
        """Everything below `next_offset` is taken; returns the move so far."""
        self._moves[place] = self._moves[place]._replace(next=next_offset)
        return self._moves[place]

    def landed(self, place: Place, move: Move) -> None:
        """The move is in the catalog."""
        if place in self._moves:
            self._moves[place] = move.landed

    def clear(self) -> None:
        """Own nothing."""
        self._moves.clear()
        self._holes.clear()

    def judge(self, place: Place, first: int | None) -> Verdict:
        """Say what to do with records.

        Args:
            place: Their partition.
            first: The least offset among those not taken before, None if there is none.
        """
        move = self._moves.get(place)
        if move is None or first is None:
            return Verdict.DROP
        if first == move.next:
            self._holes.pop(place, None)
            return Verdict.TAKE
        if self._holes.get(place) == first:
            del self._holes[place]
            return Verdict.TAKE_AFTER_HOLE
        self._holes[place] = first
        return Verdict.READ_AGAIN
