"""`turntide lab eval escalation`: the real fold over labelled dialogues, each judged by who has not seen its like."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jobs.lab.eval.escalation_scoring import ScoredSession
from jobs.lab.train.scorer import Trainer
from jobs.lab.train.sessions import folded, judging_policy
from jobs.shared.dialogues import LabelledDialogue
from jobs.shared.progress import Progress
from models.events import AlertChanged, Role
from models.policy import Policy
from models.risk.combination import Grounds, judge
from models.risk.sequence.observation import Observation
from models.risk.sequence.signals import SequenceSignals
from models.risk.turn_model import TurnModel
from models.text.features import features_of
from streams.inference.trained_scorer import TrainedScorer
from streams.ports import Embedder

_BATCH_TURNS = 512
_TIMED_BATCHES = 16
"""A turn's cost is measured in so many batches of so many."""
_TIMED_ROUNDS = 3


class DialogueJudge(NamedTuple):
    """Who judges a dialogue."""

    scorer: TrainedScorer
    policy: Policy


def judging_by(model: TurnModel, policy: Policy, embedder: Embedder) -> DialogueJudge:
    """The policy with a model in it."""
    escalation = structs.replace(policy.escalation, model=model.combination)
    policy = judging_policy(structs.replace(policy, escalation=escalation))
    return DialogueJudge(TrainedScorer(model, embedder), policy)


def judge_dialogue(dialogue: LabelledDialogue, judging: DialogueJudge, embedder: Embedder) -> ScoredSession:
    """Fold a dialogue in which a user speaks turn by turn, and note its highest probability and its first alert."""
    said = dialogue.said_by_user
    vectors = embedder.embed(said)
    risks = judging.scorer.risks(said, vectors)
    highest, alerted_after = 0.0, None
    for seen, (turn, state, outputs) in enumerate(folded(dialogue, risks, vectors, judging.policy), start=1):
        judged = state.judged(judging.policy)
        if turn.role is Role.USER and judged is not None:
            highest = max(highest, judged.probability)
        raised = any(isinstance(event, AlertChanged) and event.cause == "raised" for event in outputs)
        if raised and alerted_after is None:
            alerted_after = seen
    return ScoredSession(
        session_id=dialogue.session_id,
        source=dialogue.source,
        escalating=dialogue.escalating,
        score=highest,
        first_turn=risks[0],
        turns=len(dialogue.turns),
        mean_chars=sum(map(len, said)) / len(said),
        alerted_after=alerted_after,
    )


def judge_as_it_is(
    dialogues: Sequence[LabelledDialogue], judging: DialogueJudge, embedder: Embedder, progress: Progress
) -> list[ScoredSession]:
    """Every dialogue by one model."""
    judged = []
    for done, dialogue in enumerate(dialogues, 1):
        judged.append(judge_dialogue(dialogue, judging, embedder))
        progress(done, len(dialogues))
    return judged


def judges_left_out(
    dialogues: Sequence[LabelledDialogue],
    trainer: Trainer,
    policy: Policy,
    progress: Progress,
    *,
    by_family: bool = True,
) -> Iterator[tuple[list[LabelledDialogue], DialogueJudge]]:
    """Dialogues of a family, or of a source, and a judge that was trained without it; family after family.

    Args:
        dialogues: To be judged; a user speaks in each.
        trainer: Knows what can be learnt from: these and others.
        policy: Whose thresholds raise alerts.
        progress: Told of each training.
        by_family: False: what else there is of the same hand is learnt from.
    """
    groups: dict[str, list[LabelledDialogue]] = {}
    for dialogue in dialogues:
        groups.setdefault(dialogue.family if by_family else dialogue.source, []).append(dialogue)
    for done, (name, group) in enumerate(sorted(groups.items())):
        progress(done, len(groups))
        model = trainer.model_without([name]) if by_family else trainer.model_without(sources=[name])
        yield group, judging_by(model, policy, trainer.embedder)
    progress(len(groups), len(groups))


def judge_left_out(
    dialogues: Sequence[LabelledDialogue],
    trainer: Trainer,
    policy: Policy,
    progress: Progress,
    *,
    by_family: bool = True,
) -> list[ScoredSession]:
    """Each dialogue as `judges_left_out` has it."""
    judges = judges_left_out(dialogues, trainer, policy, progress, by_family=by_family)
    return [judge_dialogue(each, judging, trainer.embedder) for group, judging in judges for each in group]


def us_per_turn(dialogues: Sequence[LabelledDialogue], judging: DialogueJudge, embedder: Embedder) -> dict[str, float]:
    """Microseconds per user turn, in batches: embedding, scoring, features, signals with combination, and their sum.

    Of each the best of three rounds: the others are what the machine did besides.
    """
    texts = [text for dialogue in dialogues for text in dialogue.said_by_user][: _TIMED_BATCHES * _BATCH_TURNS]
    batches = [texts[first : first + _BATCH_TURNS] for first in range(0, len(texts), _BATCH_TURNS)]
    rounds = [[_spent_s(batch, judging, embedder) for batch in batches] for _ in range(_TIMED_ROUNDS)]
    best = np.min(np.sum(rounds, axis=1), axis=0)
    each = {f"us_{name}": round(float(spent) / len(texts) * 1e6, 1) for name, spent in zip(_STAGES, best, strict=True)}
    return {"us_per_turn": round(sum(each.values()), 1), **each}


_STAGES = ("embedding", "scoring", "features", "judging")


def _spent_s(batch: Sequence[str], judging: DialogueJudge, embedder: Embedder) -> NDArray[np.float64]:
    """Seconds of each stage."""
    times = [time.perf_counter()]
    vectors = embedder.embed(batch)
    times.append(time.perf_counter())
    risks = judging.scorer.risks(batch, vectors)
    times.append(time.perf_counter())
    features = [features_of(text) for text in batch]
    times.append(time.perf_counter())
    signals = SequenceSignals()
    for n, (risk, seen) in enumerate(zip(risks, features, strict=True)):
        signals.observe(Observation(n, risk, seen))
        judge(Grounds(signals.values()), judging.scorer.model.combination, judging.policy.escalation)
    return np.diff([*times, time.perf_counter()])
