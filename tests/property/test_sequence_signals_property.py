"""Promises of the turn model for any text, and of every sequence signal for any conversation."""

from functools import cache
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from models.risk.sequence import SIGNAL_NAMES, Observation, SequenceSignals
from models.risk.turn_model import DIMS, WORD_BITS, TurnModel, place_of, word_hashes
from models.text.features import Features
from models.text.words import fold_text, words_of
from streams.inference.trained_scorer import model_at
from streams.ports import Vectors
from tests.support.sequence_sessions import after, restored, state_of

ROUNDING = 1e-9
OBSERVED = st.builds(
    Observation,
    turn=st.integers(0, 2**40),
    risk=st.floats(0, 1),
    features=st.builds(Features, *[st.booleans()] * len(Features.__struct_fields__)),
    marks=st.integers(0, 127),
    nearness=st.none() | st.floats(-1, 1),
    refused=st.booleans(),
)
SESSIONS = st.lists(OBSERVED, max_size=40)
MONOTONE = [name for name in SIGNAL_NAMES if name != "refused_rephrased"]
"""A riskier turn that was refused makes the next one less bold; more risk never lowers any other signal."""


@given(SESSIONS)
def test_every_value_is_bounded_after_every_turn(seen: list[Observation]) -> None:
    """0-1, and 0 before the first turn."""
    signals = SequenceSignals()

    assert dict.fromkeys(SIGNAL_NAMES, 0.0) == signals.values()
    for observation in seen:
        signals.observe(observation)

        assert all(0.0 <= value <= 1.0 for value in signals.values().values())


@given(SESSIONS, st.integers(0, 40))
def test_the_state_goes_on_where_it_was_stored(seen: list[Observation], cut: int) -> None:
    """Stored and loaded anywhere, or not at all: the same bytes, values and phrases in the end."""
    resumed = restored(state_of(after(seen[:cut])))
    for observation in seen[cut:]:
        resumed.observe(observation)
    whole = after(seen)

    assert state_of(whole) == state_of(resumed)
    assert (whole.values(), whole.phrases()) == (resumed.values(), resumed.phrases())


@pytest.mark.parametrize("name", MONOTONE)
@given(seen=SESSIONS.filter(bool), data=st.data())
def test_more_risk_never_lowers_what_claims_so(name: str, seen: list[Observation], data: st.DataObject) -> None:
    """Whichever turn is riskier, now and after every later turn."""
    place = data.draw(st.integers(0, len(seen) - 1))
    riskier = list(seen)
    riskier[place] = replace(seen[place], risk=data.draw(st.floats(seen[place].risk, 1)))
    less, more = SequenceSignals(), SequenceSignals()
    for before, instead in zip(seen, riskier, strict=True):
        less.observe(before)
        more.observe(instead)

        assert less.values()[name] <= more.values()[name] + ROUNDING


@given(SESSIONS.filter(bool))
def test_a_value_that_matters_names_a_number_and_a_turn(seen: list[Observation]) -> None:
    """In one short line, and the turn is one that was observed."""
    marked = [replace(observation, turn=10**12 + n) for n, observation in enumerate(seen)]
    signals = after(marked)
    phrases = signals.phrases()
    for name, value in signals.values().items():
        if value > 0.2:
            assert any(str(observation.turn) in phrases[name] for observation in marked), name
            assert 0 < len(phrases[name]) <= 120
            assert "\n" not in phrases[name]


WORDS = ("how", "to", "make", "a", "bomb", "kill", "the", "process", "don't", "novel", "ignore", "your", "rules")
anything = st.text(st.characters(), max_size=60)  # lone surrogates as well
sentences = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
texts = st.lists(anything | sentences, max_size=8)


@cache
def shipped() -> TurnModel:
    """The shipped weights."""
    return model_at(None)


def vectors_of(count: int, seed: int) -> Vectors:
    """Rows of unit length, the first one zero as of a text without a known token."""
    rows = np.random.default_rng(seed).normal(size=(count, DIMS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:1] = 0.0
    return rows


@given(texts, st.integers(0, 2**32 - 1))
def test_one_batch_or_one_by_one(said: list[str], seed: int) -> None:
    """Bit for bit the same, 0-1, with four digits."""
    vectors = vectors_of(len(said), seed)
    together = shipped().risks(said, vectors)

    assert together == [shipped().risks([text], vectors[n : n + 1])[0] for n, text in enumerate(said)]
    assert all(0.0 <= risk <= 1.0 and round(risk, 4) == risk for risk in together)


@given(texts)
def test_hashes_are_of_words_and_of_neighbours(said: list[str]) -> None:
    """CRC-32 of each word, and of each two with a zero byte between: shipped weights were learnt by these places."""
    for text in said:
        words = [word.encode("utf-8", "surrogatepass") for word in words_of(fold_text(text))]
        hashes = word_hashes(fold_text(text))

        assert hashes == {crc32(word) for word in words} | {crc32(b"\0".join(two)) for two in pairwise(words)}
        assert all(0 <= place < 1 << WORD_BITS and sign in (-1, 1) for place, sign in map(place_of, hashes))
