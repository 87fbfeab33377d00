"""The trained turn model: a risk depends on its text alone, whatever the text."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.risk.turn_model import DIMS, WORD_BITS, TurnModel, place_of, word_hashes
from models.text.words import fold_text, words_of
from streams.inference.trained_scorer import model_at
from streams.ports import Vectors

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
