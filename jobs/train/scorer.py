"""Training the scorer's file: turn weights, signals through the real fold, combination, calibration.

No randomness: the same data give the same bytes. Scores that calibrate are always of a model that has not seen the
family they are from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jobs.train.combination import Sessions, fit_combination
from jobs.train.examples import Dialogue, Pair
from jobs.train.sessions import signals_of
from jobs.train.turns import Turns, both_labels, fit_turns, quantised, turns_of
from models.risk.turn_model import ModelCard, ScorerFile, SourceCard, sigmoid
from streams.ports import Embedder

Floats = NDArray[np.float64]

TURN_BASE_RATE = 0.2
"""Share of harmful turns that a turn's risk assumes. Lower than in the training data, higher than in any traffic: the
risk is for the signals, the probability that matters is the session's."""
TURN_SPREAD = 0.5
"""Standard deviation of a turn's log-odds over the halves of the pairs. Fixed, since what a fit gives depends on the
sources at hand (0.1 to 0.4 with one family left out or another), and a single turn tells little: signals count on
that."""
_DECIMALS = 4


class Trainer:
    """Trains on dialogues and pairs, also without some families, and remembers what trainings share.

    Args:
        dialogues: Labelled.
        pairs: Own contrasts.
        embedder: Wordllama.
        progress: Told each step's name as it begins.
    """

    def __init__(
        self,
        dialogues: Sequence[Dialogue],
        pairs: Sequence[Pair],
        embedder: Embedder,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.dialogues = dialogues
        self._families = [dialogue.family for dialogue in dialogues]
        self._progress = progress
        progress("embedding")
        self.turns: Turns = turns_of(dialogues, pairs, embedder)
        self._weights: dict[frozenset[str], Floats] = {}

    @cached_property
    def mixed(self) -> list[str]:
        """Families that the turn weights are learnt from."""
        return both_labels(self.turns, self._families)

    def weights(self, without: Collection[str]) -> Floats:
        """Of the features, learnt without these families."""
        key = frozenset(without) & frozenset(self.mixed)
        if key not in self._weights:
            self._progress(f"turns without {', '.join(sorted(key)) or 'nothing'}")
            self._weights[key] = fit_turns(self.turns, self._families, key)
        return self._weights[key]

    def train(self, version: str, card: ModelCard, without: Collection[str] = ()) -> ScorerFile:
        """A scorer's file, learnt without these families.

        Args:
            version: Of the file.
            card: Day, seed, failures; sources and base rate are filled in.
            without: Families that nothing may be learnt from.
        """
        kept = [n for n, family in enumerate(self._families) if family not in without]
        scores = {n: self._unseen_scores(n, without) for n in kept}
        slope, offset = self._turn_calibration(without)
        self._progress("signals")
        sessions = Sessions(
            [self._session_signals(n, scores[n], slope, offset) for n in kept],
            np.array([self.dialogues[n].escalating for n in kept]),
            [self.dialogues[n].source for n in kept],
        )
        self._progress("combination")
        combination = fit_combination(sessions)
        return ScorerFile(
            version=version,
            turn=quantised(self.weights(without), slope, offset),
            base=combination.base,
            weights=combination.weights,
            card=ModelCard(
                trained_on=card.trained_on,
                seed=card.seed,
                sources=_sources([self.dialogues[n] for n in kept]),
                base_rate=combination.base_rate,
                measured=card.measured,
                failures=card.failures,
            ),
        )

    def _unseen_scores(self, index: int, without: Collection[str]) -> Floats:
        """Scores of a dialogue's user turns, by weights that have not seen its family either."""
        here = self.turns.dialogue == index
        weights = self.weights({*without, self._families[index]})
        found: Floats = np.asarray(self.turns.features[here] @ weights)
        return found

    def _turn_calibration(self, without: Collection[str]) -> tuple[float, float]:
        """Slope and offset of a turn's log-odds over its score."""
        halves = np.asarray(self.turns.features[self.turns.dialogue < 0] @ self.weights(without))
        slope = TURN_SPREAD / float(halves.std())
        return slope, float(np.log(TURN_BASE_RATE / (1 - TURN_BASE_RATE))) - slope * float(np.median(halves))

    def _session_signals(self, index: int, scores: Floats, slope: float, offset: float) -> Floats:
        risks = [round(sigmoid(slope * score + offset), _DECIMALS) for score in scores.tolist()]
        return signals_of(self.dialogues[index], risks, self.turns.vectors[self.turns.dialogue == index])


def _sources(dialogues: Sequence[Dialogue]) -> list[SourceCard]:
    found: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues:
        found.setdefault(dialogue.source, []).append(dialogue)
    return [
        SourceCard(name, each[0].label, each[0].licence, len(each), sum(len(d.said_by_user) for d in each))
        for name, each in sorted(found.items())
    ]
