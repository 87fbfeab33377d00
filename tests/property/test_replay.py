"""Recovery by any cut of the changelog, among any writers, restarts and compactions, gives the state of the source log.

The source is a list of events, each of which sets, rewrites or deletes some parts by a deterministic rule. Workers hold
a table each and fold the source on from it; those that were replaced do not know it and write until they are fenced.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.producer import Record
from streams.state.changelog import ChangelogReplay, key_of, keyed, name_of, records_of
from streams.state.memory import MemoryTable

WORKERS = 3
PARTS = ("head", "b0", "b1", "v0")
Event = tuple[tuple[int, int, bool], ...]
"""Parts that one source record touches: entity, part, and whether it is deleted."""


class Stored(NamedTuple):
    """A record at its place in the changelog."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    topic: str = "changelog"
    partition: int = 0


class Changelog:
    """A partition of a compacted topic."""

    def __init__(self) -> None:
        self.records: list[Stored] = []
        self.end = 0
        self.repaired = 0
        """Up to here every stale write has been overruled again: compaction may not go further."""

    def append(self, records: Sequence[Record]) -> int:
        """Append; returns the offset of the first."""
        first = self.end
        self.records += [Stored(first + n, *record[:3]) for n, record in enumerate(records)]
        self.end += len(records)
        return first

    def compact(self, below: int) -> None:
        """Keep the last record of each key among those below an offset, as a broker does."""
        below = min(below, self.repaired)
        last = {record.key: record.offset for record in self.records if record.offset < below}
        self.records = [r for r in self.records if r.offset >= below or last[r.key] == r.offset]

    def read_into(self, table: MemoryTable, cuts: Sequence[int]) -> set[bytes]:
        """Bring a table from where it stands to the end, in polls of any size; returns the overruled keys."""
        replay = ChangelogReplay(table)
        rest = [record for record in self.records if record.offset >= table.progress.applied]
        step = 0
        while rest:
            size = cuts[step % len(cuts)]
            replay.apply(rest[:size], now_ms=0)
            rest, step = rest[size:], step + 1
        return replay.overruled


def folded(events: Sequence[Event], first: int) -> dict[str, dict[str, bytes | None]]:
    """What events touch, with the value that the last of them gives; independent of the state before."""
    changes: dict[str, dict[str, bytes | None]] = {}
    for offset, event in enumerate(events, first):
        for entity, part, deleted in event:
            value = None if deleted else f"{offset}".encode()
            changes.setdefault("" if entity == 0 else f"s{entity}", {})[PARTS[part]] = value
    return changes


def truth(source: Sequence[Event], offset: int) -> dict[str, dict[str, bytes]]:
    """State of the source up to an offset, without any changelog."""
    table = MemoryTable()
    for entity, parts in folded(source[: offset + 1], 0).items():
        table.put(entity, parts)
    return table.entities


class Worker:
    """Folds the source into its table, and the changes into the changelog, as `StateTable` does."""

    def __init__(self, log: Changelog, source: Sequence[Event]) -> None:
        self.log, self.source, self.table = log, source, MemoryTable()

    def write(self, count: int) -> None:
        """Fold the next events as one batch. Fenced, it leaves its table as it was."""
        first = self.table.progress.offset + 1
        events = self.source[first : first + count]
        parts = keyed(folded(events, first))
        if not parts:
            return
        offset = first + len(events) - 1
        place = self.log.append(records_of(parts, offset))
        if place == self.table.progress.applied:
            self.table.apply(parts, offset=offset, applied=self.log.end, tail=None, now_ms=0)

    def recover(self, cuts: Sequence[int]) -> None:
        """Own the partition: read on from where the table stands, and mend what stale writes overruled."""
        while overruled := self.log.read_into(self.table, cuts):
            parts = {}
            for key in overruled:
                entity, part = name_of(key)
                parts[key] = self.table.entities.get(entity, {}).get(part)
            self.log.append(records_of(parts, self.table.progress.offset))
        self.log.repaired = self.log.end


EVENT = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=4).map(tuple)
ACTION = st.one_of(
    st.tuples(st.just("write"), st.integers(0, WORKERS - 1), st.integers(1, 6)),
    st.tuples(st.just("write"), st.integers(0, WORKERS - 1), st.integers(1, 6)),
    st.tuples(st.just("recover"), st.integers(0, WORKERS - 1), st.just(0)),
    st.tuples(st.just("restart"), st.integers(0, WORKERS - 1), st.just(0)),
    st.tuples(st.just("compact"), st.just(0), st.integers(0, 100)),
)


@given(
    st.lists(EVENT, min_size=1, max_size=40),
    st.lists(ACTION, max_size=60),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
)
def test_any_recovery_gives_the_state_of_the_source(
    source: list[Event], actions: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    """From where any table stands and from nothing, before and after every action: the source's state at its offset."""
    log = Changelog()
    workers = [Worker(log, source) for _ in range(WORKERS)]
    for action, number, size in actions:
        match action:
            case "write":
                workers[number].write(size)
            case "recover":
                workers[number].recover(cuts)
            case "restart":
                workers[number] = Worker(log, source)
                workers[number].recover(cuts)
            case _:
                log.compact(size * log.end // 100)
        fresh = MemoryTable()
        log.read_into(fresh, cuts)
        assert fresh.entities == truth(source, fresh.progress.offset)
        for worker in workers:
            assert worker.table.entities == truth(source, worker.table.progress.offset)
            onward = MemoryTable()
            for entity, parts in worker.table.entities.items():
                onward.put(entity, dict(parts))
            onward.progress = worker.table.progress
            log.read_into(onward, cuts)
            assert onward.progress.offset == fresh.progress.offset
            assert onward.entities == fresh.entities


@given(st.text(min_size=0, max_size=8), st.text(alphabet="\x1e\x1f01ab", min_size=1, max_size=6))
def test_keys_name_any_entity_and_part(entity: str, part: str) -> None:
    """Ids are anybody's text, the separator included."""
    assert name_of(key_of(entity, part)) == (entity, part)
