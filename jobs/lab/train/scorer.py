"""Training the scorer's file: turn weights, signals through the real fold, combination, calibration.

No randomness: the same data give the same bytes. Scores that calibrate are always of a model that has not seen the
family they are from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.resources import files

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy.special import logit

from jobs.lab.train.combination import LabelledSessions, fit_combination, signals_of
from jobs.lab.train.turns import MessagePair, TrainingTurns, both_labels, fit_turns, quantised, turns_of
from jobs.shared.dialogues import LabelledDialogue, read_labelled
from models.risk.sequence.scale import sigmoid
from models.risk.turn_model import ModelCard, ScorerFile, SourceCard, TurnModel, write_model
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
_FOLDER = files("jobs.lab.train")


def own_dialogues() -> list[LabelledDialogue]:
    """The project's own, of which most only look risky."""
    return read_labelled(_FOLDER.joinpath("dialogues.jsonl"), LabelledDialogue, "dialogue", name="session_id")


def own_pairs() -> list[MessagePair]:
    """The project's contrasts."""
    return msgspec.json.Decoder(MessagePair).decode_lines(_FOLDER.joinpath("pairs.jsonl").read_bytes())


class Trainer:
    """Trains on dialogues and pairs, also without some of them, and remembers what trainings share."""

    def __init__(self, dialogues: Sequence[LabelledDialogue], pairs: Sequence[MessagePair], embedder: Embedder) -> None:
        self.dialogues = [dialogue for dialogue in dialogues if dialogue.said_by_user]
        self.embedder = embedder
        self.turns: TrainingTurns = turns_of(self.dialogues, pairs, embedder)
        self._weights: dict[frozenset[str], Floats] = {}

    def weights(self, without: Collection[str]) -> Floats:
        """Of the features, learnt without these sources."""
        key = self._taught_by.intersection(without)
        if key not in self._weights:
            self._weights[key] = fit_turns(self.turns, self._families(key))
        return self._weights[key]

    def train(self, version: str, card: ModelCard, without: Collection[str] = ()) -> ScorerFile:
        """A scorer's file, learnt without these sources; the card's sources and base rate are filled in."""
        kept = [n for n, dialogue in enumerate(self.dialogues) if dialogue.source not in without]
        slope, offset = self._turn_calibration(without)
        sessions = LabelledSessions(
            [self._signals(n, without, slope, offset) for n in kept],
            np.array([self.dialogues[n].escalating for n in kept]),
            [self.dialogues[n].source for n in kept],
        )
        combination = fit_combination(sessions)
        return ScorerFile(
            version=version,
            turn=quantised(self.weights(without), slope, offset),
            base=combination.base,
            weights=combination.weights,
            card=structs.replace(
                card, sources=_sources([self.dialogues[n] for n in kept]), base_rate=combination.base_rate
            ),
        )

    @cached_property
    def _taught_by(self) -> frozenset[str]:
        """Sources that the turn weights are learnt from."""
        return self.sources_of(both_labels(self.turns, self._families(())))

    @cached_property
    def _family_of(self) -> dict[str, str]:
        """Family of each source."""
        return {dialogue.source: dialogue.family for dialogue in self.dialogues}

    def _families(self, without: Collection[str]) -> list[str]:
        """Of the dialogues, as `fit_turns` wants them: the project's own dialogues do not teach turn weights."""
        return ["" if each.own or each.source in without else self._family_of[each.source] for each in self.dialogues]

    def sources_of(self, families: Collection[str]) -> frozenset[str]:
        """All sources of these families."""
        return frozenset(source for source, family in self._family_of.items() if family in families)

    def model_without(self, families: Collection[str] = (), *, sources: Collection[str] = ()) -> TurnModel:
        """A model that knows nothing of these families, or of these sources; for measuring, its card says nothing."""
        card = ModelCard(trained_on="", seed=0, sources=[], base_rate=0.0)
        file = self.train(f"without-{'-'.join([*families, *sources])}", card, self.sources_of(families).union(sources))
        return TurnModel(file, write_model(file))

    def _turn_calibration(self, without: Collection[str]) -> tuple[float, float]:
        """Slope and offset of a turn's log-odds over its score."""
        halves = np.asarray(self.turns.features[self.turns.dialogue < 0] @ self.weights(without))
        slope = TURN_SPREAD / float(halves.std())
        return slope, float(logit(TURN_BASE_RATE)) - slope * float(np.median(halves))

    def _signals(self, index: int, without: Collection[str], slope: float, offset: float) -> Floats:
        """Signals of a dialogue, from risks by weights that have not seen its family either."""
        here, dialogue = self.turns.dialogue == index, self.dialogues[index]
        scores = self.turns.features[here] @ self.weights(self.sources_of([dialogue.family]).union(without))
        risks = [round(sigmoid(slope * score + offset), _DECIMALS) for score in scores.tolist()]
        return signals_of(dialogue, risks, self.turns.vectors[here])


def _sources(dialogues: Sequence[LabelledDialogue]) -> list[SourceCard]:
    found: dict[str, list[LabelledDialogue]] = {}
    for dialogue in dialogues:
        found.setdefault(dialogue.source, []).append(dialogue)
    return [
        SourceCard(
            name,
            " and ".join(sorted({each.label for each in here})),
            ", ".join(sorted({each.licence for each in here})),
            len(here),
            sum(len(each.said_by_user) for each in here),
        )
        for name, here in sorted(found.items())
    ]


def trainer_with_own(dialogues: Sequence[LabelledDialogue], embedder: Embedder) -> Trainer:
    """A trainer on these dialogues and all of the project's own texts."""
    return Trainer([*dialogues, *own_dialogues()], own_pairs(), embedder)
