"""Ledger of processed offsets, and of fetched batches that may be: the rules that survive kill −9 (design §4).

Faust commits what it thinks was acknowledged. Around a rebalance, batches are fetched and then dropped without
a word, or arrive before the seek to the committed offset, and a later one would carry the commit past them.
Here the offset to commit is what the role says it has processed, and a batch is admitted only where it continues
exactly there. No I/O and no clock: the consumer tells what happened and does what it is told.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

GAP_AFTER_SEEKS = 3
"""A gap that still ends at the same offset after this many seeks is one of the log itself (compaction)."""


class Offset(Protocol):
    """Anything with an offset in its partition."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""
        ...


_Place = TypeVar("_Place", bound=Hashable)
_Record = TypeVar("_Record", bound=Offset)


class Refusal(StrEnum):
    """Why a batch was not admitted; also a metric label."""

    OLD_GENERATION = "old_generation"
    BEFORE_SEEK = "before_seek"
    HOLE = "hole"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Admission(Generic[_Record]):
    """What to do with a fetched batch."""

    records: Sequence[_Record]
    refusal: Refusal | None = None
    seek_to: int | None = None


_NO_HOLE = (-1, 0)


@dataclass(slots=True)
class _PartitionEntry:
    processed: int | None = None
    settled: int | None = None
    reported: int | None = None
    fetched: int = 0
    hole: tuple[int, int] = _NO_HOLE
    """Where the last batch with a hole before it began, and how many seeks found it so."""


class Ledger(Generic[_Place]):
    """Per partition: the next offset to process, unknown while a seek is under way."""

    def __init__(self, gap_after_seeks: int = GAP_AFTER_SEEKS) -> None:
        self._gap_after_seeks = gap_after_seeks
        self._entries: dict[_Place, _PartitionEntry] = {}

    def forget(self) -> None:
        """A seek begins: nothing is known until `know`."""
        self._entries.clear()

    def know(self, place: _Place, next_offset: int) -> None:
        """The seek is done and the state is recovered: processing starts at `next_offset`."""
        self._entries[place] = _PartitionEntry(processed=next_offset, settled=next_offset, fetched=next_offset)

    def places(self) -> Iterable[_Place]:
        """Partitions whose next offset is known."""
        return list(self._entries)

    def processed(self, place: _Place) -> int | None:
        """The next offset to process, None while unknown."""
        entry = self._entries.get(place)
        return None if entry is None else entry.processed

    def fetched(self, place: _Place, last_offset: int) -> None:
        """A batch up to `last_offset` was handed to the stream."""
        entry = self._entries.get(place)
        if entry is not None:
            entry.fetched = max(entry.fetched, last_offset + 1)

    def fetched_to(self, place: _Place) -> int:
        """The next offset to fetch; 0 while unknown."""
        entry = self._entries.get(place)
        return 0 if entry is None else entry.fetched

    def admit(
        self, place: _Place, records: Sequence[_Record], *, fetched_in: int = 0, generation: int = 0
    ) -> Admission[_Record]:
        """Decide on a batch.

        Args:
            place: Its partition.
            records: In order; not none.
            fetched_in: Group generation in which it was fetched …
            generation: … and the present one, for who fetches while partitions move.

        Returns:
            The records to process; none of them with the reason, and the offset to seek to on a hole.
        """
        if fetched_in != generation:
            return Admission((), Refusal.OLD_GENERATION)
        entry = self._entries.get(place)
        if entry is None or entry.processed is None:
            return Admission((), Refusal.BEFORE_SEEK)
        expected, first = entry.processed, records[0].offset
        if first < expected:
            rest = [record for record in records if record.offset >= expected]
            return Admission(rest, None if rest else Refusal.REPEATED)
        if first > expected:
            seeks = entry.hole[1] if entry.hole[0] == first else 0
            if seeks < self._gap_after_seeks:
                entry.hole = first, seeks + 1
                return Admission((), Refusal.HOLE, seek_to=expected)
        return Admission(records)

    def advance(self, place: _Place, *, expected: int | None, processed: int) -> bool:
        """Move on after a batch; False if a seek came between: it comes again, as it does if the process dies now."""
        entry = self._entries.get(place)
        if entry is None or entry.processed != expected:
            return False
        entry.processed = processed
        entry.hole = _NO_HOLE
        return True

    def settle(self) -> None:
        """Outputs and state of all that was processed are acknowledged: it may be committed."""
        for entry in self._entries.values():
            entry.settled = entry.processed

    @property
    def is_settled(self) -> bool:
        """Whether nothing that was processed waits for `settle`."""
        return all(entry.settled == entry.processed for entry in self._entries.values())

    def settled(self, place: _Place) -> int | None:
        """The offset that may be committed, None while unknown."""
        entry = self._entries.get(place)
        return None if entry is None else entry.settled

    def rewind(self, place: _Place) -> None:
        """The consumer seeks back to `processed`: what was fetched beyond it will come again."""
        entry = self._entries.get(place)
        if entry is not None and entry.processed is not None:
            entry.fetched = entry.processed

    def dropped(self) -> list[tuple[_Place, int]]:
        """Partitions fetched beyond what was processed, with the offset to seek to.

        Only meaningful while nothing is in flight: then the batches in between were dropped on the way.
        """
        return [
            (place, entry.processed)
            for place, entry in self._entries.items()
            if entry.processed is not None and entry.fetched > entry.processed
        ]

    def to_commit(self, place: _Place) -> int | None:
        """The offset to commit, None if unknown or committed already."""
        entry = self._entries.get(place)
        return None if entry is None or entry.settled == entry.reported else entry.settled

    def committed(self, place: _Place, offset: int) -> None:
        """The group coordinator took `offset`."""
        entry = self._entries.get(place)
        if entry is not None:
            entry.reported = offset
