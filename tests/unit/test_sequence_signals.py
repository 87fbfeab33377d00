"""The named checks that every sequence signal passes by being a field; `test_sequence_rules` says what each is for."""

from __future__ import annotations

import msgspec
import pytest

from models.risk.sequence import level as trend
from models.risk.sequence.signals import SIGNAL_NAMES, SequenceSignals
from tests.support.sequence_sessions import FIRST_TURN, after, calm, escalating, restored, risky, state_of, value_after


@pytest.mark.parametrize("name", SIGNAL_NAMES)
@pytest.mark.parametrize("turns", [1, 2, 5, 40, 400])
def test_calm_sessions_show_next_to_nothing(name: str, turns: int) -> None:
    """However long they are."""
    assert value_after(name, calm(turns)) <= 0.1


@pytest.mark.parametrize("name", SIGNAL_NAMES)
def test_a_session_that_has_it_all_moves_every_signal(name: str) -> None:
    """Else the signal is dead; and each says why, with a turn of that session."""
    signals = after(escalating(8))

    assert signals.values()[name] > 0.2
    assert any(str(FIRST_TURN + n) in signals.phrases()[name] for n in range(8))


def test_the_state_does_not_grow() -> None:
    """5,000 turns in which everything happens: as large as after 300, when the counters have their width."""
    signals = SequenceSignals()
    sizes = []
    for observation in escalating(5_000):
        signals.observe(observation)
        sizes.append(len(state_of(signals)))

    assert max(sizes) == sizes[299]
    assert max(sizes) <= 400


def test_no_turn_costs_more_than_another() -> None:
    """What depends on the number of turns is worked out once for each number up to 400, and never after that."""
    signals = after(risky([0.5] * 400))
    signals.values()
    before = trend._design.cache_info().misses
    for observation in risky([0.5] * 400, first=400):
        signals.observe(observation)
        signals.values()

    assert before == trend._design.cache_info().misses


def test_a_short_session_is_kept_in_300_bytes() -> None:
    """It is written to the changelog with every user turn."""
    turns = [msgspec.structs.replace(observation, turn=n) for n, observation in enumerate(escalating(60))]

    assert len(state_of(after(turns))) <= 300


def test_a_state_from_before_the_last_signal_goes_on() -> None:
    """Fields are added at the end: what is missing begins anew, the rest goes on."""
    whole = after(escalating(8))
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(state_of(whole))[:-1])
    loaded = restored(older)

    assert {**whole.values(), SIGNAL_NAMES[-1]: 0.0} == loaded.values()
