"""A second reader's signal in a session's judgement: it raises, it is explained, and without it nothing changes."""

import math
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from models.errors import ConfigurationError
from models.risk.combination import Grounds, judge
from models.risk.escalation import PART, KeptJudgement
from models.risk.reading import BOUND, READER, Readings
from models.risk.turn_model import FORMAT, TurnModel, name_of
from streams.inference.reader_file import ReaderFile, read_reader, write_reader
from streams.inference.trained_scorer import TrainedScorer, combined, model_at
from streams.inference.wordllama import WordLlamaEmbedder
from tests.support.escalation_driver import MODEL, judged_by, judgement, units
from tests.support.session_driver import NOON, Session, said

READING = structs.replace(MODEL, name="made-up and read", weights={**MODEL.weights, READER: 16_740})
POLICY = judged_by(READING)
FILE = ReaderFile(version="r-1", model=b"m", changes=[], head=b"", offset=0.5, weight=16_740)


def after(*readings: float) -> Readings:
    """What is kept after messages with these readings."""
    kept = Readings()
    for each in readings:
        kept.observe(each, continues=False)
    return kept


def read(*readings: float | None, seconds: float = 60) -> Session:
    """A session whose user turns have these readings and one risk."""
    session = Session(POLICY)
    for turn, reading in enumerate(readings):
        session.put(said(turn, timestamp=NOON + turn * timedelta(seconds=seconds)), risk=0.3, reading=reading)
    return session


def stored(session: Session) -> KeptJudgement:
    """The part as it is in the state."""
    session.store()
    return msgspec.msgpack.decode(session.stored[PART], type=KeptJudgement)


@given(st.lists(st.floats(width=32), max_size=30))
def test_the_value_is_bounded_and_never_falls(readings: list[float]) -> None:
    """Whatever a reader says, also what is no number; and the same again."""
    values = [after(*readings[:n]).value for n in range(len(readings) + 1)]

    assert values[0] == 0.0
    assert all(0.0 <= value <= 1.0 for value in values)
    assert all(before <= then for before, then in pairwise(values))
    assert values[-1] == after(*readings).value


def test_the_value_is_the_highest_running_mean() -> None:
    """Two turns of -1 stand before: one turn says little, calm ones say nothing, and later calm takes nothing back."""
    assert [after(-1.1).value, after(-4.0, -4.0).value] == [0.0, 0.0]
    assert after(4.0).value == pytest.approx((2 / 3 + 1.03) / 3.46)
    assert after(4.0, -8.0, -8.0).value == after(4.0).value < after(4.0, 4.0).value


def test_pieces_of_a_message_are_read_as_the_worst_of_them() -> None:
    """As their risk is; and a session that is stored between them goes on alike."""
    pieces = read(3.0, 1.0, 2.0, seconds=1)

    assert stored(pieces).readings == after(3.0)
    assert stored(read(3.0, 1.0)).readings == after(3.0, 1.0)


@given(st.floats(0, 1), st.booleans(), st.one_of(st.none(), st.floats(0, 1)))
def test_it_raises_only(value: float, risky: bool, sent: float | None) -> None:
    """Beside any other grounds, also beyond the bound of the course; a weight below 0 counts nothing."""
    plain = Grounds({"level": 0.4, "refusals": 0.9}, sent, risky=risky)
    with_it = structs.replace(plain, reader=value)
    negative = structs.replace(READING, weights={**MODEL.weights, READER: -9_000})

    assert judge(with_it, READING, POLICY.escalation).log_odds >= judge(plain, READING, POLICY.escalation).log_odds
    assert judge(with_it, negative, POLICY.escalation).log_odds == judge(plain, negative, POLICY.escalation).log_odds


def test_one_that_is_held_stays_within_the_bound_until_a_turn_is_risky() -> None:
    """With the signals of the course, cut alike; with a risky turn around it counts in full, as one not held."""
    free = structs.replace(READING, weights={**MODEL.weights, READER: 40_000})
    held, escalation = structs.replace(free, holds_reader=True), POLICY.escalation
    calm, risky = (Grounds({"refusals": 0.9}, risky=risky, reader=1.0) for risky in (False, True))
    within, beyond = judge(calm, held, escalation), judge(calm, free, escalation)

    assert within.probability == pytest.approx(escalation.alone_bound, abs=1e-3)
    assert beyond.probability > escalation.alone_bound
    assert 0 < within.parts["refusals"] < within.parts[READER] < beyond.parts[READER]
    assert judge(risky, held, escalation) == judge(risky, free, escalation)


def test_an_alert_explains_it() -> None:
    """By one phrase and what would be without it; contributions and shares of turns add up exactly."""
    told = judgement(read(3.0, 4.0, 5.0))
    (mine,) = [each for each in told.contributions if each.signal == READER]

    assert mine.why == f"a second reader finds harmful intent in the user's turns at {mine.value:.2f}"
    assert (mine.log_odds > 0, mine.probability_without < told.probability) == (True, True)
    base = units(told.base_log_odds)
    assert base + sum(units(each.log_odds) for each in told.contributions) == units(told.log_odds)
    assert base + units(told.earlier_log_odds) + sum(units(each.log_odds) for each in told.turns) == units(
        told.log_odds
    )


def test_without_readings_nothing_changes() -> None:
    """No byte of the stored state; one of an earlier release loads, and reads on from there."""
    session = read(None, None)
    session.store()
    fields = msgspec.msgpack.decode(session.stored[PART])

    assert len(fields) == len(KeptJudgement.__struct_fields__) - 1
    assert all(each.signal != READER for each in judgement(session).contributions)
    session.state = session.load()
    session.put(said(2, timestamp=NOON + timedelta(minutes=3)), risk=0.3, reading=4.0)
    assert stored(session).readings == after(4.0)


def test_a_reader_that_is_switched_off_counts_no_more() -> None:
    """What is stored of it stays, and adds nothing where no weight does."""
    session = read(5.0, 5.0)
    assert stored(session).readings == after(5.0, 5.0)
    session.policy = judged_by()
    session.state = session.load()

    assert [each.signal for each in judgement(session).contributions] == ["level"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        write_reader(FILE)[:-1],
        write_reader(FILE)[:-1] + b"\x01",
        msgspec.msgpack.encode(["turntide-reader", FORMAT + 1, b"", msgspec.msgpack.encode(FILE)]),
    ],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    """Of another release too; it says how to do without."""
    with pytest.raises(ConfigurationError, match=r'set scorer\.reader to "off"'):
        read_reader(data)


def test_a_file_reads_as_it_was_written() -> None:
    """Its name has the digest."""
    data = write_reader(FILE)

    assert (read_reader(data), name_of(FILE.version, data)[:4]) == (FILE, "r-1@")


def test_the_scorer_names_its_reader_and_weighs_it() -> None:
    """So replays ask for both; without one it is the model as it was."""
    model, data = model_at(None), write_reader(FILE)
    whole = combined(model, data)

    assert combined(model, None) == model.combination
    assert whole.name == f"{model.name}+{name_of(FILE.version, data)}"
    assert whole.weights == {**model.combination.weights, READER: 16_740}
    assert TrainedScorer(model, WordLlamaEmbedder()).reader is None
    assert isinstance(model, TurnModel)
    assert after(math.inf).last == BOUND
