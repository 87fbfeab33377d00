"""Rows on their way into the archive, with the offsets they move. No I/O, no clock."""

from __future__ import annotations

from streams.lake.columns import Landed
from streams.lake.progress import Move, Place
from streams.lake.schema import TABLE_OF, TABLES, Skipped, risk_points


class Buffer:
    """What the next landing will write."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Landed]] = {}
        self.skipped: list[Skipped] = []
        self.moves: dict[Place, Move] = {}
        """Everything below a move's `next` is in this buffer or in the catalog."""
        self.records = 0
        self.bytes = 0

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


def hole(place: Place, first: int, last: int, reason: str) -> Skipped:
    """Offsets from `first` to `last` that the log does not have."""
    return Skipped(
        topic=place.topic, kafka_partition=place.partition, first_offset=first, last_offset=last, reason=reason
    )
