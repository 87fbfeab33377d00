"""Study of what teaches the scorer: learning curve over families, what one family does, and turns of one topic.

Every figure is of what is left out; beside it stands a bag of words that learnt from the same (`words_…`).
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from jobs.lab.eval.escalation import bag_of_words, judged_without
from jobs.lab.eval.escalation_scoring import Row, ScoredSession, ranked
from jobs.lab.train.scorer import Trainer
from jobs.lab.train.turns import MessagePair
from jobs.shared.dialogues import DialogueTurn, LabelledDialogue, families
from jobs.shared.output import Progress
from models.events import Role
from models.policy import Policy

CURVE = (0, 3, 6, 9, 12)
"""Families that are learnt from, besides the project's own texts."""


def family_study(
    dialogues: Sequence[LabelledDialogue], trainer: Trainer, policy: Policy, progress: Progress
) -> list[Row]:
    """All dialogues, each judged without its family, by what was learnt from some others or from all others but one.

    Which families come first says a hash of their names. The last row of the curve, of all others, is the one that
    removals are to be held against.
    """
    known = sorted(families(each for each in trainer.dialogues if not each.own), key=lambda name: crc32(name.encode()))
    names, steps = families(dialogues), sorted({min(step, len(known) - 1) for step in CURVE})
    plans = {
        f"{step} families": {
            name: frozenset([name, *[other for other in known if other != name][step:]]) for name in names
        }
        for step in steps
    }
    plans |= {f"without {gone}": {name: frozenset([name, gone]) for name in names} for gone in known}
    judged: dict[tuple[frozenset[str], str], ScoredSession] = {}
    wanted = sorted({without for plan in plans.values() for without in plan.values()}, key=sorted)
    for done, without in enumerate(wanted):
        progress(done, len(wanted))
        asked = [each for each in dialogues if any(plan[each.family] == without for plan in plans.values())]
        judged |= {(without, each.session_id): each for each in judged_without(without, asked, trainer, policy)}
    progress(len(wanted), len(wanted))
    return [
        {"learnt_from": title, **_ranked([judged[plan[each.family], each.session_id] for each in dialogues])}
        for title, plan in plans.items()
    ]


def _ranked(sessions: Sequence[ScoredSession]) -> Row:
    words = ranked(sessions, attrgetter("bag_of_words"))
    return ranked(sessions, attrgetter("score")) | {f"words_{name}": figure for name, figure in words.items()}


def turn_study(trainer: Trainer) -> Iterator[Row]:
    """Single turns that escalate against harmless ones of the same hand, by weights that learnt nothing of that hand.

    Of each set of own pairs (`in_order`: share of pairs whose harmful half scores higher), and of each family that
    teaches turns.
    """
    turns, pairs = trainer.turns, trainer.pairs
    halves = np.flatnonzero(turns.dialogue < 0)
    taught = [each for each in trainer.dialogues if each.family in trainer.teaching]
    for name, hand in sorted({(pair.set, pair.hand) for pair in pairs}):
        here = np.repeat([pair.set == name for pair in pairs], 2)
        scores = turns.features[halves[here]] @ trainer.weights((), hand=hand)
        learnt = [*taught, *_spoken([pair for pair in pairs if pair.hand != hand])]
        asked = _spoken([pair for pair in pairs if pair.set == name])
        row = _turns(scores, turns.escalating[halves[here]], learnt, asked)
        yield {"turns_of": f"pairs: {name}", **row, "in_order": float((scores[::2] > scores[1::2]).mean())}
    for name in trainer.teaching:
        without = trainer.sources_of([name])
        rows = np.flatnonzero(np.isin(turns.source, sorted(without)))
        asked = [
            LabelledDialogue(each.session_id, each.source, each.label, [_turn(text)])
            for each in trainer.dialogues
            if each.family == name
            for text in each.said_by_user
        ]
        learnt = [each for each in trainer.dialogues if each.family != name]
        scores = turns.features[rows] @ trainer.weights(without)
        yield {"turns_of": name, **_turns(scores, turns.escalating[rows], learnt, asked), "in_order": None}


def _spoken(pairs: Sequence[MessagePair]) -> list[LabelledDialogue]:
    return [
        LabelledDialogue(pair.set, pair.set, "escalating" if said is pair.harmful else "benign", [_turn(said)])
        for pair in pairs
        for said in (pair.harmful, pair.benign)
    ]


def _turn(said: str) -> DialogueTurn:
    return DialogueTurn(Role.USER, said)


def _turns(
    scores: NDArray[np.float64],
    escalating: NDArray[np.bool_],
    learnt: Sequence[LabelledDialogue],
    asked: Sequence[LabelledDialogue],
) -> Row:
    values = {"roc_auc": scores, "words_roc_auc": bag_of_words(learnt, asked)}
    return {"turns": len(scores)} | {name: float(roc_auc_score(escalating, value)) for name, value in values.items()}
