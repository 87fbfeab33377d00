"""Progress of the archive in each partition; which records may be taken next says `streams.kafka.ledger`."""

from __future__ import annotations

from typing import NamedTuple


class ArchivedPartition(NamedTuple):
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
    def begin(self) -> int:
        """The next offset to archive before it."""
        return self.first if self.expected is None else self.expected

    @property
    def landed(self) -> Move:
        """The move to start the following landing from."""
        return Move(self.next, self.first, self.next)
