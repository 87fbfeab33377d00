"""`turntide lab train ranker`: weights of the ranking of turns, from questions whose answers are known.

Listwise: a softmax over a question's candidates, cross-entropy against the turns that answer it, which share its one
evenly; L2; L-BFGS. Signals are standardised for the fit, and the weights written for signals as they are. What they are
worth on conversations that they do not know, `turntide lab eval retrieval` says.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from models.retrieval.ranker import SIGNALS, Floats

Bools = NDArray[np.bool_]
L2 = 30.0
_SAME = 1e-9


def fit(asked: Iterable[tuple[Floats, Bools]], without: frozenset[str] = frozenset()) -> dict[str, float]:
    """Weights by signal, of questions with an answer among the candidates.

    Args:
        asked: Signals of each question's candidates, `(n_turns, n_signals)`, and which of them answer it.
        without: Signals that are left out.
    """
    answered = [(values, answers) for values, answers in asked if answers.any()]
    names = [name for name in SIGNALS if name not in without]
    values = np.concatenate([each for each, _ in answered])[:, [SIGNALS.index(name) for name in names]]
    target = np.concatenate([answers / answers.sum() for _, answers in answered])
    sizes = [len(answers) for _, answers in answered]
    starts, of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    spread = values.std(axis=0) + _SAME
    scaled = (values - values.mean(axis=0)) / spread

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = scaled @ weights
        scores -= np.maximum.reduceat(scores, starts)[of]
        odds = np.exp(scores)
        total = np.add.reduceat(odds, starts)[of]
        surprise = -(target * (scores - np.log(total))).sum()
        return surprise + L2 / 2 * weights @ weights, scaled.T @ (odds / total - target) + L2 * weights

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B").x / spread
    return {name: float(f"{weight:.4g}") for name, weight in zip(names, found, strict=True)}
