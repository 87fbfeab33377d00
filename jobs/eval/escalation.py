"""`turntide eval escalation`: the real fold over labelled dialogues, each judged by a model that has not seen its like."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from jobs.eval.escalation_scoring import Judged, by_source, controls, figures
from jobs.progress import Progress
from jobs.train.examples import Dialogue, Pair
from jobs.train.scorer import Trainer
from jobs.train.sessions import folded, judging_policy
from models.events import AlertChanged, Role
from models.policy import Policy
from models.risk.combination import Grounds, judge
from models.risk.sequence.observation import Observation
from models.risk.sequence.signals import SequenceSignals
from models.risk.turn_model import ModelCard, TurnModel, write_model
from models.text.features import features_of
from streams.ports import Embedder
from streams.scorers.trained import TrainedScorer

_BATCH_TURNS = 512
_TIMED_BATCHES = 16
"""A turn's cost is measured in so many batches of so many."""


class Judging(NamedTuple):
    """Who judges a dialogue.

    Attributes:
        scorer: Of single turns.
        policy: With the scorer's combination in it.
    """

    scorer: TrainedScorer
    policy: Policy


def judging_by(model: TurnModel, policy: Policy, embedder: Embedder) -> Judging:
    """The policy with a model in it."""
    escalation = structs.replace(policy.escalation, model=model.combination)
    policy = judging_policy(structs.replace(policy, escalation=escalation))
    return Judging(TrainedScorer(model, embedder), policy)


def judge_dialogue(dialogue: Dialogue, judging: Judging, embedder: Embedder) -> Judged:
    """Fold a dialogue turn by turn, and note its highest probability and its first alert."""
    said = dialogue.said_by_user
    vectors = embedder.embed(said)
    risks = judging.scorer.risks(said, vectors)
    highest, alerted_after = 0.0, None
    for turn, state, outputs in folded(dialogue, risks, vectors, judging.policy):
        judged = state.judged(judging.policy)
        if turn.role is Role.USER and judged is not None:
            highest = max(highest, judged.probability)
        raised = any(isinstance(event, AlertChanged) and event.cause == "raised" for event in outputs)
        if raised and alerted_after is None:
            alerted_after = turn.turn + 1
    return Judged(
        session_id=dialogue.session_id,
        source=dialogue.source,
        escalating=dialogue.escalating,
        score=highest,
        first_turn=risks[0],
        turns=len(dialogue.turns),
        mean_chars=sum(map(len, said)) / len(said),
        alerted_after=alerted_after,
    )


def judge_by_shipped(
    dialogues: Sequence[Dialogue], model: TurnModel, policy: Policy, embedder: Embedder, progress: Progress
) -> list[Judged]:
    """Every dialogue by one model."""
    judging = judging_by(model, policy, embedder)
    judged = []
    for done, dialogue in enumerate(dialogues, 1):
        judged.append(judge_dialogue(dialogue, judging, embedder))
        progress(done, len(dialogues))
    return judged


def judge_left_out(
    dialogues: Sequence[Dialogue],
    own: Sequence[Dialogue],
    pairs: Sequence[Pair],
    policy: Policy,
    embedder: Embedder,
    progress: Progress,
    *,
    by_family: bool,
) -> list[Judged]:
    """Each dialogue by a model that was trained without its family (or only without its source).

    Args:
        dialogues: To be judged, and to be learnt from for the others.
        own: The project's, always learnt from.
        pairs: Likewise.
        policy: Whose thresholds raise alerts.
        embedder: Wordllama.
        progress: Told of each fold.
        by_family: False: leave out the source alone, its counterpart of the same hand is learnt from.
    """
    if not by_family:
        dialogues = [structs.replace(dialogue, source=f"{dialogue.source} ") for dialogue in dialogues]
    trainer = Trainer([*dialogues, *own], pairs, embedder)
    groups = sorted({dialogue.family for dialogue in dialogues})
    judged: list[Judged] = []
    for done, group in enumerate(groups):
        progress(done, len(groups))
        file = trainer.train(
            f"without-{group.strip()}", ModelCard(trained_on="", seed=0, sources=[], base_rate=0.0), {group}
        )
        judging = judging_by(TurnModel(file, write_model(file)), policy, embedder)
        judged += [judge_dialogue(each, judging, embedder) for each in dialogues if each.family == group]
    progress(len(groups), len(groups))
    return [structs.replace(one, source=one.source.strip()) for one in judged]


def us_per_turn(dialogues: Sequence[Dialogue], judging: Judging, embedder: Embedder) -> dict[str, float]:
    """Microseconds per user turn, in batches: embedding, scoring, signals and combination, and all of it together."""
    model, escalation = judging.scorer.model, judging.policy.escalation
    texts = [text for dialogue in dialogues for text in dialogue.said_by_user][: _TIMED_BATCHES * _BATCH_TURNS]
    spent = dict.fromkeys(("embedding", "scoring", "judging"), 0.0)
    for first in range(0, len(texts), _BATCH_TURNS):
        batch = texts[first : first + _BATCH_TURNS]
        began = time.perf_counter()
        vectors = embedder.embed(batch)
        embedded = time.perf_counter()
        risks = judging.scorer.risks(batch, vectors)
        scored = time.perf_counter()
        # The fold knows these of every turn anyway, for the profile: they cost the judgement nothing.
        features = [features_of(text) for text in batch]
        signals, started = SequenceSignals(), time.perf_counter()
        for n, (risk, seen) in enumerate(zip(risks, features, strict=True)):
            signals.observe(Observation(n, risk, seen))
            judge(Grounds(signals.values()), model.combination, escalation)
        spent["embedding"] += embedded - began
        spent["scoring"] += scored - embedded
        spent["judging"] += time.perf_counter() - started
    each = {name: round(seconds / len(texts) * 1e6, 1) for name, seconds in spent.items()}
    return {"us_per_turn": round(sum(each.values()), 1), **{f"us_{name}": took for name, took in each.items()}}


def summary(judged: Sequence[Judged]) -> dict[str, object]:
    """Everything that is printed of a run."""
    overall, alone = figures(judged), controls(judged)
    sources = by_source(judged)
    attacks = [row["roc_auc"] for row in sources.values() if row["label"] == "escalating"]
    known = [float(auc) for auc in attacks if isinstance(auc, float)]
    auc, first = overall["roc_auc"], alone["first_turn"]
    return {
        **overall,
        "roc_auc_mean_of_attack_sources": sum(known) / len(known) if known else None,
        "gain_over_first_turn": auc - first if auc is not None and first is not None else None,
        "controls": alone,
        "by_source": sources,
    }
