"""What each sequence signal counts and what it does not, and the named checks that each passes by being a field."""

from collections.abc import Sequence

import msgspec
import pytest

from models.risk.sequence import level as trend
from models.risk.sequence.observation import Observation
from models.risk.sequence.signals import SIGNAL_NAMES, SequenceSignals
from models.state.vectors import TurnMark
from models.text.features import Features
from tests.support.sequence_sessions import FIRST_TURN, after, calm, escalating, restored, risky, state_of, value_after

ASKS = Features(question=True, wh_question=True)
TELLS = Features()

TOLERANCES = {"level": 5e-3, "trend": 0.02, "jump": 1e-2}


@pytest.mark.parametrize(
    ("name", "risks", "expected"),
    [
        # The mean is that of log-odds, and follows within a few turns.
        ("level", [0.5] * 9, 0.5),
        ("level", [0.9], 0.9),
        ("level", [0.9, 0.1], 0.437),  # the newer one weighs more
        ("level", [0.9, 0.9, 0.9, 0.1], 0.666),
        ("level", [0.1] * 30 + [0.9] * 3, 0.5),  # half of the weight is in the last three
        ("level", [1.0] * 20 + [0.5] * 30, 0.502),  # log-odds are bounded, so certainty fades as well
        # What exceeds the present risk halves in eight turns.
        ("peak", [0.3, 0.8], 0.8),
        ("peak", [0.8, *[0.0] * 8], 0.4),
        ("peak", [0.8, *[0.2] * 8], 0.5),
        ("peak", [0.8, 0.2, 0.9], 0.9),
        # Sum of the log-odds over those of 0.3, bounded above, below and per turn.
        ("cusum", [0.29] * 100, 0.0),
        ("cusum", [0.77] * 3, 1.0),
        ("cusum", [0.99], 2.5 / 6),
        ("cusum", [0.0] * 50 + [0.99, 0.99], 5 / 6),  # a calm past is no credit
        ("cusum", [0.99, 0.99, 0.0], 4 / 6),  # and small talk takes little back
        ("cusum", [0.99] * 500 + [0.0] * 6, 0.0),  # nor is a risky past for ever
        # A certain rise of 0.1 per turn is 1.
        ("trend", [0.1, 0.9], 0.0),  # two points are no trend
        ("trend", [0.1 + 0.05 * n for n in range(10)], 0.5),
        ("trend", [0.9 - 0.05 * n for n in range(10)], 0.0),
        ("trend", [0.1, 0.3] * 8, 0.0),  # less than its error
        ("trend", [0.0, 0.25, 0.5, 0.75, 1.0], 1.0),
        # Over the mean of the turns before it, halved in eight turns.
        ("jump", [0.8], 0.0),  # nothing before it
        ("jump", [0.8] * 20, 0.0),
        ("jump", [0.1] * 10 + [0.8], 0.7),
        ("jump", [0.1] * 10 + [0.8] + [0.1] * 8, 0.35),
        ("jump", [0.1] * 10 + [0.8] + [0.1] * 30 + [0.4], 0.3),  # a later, smaller one counts when the first has faded
        ("jump", [0.9, 0.1], 0.0),
        # A share of the whole session from 0.5, and the present run from 0.35 without a break.
        ("persistence", [0.5], 1 / 3),
        ("persistence", [0.4] * 6, 0.0),
        ("persistence", [0.9] * 6 + [0.1], 6 / 9),
        ("persistence", [0.2, 0.8, 0.8], 2 / 5),
        ("run", [0.5], 1 / 3),
        ("run", [0.4] * 6, 6 / 8),
        ("run", [0.9] * 6 + [0.1], 0.0),
        ("run", [0.2, 0.8, 0.8], 2 / 4),
    ],
)
def test_what_risks_alone_show(name: str, risks: Sequence[float], expected: float) -> None:
    """Each signal of the turns' risks, at what it counts and at what it does not."""
    assert pytest.approx(expected, abs=TOLERANCES.get(name, 1e-9)) == value_after(name, risky(risks))


def test_one_outlier_is_no_pattern() -> None:
    """A single turn of 0.95 in a calm session leaves the second peak where it was; a second one does not."""
    once = [0.05] * 5 + [0.95] + [0.05] * 5

    assert value_after("second_peak", risky(once)) <= 0.05
    assert value_after("second_peak", risky([*once, 0.9])) > 0.55


def test_page_hinkley_sees_a_change_and_not_a_level() -> None:
    """Risky from the start is no change; risky after a calm start is one."""
    assert value_after("page_hinkley", risky([0.8] * 20)) == 0.0
    assert value_after("page_hinkley", risky([0.1] * 10 + [0.7] * 2)) > 0.5


def test_marks_count_for_their_own_signal() -> None:
    """And for no other; harmless repetition counts a tenth."""
    expected = {
        TurnMark.RETURNED: {"topic_cycling": 1 / 2},
        TurnMark.REPHRASED: {"rephrased_probing": 1 / 2},
        TurnMark.REPEATED: {"rephrased_probing": 0.1 / 1.1},
        TurnMark.RISKY | TurnMark.PROBING | TurnMark.REFUSED: {},
    }
    for marks, values in expected.items():
        actual = after([Observation(0, 0.0, TELLS, marks)]).values()

        assert pytest.approx(values) == {name: actual[name] for name in actual if actual[name] and name != "level"}


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
    assert (1, 20) == (later.questions, later.turn)


def test_one_matter_is_nearness_kept_up() -> None:
    """One near pair counts half; turns without vectors say nothing, opposites are not near."""
    near = [Observation(n, 0.0, TELLS, nearness=0.8 if n else None) for n in range(12)]

    assert pytest.approx(0.4) == value_after("one_matter", near[:2])
    assert value_after("one_matter", near) > 0.65
    assert value_after("one_matter", near) == value_after("one_matter", [*near, *risky([0.0] * 9, first=12)])
    assert value_after("one_matter", [Observation(0, 0.0, TELLS, nearness=-0.9)]) == 0.0


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


def test_drift_counts_from_the_set_up() -> None:
    """The same rise before it, or without one, is none."""
    story, rise = Features(hypothetical=True), [0.1, 0.3, 0.7]
    before = [*risky(rise), Observation(3, 0.7, story)]
    afterwards = [Observation(0, 0.1, story), *risky(rise, first=1)]

    assert (0.0, 0.0) == (value_after("setup_drift", before), value_after("setup_drift", risky(rise)))
    assert 0.45 < value_after("setup_drift", afterwards) < 0.6
    assert pytest.approx(value_after("setup_drift", afterwards) / 2) == value_after(
        "setup_drift", [*afterwards, *risky([0.1] * 8, first=4)]
    )


@pytest.mark.parametrize(
    ("features", "instructions", "demands"),
    [
        (Features(meta_instruction=True), 1 / 2, 0.0),
        (Features(probing=True), 1 / 2, 0.0),
        (Features(probing=True, meta_instruction=True), 1 / 2, 0.0),
        (Features(imperative=True), 0.0, 1 / 3),
        (Features(question=True, wh_question=True, hypothetical=True), 0.0, 0.0),
    ],
)
def test_instructions_and_demands(features: Features, instructions: float, demands: float) -> None:
    """A turn counts once for each."""
    actual = after([Observation(0, 0.0, features)]).values()

    assert pytest.approx((instructions, demands)) == (actual["instructions"], actual["demands"])


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
