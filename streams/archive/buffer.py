"""Rows on their way into the archive, with the offsets they move. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokafka import TopicPartition
from msgspec.structs import replace

from streams.archive.rows import Landed, Rows, risk_points
from streams.archive.schema import TABLE_OF, TABLES, Skipped

UNLANDABLE = "unlandable"
"""Reason of a skipped record that could be decoded and not landed."""


class Move(NamedTuple):
    """A partition's progress through one landing."""

    expected: int | None
    """`next` in the catalog before it, None where the archive has nothing of the partition yet."""
    first: int
    """Where the archive of the partition starts."""
    next: int
    """The next offset to archive after it."""

    @property
    def begin(self) -> int:
        """The next offset to archive before it."""
        return self.first if self.expected is None else self.expected

    @property
    def landed(self) -> Move:
        """The move to start the following landing from."""
        return Move(self.next, self.first, self.next)


_PROFILES, _RISK_POINTS = TABLES["profiles"].name, TABLES["risk_points"].name


class LandingBuffer:
    """What the next landing will write."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {}
        self.skipped: list[Skipped] = []
        self.moves: dict[TopicPartition, Move] = {}
        """Everything below a move's `next` is in this buffer or in the catalog."""
        self.records = 0
        self.bytes = 0

    def add(self, row: Landed) -> None:
        """Take a row, and the rows it contains."""
        rows = Rows()
        rows.append(row)
        self.take({TABLE_OF[type(row.event)].name: rows})

    def take(self, landed: Mapping[str, Rows]) -> None:
        """Take rows by the name of their table, and the rows they contain."""
        for name, rows in landed.items():
            self._table(name).join(rows)
            self.records += len(rows)
            self.bytes += sum(rows.sizes)
            if name == _PROFILES and (points := risk_points(rows)):
                self._table(_RISK_POINTS).join(points)

    def skip(self, skipped: Skipped) -> None:
        """Take offsets that have no row."""
        self.skipped.append(skipped)
        self.records += 1
        self.bytes += len(skipped.value or b"")

    def skip_all(self, skipped: Iterable[Skipped]) -> None:
        """Take many."""
        for each in skipped:
            self.skip(each)

    def _table(self, name: str) -> Rows:
        return self.rows.setdefault(name, Rows())


def hole(place: TopicPartition, first: int, last: int, reason: str) -> Skipped:
    """Offsets from `first` to `last` that the log does not have."""
    return Skipped(
        topic=place.topic, kafka_partition=place.partition, first_offset=first, last_offset=last, reason=reason
    )


def unlandable(place: TopicPartition, offset: int, error: Exception) -> Skipped:
    """An event whose values have no form in the archive's columns."""
    found = hole(place, offset, offset, UNLANDABLE)
    return replace(found, detail=f"{type(error).__name__}: no column can hold what it says")
