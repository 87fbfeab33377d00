"""Fitting the turn scorer: a logistic regression that is to learn aims, not styles.

Three things teach it, in one convex problem (L-BFGS, no randomness):

- own pairs, by the difference of their halves: whatever both share (style, length, matter) cancels;
- families that hold both labels (a red-teamed data set and its matched control), each with an intercept of its own, so
  that what marks the family as a whole says nothing; a later turn of an escalating dialogue counts more than its first;
- a strong prior towards zero, weak on the risk by the rules. It is what helps most on families not trained on.

Sources with one label alone teach it nothing: their style would be taken for their label. All of them together, with a
small weight, gained on some families left out and lost as much on others.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from jobs.shared.dialogues import LabelledDialogue
from models.risk.scorer import score_text
from models.risk.turn_model import DIMS, WORD_BITS, TurnWeights, place_of, whole_vectors, word_hashes
from models.text.disguise import as_meant
from models.text.words import fold_text
from streams.ports import Embedder, Vectors

Floats = NDArray[np.float64]

PRIOR_STRENGTH = 200.0
"""Inverse variance of a weight. Of 3, 10, 30, 100, 200 and 300 the strong ones did best on families left out; from 100
on it hardly matters."""
DENSE_GAIN, WORDS_GAIN, RULES_GAIN, INTERCEPT_GAIN = 3.0, 3.0, 16.0, 3.0
"""How far each kind of feature may be used before the prior holds it."""
_MOST_OF_A_FAMILY = 1_500
"""Weight of a family, in turns, and turns of a source that are learnt from: a large one does not drown the rest."""
WEIGHT_OF_PAIRS = 500.0
"""Of all pairs together, in turns: more of them refine what they teach, and do not drown the families."""
WEIGHT_OF_SET = {"topic": 3.0}
"""Against 1: questions that approach a dangerous matter sideways are rare in every other source."""
_INT8 = 127


class MessagePair(Struct, frozen=True):
    """Two messages of one manner that differ in their aim: their difference is the aim, not the style of a data set."""

    set: str
    category: str
    harmful: str
    benign: str

    @property
    def hand(self) -> str:
        """Whose it is: sets of one hand begin alike.

        >>> MessagePair("near_task", "fraud", "", "").hand, MessagePair("crowd", "fraud", "", "").hand
        ('near', 'crowd')
        """
        return self.set.partition("_")[0]


class TrainingTurns(NamedTuple):
    """User turns with their features.

    Attributes:
        features: `(n, DIMS + 2 ** WORD_BITS + 1)`: unit embedding, unit words, risk by the rules, each by its gain.
        vectors: Their embeddings, `(n, DIMS)`.
        dialogue: Index of the dialogue of each, −1 for halves of pairs (harmful, benign, harmful …).
        source: Of the dialogue, empty for halves of pairs.
        escalating: Label of the dialogue or the half.
        lateness: How far into the dialogue, in (0, 1].
        pair_weights: Of each pair, in their order; they add up to `WEIGHT_OF_PAIRS`.
    """

    features: sparse.csr_matrix
    vectors: Vectors
    dialogue: NDArray[np.int64]
    source: NDArray[np.str_]
    escalating: NDArray[np.bool_]
    lateness: Floats
    pair_weights: Floats


def turns_of(dialogues: Sequence[LabelledDialogue], pairs: Sequence[MessagePair], embedder: Embedder) -> TrainingTurns:
    """Every user turn of the dialogues in order, then the halves of every pair."""
    rows = [
        (text, index, dialogue.escalating, (n + 1) / len(said))
        for index, dialogue in enumerate(dialogues)
        for said in [dialogue.said_by_user]
        for n, text in enumerate(said)
    ]
    for pair in pairs:
        rows += [(pair.harmful, -1, True, 1.0), (pair.benign, -1, False, 1.0)]
    said, owner, escalating, lateness = zip(*rows, strict=True)
    texts = as_read(said)
    vectors = embedder.embed(texts)
    shares = np.array([WEIGHT_OF_SET.get(pair.set, 1.0) for pair in pairs])
    return TrainingTurns(
        _features(texts, vectors),
        vectors,
        np.array(owner),
        np.array([dialogues[index].source if index >= 0 else "" for index in owner]),
        np.array(escalating),
        np.array(lateness),
        shares * WEIGHT_OF_PAIRS / shares.sum(),
    )


def fit_turns(turns: TrainingTurns, families: Sequence[str]) -> Floats:
    """Weights of the features, `(n_features,)`.

    Args:
        turns: Everything at hand.
        families: Of the dialogues, each; an empty one is not learnt from.
    """
    halves = np.flatnonzero(turns.dialogue < 0)
    signs = np.where(np.arange(len(halves) // 2) % 2 == 0, 1.0, -1.0)
    differences = sparse.diags(signs) @ (turns.features[halves[::2]] - turns.features[halves[1::2]])
    of_turn = np.array([families[index] if index >= 0 else "" for index in turns.dialogue])
    mixed = both_labels(turns, families)
    blocks = [sparse.hstack([differences, sparse.csr_matrix((len(signs), len(mixed)))])]
    wanted, weights = [signs > 0], [turns.pair_weights]
    for place, name in enumerate(mixed):
        here = np.flatnonzero(of_turn == name)
        rows = spread(here, turns.source[here], _MOST_OF_A_FAMILY)
        intercepts = np.zeros((len(rows), len(mixed)))
        intercepts[:, place] = INTERCEPT_GAIN
        blocks.append(sparse.hstack([turns.features[rows], sparse.csr_matrix(intercepts)]))
        wanted.append(turns.escalating[rows])
        # A source weighs as many turns as it has here, the later ones of an attack more.
        late = np.where(turns.escalating[rows], turns.lateness[rows], 1.0)
        weights.append(evened(late, turns.escalating[rows]) * min(len(rows), _MOST_OF_A_FAMILY))
    found = logistic(sparse.vstack(blocks).tocsr(), np.concatenate(wanted), np.concatenate(weights), PRIOR_STRENGTH)
    return found[: turns.features.shape[1]]


def both_labels(turns: TrainingTurns, families: Sequence[str]) -> list[str]:
    """Families whose dialogues bear both labels, in order of name; the empty one is none."""
    labelled = zip(turns.dialogue.tolist(), turns.escalating.tolist(), strict=True)
    found = {(families[index], escalating) for index, escalating in labelled if index >= 0}
    return sorted(name for name, escalating in found if name and escalating and (name, False) in found)


def logistic(
    rows: sparse.csr_matrix | Floats,
    wanted: NDArray[np.bool_],
    weights: Floats,
    strength: float | Floats,
    *,
    prior: Floats | None = None,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Floats:
    """Minimise the weighted log loss plus `Σ strength / 2 · (w - prior)²`, without an intercept of its own.

    Args:
        rows: `(n, n_features)`.
        wanted: Label of each.
        weights: Of each.
        strength: Inverse variance of all weights, or of each.
        prior: Where the weights start and are drawn to; none: 0.
        bounds: Lowest and highest weight of each feature.
    """
    signs = np.where(wanted, 1.0, -1.0)
    start = np.zeros(rows.shape[1]) if prior is None else prior

    def loss(w: Floats) -> tuple[float, Floats]:
        margins = signs * (rows @ w)
        slopes = -signs * weights * np.exp(-np.logaddexp(0.0, margins))
        moved = w - start
        value = float(weights @ np.logaddexp(0.0, -margins)) + float(moved @ (strength * moved)) / 2
        return value, rows.T @ slopes + strength * moved

    found: Floats = minimize(
        loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-8}
    ).x
    return found


def quantised(weights: Floats, slope: float, offset: float) -> TurnWeights:
    """The weights as a file holds them."""
    rules = round(float(weights[-1]) * RULES_GAIN * slope, 6)
    return TurnWeights(**int8_parts(weights[:-1], slope), rules=rules, offset=round(offset, 6))


def int8_parts(weights: Floats, slope: float = 1.0) -> dict[str, Any]:
    """Weights of the features but the rules', `(…, DIMS + 2 ** WORD_BITS)`, in the fields that a file has for them."""
    (dense, dense_scale), (words, words_scale) = (
        int8_of(part * gain * slope)
        for part, gain in ((weights[..., :DIMS], DENSE_GAIN), (weights[..., DIMS:], WORDS_GAIN))
    )
    whole = {"dense": dense.tobytes(), "words": words.tobytes()}
    return {**whole, "dense_scale": dense_scale, "words_scale": words_scale}


def _features(texts: Sequence[str], vectors: Vectors) -> sparse.csr_matrix:
    whole = whole_vectors(vectors).astype(np.float64)
    lengths = np.linalg.norm(whole, axis=1, keepdims=True)
    unit = np.divide(whole, lengths, out=np.zeros_like(whole), where=lengths > 0)
    rows, columns, values = [], [], []
    for row, text in enumerate(texts):
        hashes = word_hashes(fold_text(text))
        for column, sign in map(place_of, sorted(hashes)):
            rows.append(row)
            columns.append(column)
            values.append(sign * WORDS_GAIN / len(hashes) ** 0.5)
    words = sparse.csr_matrix((values, (rows, columns)), shape=(len(texts), 1 << WORD_BITS))
    rules = np.array([[RULES_GAIN * score_text(text)] for text in texts])
    return sparse.hstack([sparse.csr_matrix(unit * DENSE_GAIN), words, sparse.csr_matrix(rules)]).tocsr()


def as_read(said: Sequence[str]) -> list[str]:
    """Texts as the scorer reads them."""
    return [as_meant(text).text for text in said]


def features_of(said: Sequence[str], embedder: Embedder) -> sparse.csr_matrix:
    """Features of texts, as `TrainingTurns` has them."""
    texts = as_read(said)
    return _features(texts, embedder.embed(texts))


def spread(rows: NDArray[np.int64], sources: NDArray[np.str_], most: int) -> NDArray[np.int64]:
    """Of each source at most so many of its rows, from all over it."""
    of_each = [rows[sources == source] for source in np.unique(sources)]
    return np.sort(np.concatenate([rows[:0], *(here[:: -(-len(here) // most)] for here in of_each)]))


def evened(weights: Floats, escalating: NDArray[np.bool_]) -> Floats:
    """The weights, scaled in place so that each label that is there weighs 0.5."""
    for label in np.unique(escalating):
        here = escalating == label
        weights[here] *= 0.5 / weights[here].sum()
    return weights


def bag_of_words(*, pairs: bool = False, balanced: bool = True) -> Pipeline:
    """The plain baseline: TF-IDF of words, with pairs of them if asked for, and logistic regression."""
    words = TfidfVectorizer(ngram_range=(1, 1 + pairs), sublinear_tf=True)
    return make_pipeline(words, LogisticRegression(C=10, max_iter=300, class_weight="balanced" if balanced else None))


def int8_of(weights: Floats) -> tuple[NDArray[np.int8], float]:
    """Weights as whole numbers of -127 to 127, and what one of them is worth."""
    scale = float(np.abs(weights).max()) / _INT8 or 1.0
    return np.rint(weights / scale).astype(np.int8), scale
