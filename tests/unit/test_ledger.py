"""The ledger decides which batches are processed and what is committed (design §4)."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streams.kafka.ledger import GAP_AFTER_SEEKS, Admission, Ledger, Refusal


class Rec(NamedTuple):
    """A record with nothing but its offset."""

    offset: int


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


def test_contiguous_batch_is_admitted(ledger: Ledger[str]) -> None:
    """A batch that begins where processing stands is taken whole."""
    assert Admission(recs(10, 11)) == admit(ledger, 10, 11)


def test_batch_of_an_older_generation_is_dropped(ledger: Ledger[str]) -> None:
    """What was fetched before a rebalance comes again after the seek that follows."""
    assert Refusal.OLD_GENERATION is admit(ledger, 10, fetched_in=1, generation=2).refusal


def test_batch_before_the_seek_is_done_is_dropped(ledger: Ledger[str]) -> None:
    """While the position is unknown nothing is processed."""
    ledger.forget()

    assert Refusal.BEFORE_SEEK is admit(ledger, 10).refusal


def test_repeated_head_is_cut(ledger: Ledger[str]) -> None:
    """Of a batch that reaches back, only the new records are processed."""
    assert recs(10, 11) == list(admit(ledger, 8, 9, 10, 11).records)


def test_wholly_repeated_batch_is_refused(ledger: Ledger[str]) -> None:
    """A batch that lies below processes nothing."""
    assert Refusal.REPEATED is admit(ledger, 8, 9).refusal


def test_hole_seeks_back(ledger: Ledger[str]) -> None:
    """A batch that starts beyond the next offset is not processed; the consumer seeks."""
    assert Admission((), Refusal.HOLE, seek_to=10) == admit(ledger, 12)


def test_gap_of_the_log_is_accepted_after_repeated_seeks(ledger: Ledger[str]) -> None:
    """What still starts there after seeking is a gap of the log itself."""
    for _ in range(GAP_AFTER_SEEKS):
        assert Refusal.HOLE is admit(ledger, 12).refusal

    assert recs(12) == list(admit(ledger, 12).records)


def test_only_what_is_missing_twice_in_a_row_is_missing() -> None:
    """Where one seek is believed, what came in between takes the belief back."""
    ledger: Ledger[str] = Ledger(gap_after_seeks=1)
    ledger.know("p", 10)

    assert [[], [], [], [12]] == [[each.offset for each in admit(ledger, first).records] for first in (12, 11, 12, 12)]


def test_seek_in_between_wins_over_advance(ledger: Ledger[str]) -> None:
    """A batch that ends after a seek began moves nothing."""
    ledger.forget()

    assert not ledger.advance("p", expected=10, processed=12)

    ledger.know("p", 5)

    assert not ledger.advance("p", expected=10, processed=12)
    assert ledger.processed("p") == 5


def test_commit_is_what_was_processed_and_once(ledger: Ledger[str]) -> None:
    """Fetching commits nothing, processing does, and a commit that failed is offered again."""
    ledger.fetched("p", 19)
    ledger.advance("p", expected=10, processed=15)

    assert ledger.to_commit("p") == 15
    assert ledger.to_commit("p") == 15

    ledger.committed("p", 15)

    assert ledger.to_commit("p") is None


def test_what_was_fetched_stays_fetched(ledger: Ledger[str]) -> None:
    """A batch that comes again takes nothing back: what it does not reach counts as unread, or a stall is not seen."""
    ledger.fetched("p", 14)
    ledger.fetched("p", 11)

    assert (ledger.fetched_to("p"), ledger.fetched_to("unknown")) == (15, 0)


def test_batch_dropped_at_the_end_of_the_log_is_found(ledger: Ledger[str]) -> None:
    """Fetched beyond processed while idle: seek back, once."""
    ledger.fetched("p", 14)

    assert ledger.dropped() == [("p", 10)]

    ledger.rewind("p")

    assert ledger.dropped() == []
