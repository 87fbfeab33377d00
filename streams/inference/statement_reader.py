"""The second reader of statements: a small trained classifier over e5's vectors and a sentence's words.

Rules read first, in the fold (`models.language.statements`); this one answers in role `enrich` for sentences in which
they find nothing. Its vectors may differ in their last bits between machines, so that it answers as an event.
deploy/models/statements-1.md says what it was trained on and what it is worth.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.events.project import ReadStatement
from models.events.project_items import MemoryType
from models.risk.turn_model import place_of, word_hashes
from models.text.words import fold_text
from streams.ports import Vectors

Embed = Callable[[Sequence[str]], Vectors]
SHIPPED = Path(__file__).parent / "statements.npz"
TYPES = (None, *MemoryType)
"""Classes in their order; None: the sentence states nothing."""
DENSE, WORDS = 6.0, 3.0
"""What a unit vector of either kind counts: chosen on manners of writing that were left out."""
FROM = 0.5
"""Probability from which a sentence is answered for. Below the policy's `promote_from` it waits as a pending fact."""


class ReaderWeights(NamedTuple):
    """Whole numbers of -127 to 127 with a scale for each kind.

    Attributes:
        dense: `(n_types, 384)` int8, of the vector's dimensions.
        words: `(n_types, 2 ** WORD_BITS)` int8, of hashed words and pairs.
        offset: `(n_types,)` float32, log-odds of a sentence that says nothing.
        scales: Log-odds of a weight of 1, dense and words.
    """

    dense: NDArray[np.int8]
    words: NDArray[np.int8]
    offset: NDArray[np.float32]
    scales: NDArray[np.float32]


class StatementReader:
    """Says which sentence is a statement, of which type, and how probably."""

    name = "statements-1"

    def __init__(self, embed: Embed, weights: ReaderWeights | None = None) -> None:
        self._embed = embed
        if weights is None:
            with np.load(SHIPPED) as file:
                weights = ReaderWeights(**file)
        dense, words = weights.scales
        self._dense = weights.dense.astype(np.float32) * dense
        self._words = weights.words.astype(np.float32) * words
        self._offset = weights.offset

    def read(self, sentences: Sequence[str]) -> list[ReadStatement]:
        """Those sentences that state something more probably than not, in order."""
        return probable(sentences, self.probabilities(sentences)) if sentences else []

    def probabilities(self, sentences: Sequence[str]) -> Vectors:
        """Of each class, `(n_sentences, n_types)`; a row sums to 1."""
        said = [self._words[:, places] @ values for places, values in map(word_vector, sentences)]
        log_odds = self._embed(sentences) @ self._dense.T + np.array(said) + self._offset
        odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        shares: Vectors = odds / odds.sum(axis=1, keepdims=True)
        return shares


def probable(sentences: Sequence[str], probabilities: Vectors) -> list[ReadStatement]:
    """Those sentences that state something more probably than not, `probabilities` as the reader gives them."""
    found = []
    for sentence, odds in zip(sentences, probabilities, strict=True):
        best = 1 + int(odds[1:].argmax())
        if odds[best] >= FROM and (type_ := TYPES[best]):
            found.append(ReadStatement(content=sentence, memory_type=type_, confidence=round(float(odds[best]), 3)))
    return found


def word_vector(sentence: str) -> tuple[NDArray[np.intp], Vectors]:
    """Places of a sentence's words and pairs among `2 ** WORD_BITS`, and their values: a unit vector."""
    placed = np.array([place_of(each) for each in sorted(word_hashes(fold_text(sentence)))], np.float32).reshape(-1, 2)
    return placed[:, 0].astype(np.intp), placed[:, 1] / np.float32(max(1, len(placed)) ** 0.5)
