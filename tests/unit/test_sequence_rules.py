"""What each sequence signal counts and what it does not, and the named checks that each passes by being a field."""

from collections.abc import Sequence

import msgspec
import pytest

from models.risk.sequence import SIGNAL_NAMES, Observation, SequenceSignals
from models.state.vectors import TurnMark
from models.text.features import Features
from tests.support.sequence_sessions import FIRST_TURN, after, calm, escalating, restored, risky, state_of, value_after

ASKS = Features(question=True, wh_question=True)
TELLS = Features()


@pytest.mark.parametrize(
    ("risks", "expected"),
    [
        ([0.14], 0.138),  # an ordinary turn is what is supposed beforehand
        ([0.5] * 90, 0.369),  # which is never quite forgotten
        ([0.9], 0.379),  # one turn is held back by two ordinary ones
        ([0.9, 0.1], 0.252),
        ([0.1, 0.9], 0.299),  # the newer one weighs more
        ([0.1] * 300 + [0.9] * 8, 0.629),  # and a long calm past hides nothing
        ([1.0] * 20 + [0.5] * 60, 0.369),  # log-odds are bounded, so certainty fades as well
    ],
)
def test_the_level_is_a_running_mean_that_begins_ordinary(risks: Sequence[float], expected: float) -> None:
    """Of log-odds, with two ordinary turns beforehand."""
    assert value_after("level", risky(risks)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.behaviour("risk-18")
def test_questions_in_a_row_about_one_matter_gather() -> None:
    """The riskier the more; those of ordinary risk, about other matters, or no questions, do not."""
    risky_row = value_after("information_gathering", [Observation(n, 0.6, ASKS, nearness=0.5) for n in range(5)])
    calm_row = value_after("information_gathering", [Observation(n, 0.02, ASKS, nearness=0.5) for n in range(5)])
    marked = value_after("information_gathering", [Observation(n, 0.6, ASKS, TurnMark.GATHERED) for n in range(5)])
    elsewhere = value_after("information_gathering", [Observation(n, 0.6, ASKS, nearness=0.3) for n in range(5)])
    told = value_after("information_gathering", [Observation(n, 0.6, TELLS, nearness=0.5) for n in range(5)])

    assert 0.6 < risky_row == marked
    assert 0.0 == calm_row
    assert (0.0, 0.0) == (elsewhere, told)


def test_a_row_of_questions_outlives_a_word_of_thanks_and_not_a_new_matter() -> None:
    """One other turn leaves most of it, fifteen leave none; the next row counts its own questions."""
    row = [Observation(n, 0.6, ASKS, nearness=0.5) for n in range(5)]
    thanked = after([*row, *risky([0.0], first=5)]).information_gathering
    later = after([*row, *risky([0.0] * 15, first=5), Observation(20, 0.6, ASKS, nearness=0.5)]).information_gathering

    assert thanked.value > 0.5
    assert pytest.approx(0.3 / 1.3) == later.value
    assert (1, 20, "1 question") == (later.questions, later.turn, later.asked)


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (Observation(1, 0.1, TELLS, nearness=0.5, refused=True), 1.0),
        (Observation(1, 0.1, TELLS, TurnMark.REPHRASED, refused=True), 1.0),
        (Observation(1, 0.6, TELLS, refused=True), 0.6),  # another matter, or no vectors: no less risky
        (Observation(1, 0.1, TELLS, nearness=0.1, refused=True), 0.0),  # it was taken
        (Observation(1, 0.6, TELLS, TurnMark.REPHRASED, nearness=0.9), 0.0),  # nothing was refused
    ],
)
def test_a_refusal_that_is_not_taken(then: Observation, expected: float) -> None:
    """After a turn of risk 0.5 that was refused."""
    signals = after([Observation(0, 0.5, TELLS), then])

    assert pytest.approx(expected) == signals.refused_rephrased.count
    assert then.refused is (signals.refusals.value > 0)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (Features(meta_instruction=True), 1 / 2),
        (Features(probing=True), 1 / 2),
        (Features(probing=True, meta_instruction=True), 1 / 2),
        (Features(question=True, wh_question=True, hypothetical=True, imperative=True), 0.0),
    ],
)
def test_instructions(features: Features, expected: float) -> None:
    """A turn counts once."""
    assert value_after("instructions", [Observation(0, 0.0, features)]) == pytest.approx(expected)


@pytest.mark.parametrize("name", SIGNAL_NAMES)
@pytest.mark.parametrize("turns", [1, 2, 5, 40, 400])
def test_calm_sessions_show_next_to_nothing(name: str, turns: int) -> None:
    """However long they are."""
    assert value_after(name, calm(turns)) <= 0.14


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
    assert max(sizes) <= 120


def test_a_state_from_before_the_last_signal_goes_on() -> None:
    """Fields are added at the end: what is missing begins anew, the rest goes on."""
    whole = after(escalating(8))
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(state_of(whole))[:-1])
    loaded = restored(older)

    assert {**whole.values(), SIGNAL_NAMES[-1]: 0.0} == loaded.values()
