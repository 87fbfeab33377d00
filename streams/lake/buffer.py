"""Rows on their way into the archive, with the offsets they move. No I/O, no clock."""

from __future__ import annotations

from typing import NamedTuple

from streams.lake.schema import TABLE_OF, TABLES, Landed, Skipped, risk_points


class Place(NamedTuple):
    """A partition of a topic, by the topic's full name."""

    topic: str
    partition: int


class Move(NamedTuple):
    """A partition's progress through one landing."""

    expected: int | None
    """`next` in the catalog before it, None where the archive has nothing of the partition yet."""
    first: int
    next: int
    """The next offset to archive after it."""


class Buffer:
    """What the next landing will write."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Landed]] = {}
        self.skipped: list[Skipped] = []
        self.moves: dict[Place, Move] = {}
        self.records = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self.moves)

    def add(self, row: Landed) -> None:
        """Take a row, and the rows it contains."""
        self.rows.setdefault(TABLE_OF[type(row.event)].name, []).append(row)
        if points := risk_points(row):
            self.rows.setdefault(TABLES["risk_points"].name, []).extend(points)
        self.records += 1
        self.bytes += row.size_bytes

    def skip(self, skipped: Skipped) -> None:
        """Take offsets that have no row."""
        self.skipped.append(skipped)
        self.records += 1
        self.bytes += len(skipped.value or b"")

    def advance(self, place: Place, *, start: Move, next_offset: int) -> Move:
        """Note that everything below `next_offset` is in this buffer or in the catalog; returns the move.

        Args:
            place: The partition.
            start: Its move so far, or where it starts from.
            next_offset: One after the last offset taken.
        """
        self.moves[place] = start._replace(next=next_offset)
        return self.moves[place]
