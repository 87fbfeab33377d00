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
    """Fetching commits nothing, processing does, and a commit that failed is offered again."""
    ledger.fetched("p", 19)
    ledger.advance("p", expected=10, processed=15)

    assert ledger.to_commit("p") == 15
    assert ledger.to_commit("p") == 15

    ledger.committed("p", 15)

    assert ledger.to_commit("p") is None
