"""Training what tells kinds of harm: a multinomial logistic regression on the pairs' harmful halves.

Labels are the project's own: a pair's category, a dialogue's kind (`harms.toml`). No public family says a kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from jobs.lab.train.turns import Floats, MessagePair, bag_of_words, features_of, int8_parts
from jobs.shared.dialogues import LabelledDialogue
from models.events import Harm
from models.risk.harm import HARMS, NAMED_FROM, HarmWeights
from streams.ports import Embedder

STRENGTH = 1.0
"""`C` of the regression: 0.3, 1 and 3 differ hardly on hands left out."""
_MEANT = {
    Harm(name): re.compile(pattern)
    for name, pattern in msgspec.toml.decode(files("jobs.lab.train").joinpath("harms.toml").read_bytes()).items()
}
_HANDS = {"own_near_harmful": "near", "own_crowd": "crowd", "own_crescendo": ""}
"""Dialogues → sets of pairs of the same hand, which are left out where they are measured; empty: none is."""


class HarmFigures(NamedTuple):
    """What a way to tell kinds is worth on what it has not learnt from.

    Attributes:
        turns: Share of the pairs' harmful halves told right, each set by a model that did not learn from its hand.
        turns_f1: Mean over the kinds of F1.
        talks: Share of the dialogues told right, by the kind with most of the risk-weighted sum.
        named: Share of the dialogues of which a kind other than `other` is said …
        right: … and how many of these are right.
    """

    turns: float
    turns_f1: float
    talks: float
    named: float
    right: float


def harm_meant(said: str) -> Harm:
    """Kind of harm that a category of the pairs, or a kind of the dialogues, means.

    >>> harm_meant("phishing/scams"), harm_meant("drugs")
    (<Harm.FRAUD: 'fraud'>, <Harm.OTHER: 'other'>)
    """
    return next((harm for harm, pattern in _MEANT.items() if pattern.search(said)), Harm.OTHER)


def fit_harms(pairs: Sequence[MessagePair], features: sparse.csr_matrix) -> HarmWeights:
    """Weights learnt from the harmful halves, of which the rows are the features (`TrainingTurns`)."""
    wanted = [HARMS.index(harm_meant(pair.category)) for pair in pairs]
    found = _regression().fit(features[:, :-1], wanted)
    rows, offsets = np.zeros((len(HARMS), features.shape[1] - 1)), np.full(len(HARMS), -_UNKNOWN)
    rows[found.classes_], offsets[found.classes_] = found.coef_, found.intercept_
    return HarmWeights(**int8_parts(rows), offsets=[round(float(each), 6) for each in offsets])


_UNKNOWN = 100.0
"""Log-odds that a kind of which no pair is there lacks."""


def measured_harms(
    pairs: Sequence[MessagePair],
    dialogues: Sequence[LabelledDialogue],
    risks: Callable[[Sequence[str]], Sequence[float]],
    embedder: Embedder,
) -> dict[str, HarmFigures]:
    """Figures of the head, of a bag of words, and of the most frequent kind, each by hands left out."""
    talks = [each for each in dialogues if each.escalating and each.source in _HANDS]
    halves, said = [pair.harmful for pair in pairs], [text for each in talks for text in each.said_by_user]
    weights = np.array(risks(said))
    owner = np.repeat(np.arange(len(talks)), [len(each.said_by_user) for each in talks])
    ways: dict[str, tuple[Any, Any, Any]] = {
        "head": (_regression(), features_of(halves, embedder)[:, :-1], features_of(said, embedder)[:, :-1]),
        "bag of words": (bag_of_words(), np.array(halves, object), np.array(said, object)),
    }
    hands = np.array([pair.hand for pair in pairs])
    wanted = np.array([HARMS.index(harm_meant(pair.category)) for pair in pairs])
    meant = np.array([HARMS.index(harm_meant(each.kind)) for each in talks])
    sources = np.array([_HANDS[each.source] for each in talks])
    figures = {}
    for name, (model, of_halves, of_said) in ways.items():
        of_turn, of_talk = np.zeros_like(wanted), np.zeros((len(talks), len(HARMS)))
        for hand in sorted({*hands.tolist(), *sources.tolist()}):
            model.fit(of_halves[hands != hand], wanted[hands != hand])
            if hand:
                of_turn[hands == hand] = model.predict(of_halves[hands == hand])
            for n in np.flatnonzero(sources == hand):
                of_talk[n, model.classes_] = weights[owner == n] @ model.predict_proba(of_said[owner == n])
        figures[name] = _figures(wanted, of_turn, meant, of_talk)
    most = np.bincount(wanted).argmax()
    return figures | {
        "majority": _figures(wanted, np.full_like(wanted, most), meant, np.eye(len(HARMS))[[most] * len(talks)])
    }


def _figures(
    wanted: NDArray[np.int64], of_turn: NDArray[np.int64], meant: NDArray[np.int64], known: Floats
) -> HarmFigures:
    shares = known / known.sum(axis=1, keepdims=True)
    said = np.where(shares.max(axis=1) >= NAMED_FROM, shares.argmax(axis=1), HARMS.index(Harm.OTHER))
    named = said != HARMS.index(Harm.OTHER)
    right = float((said == meant)[named].mean()) if named.any() else 0.0
    return HarmFigures(
        float((of_turn == wanted).mean()),
        float(f1_score(wanted, of_turn, average="macro", zero_division=0.0)),
        float((said == meant).mean()),
        float(named.mean()),
        right,
    )


def _regression() -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=300, class_weight="balanced")
