"""Whatever a consumer does around rebalances, every offset is processed exactly once and in order."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.ledger import GAP_AFTER_SEEKS, Admission, Ledger, Refusal

LOG_END = 30


class Rec(NamedTuple):
    """A record with nothing but its offset."""

    offset: int


class World:
    """A partition, a consumer that drops, repeats and delivers late, and the role behind the ledger."""

    def __init__(self) -> None:
        self.ledger: Ledger[int] = Ledger()
        self.generation = 1
        self.committed = 0
        self.position = 0
        self.queue: list[tuple[int, list[Rec]]] = []
        self.state: list[int] = []
        self.durable = 0
        self.ledger.know(0, 0)

    def fetch(self, count: int) -> None:
        """Queue the next records for the role."""
        batch = [Rec(o) for o in range(self.position, min(LOG_END, self.position + count))]
        if batch:
            self.position = batch[-1].offset + 1
            self.queue.append((self.generation, batch))
            self.ledger.fetched(0, batch[-1].offset)

    def drop(self) -> None:
        """Flow control clears a queue."""
        if self.queue:
            self.queue.pop(0)

    def take(self, *, seek_in_between: bool = False, held_back: bool = False) -> None:
        """The role processes the next batch."""
        if not self.queue:
            return
        fetched_in, records = self.queue.pop(0)
        admission = self.ledger.admit(0, records, fetched_in=fetched_in, generation=self.generation)
        if admission.seek_to is not None:
            self.ledger.rewind(0)
            self.position = admission.seek_to
        if not admission.records:
            return
        expected = self.ledger.processed(0)
        # State is idempotent by offset, as the fold is.
        self.state += [r.offset for r in admission.records if not self.state or r.offset > self.state[-1]]
        if seek_in_between:
            self.rebalance()
        self.ledger.advance(0, expected=expected, processed=admission.records[-1].offset + 1)
        if not held_back:
            self.settle()

    def settle(self) -> None:
        """What was held back becomes durable."""
        self.durable = len(self.state)
        self.ledger.settle()

    def die(self) -> None:
        """What was not durable is gone with the process, and what it had fetched."""
        del self.state[self.durable :]
        self.queue.clear()
        self.rebalance()

    def commit(self) -> None:
        """The committer's turn."""
        offset = self.ledger.to_commit(0)
        if offset is not None:
            self.committed = offset
            self.ledger.committed(0, offset)

    def rebalance(self) -> None:
        """A new generation: fetching may go on from anywhere until the seek is done."""
        self.generation += 1
        self.ledger.forget()
        self.fetch(3)
        self.position = self.committed
        self.ledger.know(0, self.committed)

    def heal(self) -> None:
        """The check of every second."""
        if not self.queue:
            for _, offset in self.ledger.dropped():
                self.ledger.rewind(0)
                self.position = offset


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.integers(1, 7)),
        st.tuples(
            st.sampled_from(
                ["drop", "take", "seek_in_take", "hold_back", "settle", "die", "commit", "rebalance", "heal"]
            ),
            st.just(0),
        ),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_nothing_is_lost_or_committed_before_it_is_processed(actions: list[tuple[str, int]]) -> None:
    """After any sequence, letting the consumer run empty leaves every offset in the state once, in order."""
    world = World()
    for action, count in actions:
        match action:
            case "fetch":
                world.fetch(count)
            case "seek_in_take":
                world.take(seek_in_between=True)
            case "hold_back":
                world.take(held_back=True)
            case _:
                getattr(world, action)()
        assert world.committed <= (world.state[world.durable - 1] + 1 if world.durable else 0)
    for _ in range(4 * LOG_END):
        world.fetch(5)
        world.take()
        world.heal()
    world.commit()

    assert world.state == list(range(LOG_END))
    assert world.committed == LOG_END


def recs(*offsets: int) -> list[Rec]:
    """Records at these offsets."""
    return [Rec(o) for o in offsets]


@pytest.fixture
def ledger() -> Ledger[str]:
    """Partition `p`, next offset 10."""
    ledger: Ledger[str] = Ledger()
    ledger.know("p", 10)
    return ledger


def admit(ledger: Ledger[str], *offsets: int, fetched_in: int = 1, generation: int = 1) -> Admission[Rec]:
    """Offer a batch for partition `p`."""
    return ledger.admit("p", recs(*offsets), fetched_in=fetched_in, generation=generation)


@pytest.mark.parametrize(
    ("offsets", "generation", "expected"),
    [
        ((10, 11), 1, Admission(recs(10, 11))),
        ((8, 9, 10, 11), 1, Admission(recs(10, 11))),
        ((8, 9), 1, Admission([], Refusal.REPEATED)),
        ((10,), 2, Admission((), Refusal.OLD_GENERATION)),
        ((12,), 1, Admission((), Refusal.HOLE, seek_to=10)),
    ],
    ids=["contiguous", "head repeated", "all repeated", "of before a rebalance", "hole"],
)
def test_what_is_admitted(
    ledger: Ledger[str], offsets: tuple[int, ...], generation: int, expected: Admission[Rec]
) -> None:
    """What is new from where processing stands; beyond it the consumer seeks back."""
    assert expected == admit(ledger, *offsets, generation=generation)


def test_gap_of_the_log_is_accepted_after_repeated_seeks(ledger: Ledger[str]) -> None:
    """What still starts there after seeking is a gap of the log itself."""
    for _ in range(GAP_AFTER_SEEKS):
        assert Refusal.HOLE is admit(ledger, 12).refusal

    assert recs(12) == list(admit(ledger, 12).records)


def test_nothing_is_taken_before_the_seek_is_done(ledger: Ledger[str]) -> None:
    """While the position is unknown nothing is processed, and what was processed meanwhile moves nothing."""
    ledger.forget()

    assert Refusal.BEFORE_SEEK is admit(ledger, 10).refusal
    assert not ledger.advance("p", expected=10, processed=12)


def test_commit_is_what_was_processed_and_once(ledger: Ledger[str]) -> None:
    """Fetching commits nothing, processing does once it is settled, and a commit that failed is offered again."""
    ledger.fetched("p", 19)
    ledger.advance("p", expected=10, processed=15)

    assert ledger.to_commit("p") == 10

    ledger.settle()

    assert ledger.to_commit("p") == 15
    assert ledger.to_commit("p") == 15

    ledger.committed("p", 15)

    assert ledger.to_commit("p") is None
