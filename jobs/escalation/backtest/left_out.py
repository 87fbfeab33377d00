"""Labelled dialogues, each judged by a scorer that was trained without its family: what new traffic would see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import JudgedSession, judge
from jobs.escalation.backtest.labelled import as_log, records_in
from jobs.escalation.backtest.traffic import LabelledTraffic
from jobs.lab.train.examples import own_dialogues, own_pairs
from jobs.lab.train.scorer import Trainer
from jobs.shared.dialogues import LabelledDialogue, families, read_dialogues
from jobs.shared.progress import progress_bar
from models.errors import ConfigurationError
from models.events.topics import TURNS
from models.policy import Policy
from streams.inference.trained_scorer import TrainedScorer
from streams.ports import Embedder


def judged_left_out(file: Path, policy: Policy, embedder: Embedder) -> list[JudgedSession]:
    """Every dialogue of the file, in the order of families.

    Args:
        file: Labelled.
        policy: Whose thresholds raise alerts.
        embedder: Of the process.

    Raises:
        ConfigurationError: All dialogues are of one family: it cannot be left out.
    """
    dialogues = read_dialogues(file)
    if len(families(dialogues)) == 1:
        raise ConfigurationError(f"{file} holds one family of dialogues alone: it cannot be left out of a training")
    judged: list[JudgedSession] = []
    for family, contender in _trained(dialogues, policy):
        members = [dialogue for dialogue in dialogues if dialogue.family == family]
        traffic = LabelledTraffic(file.name, as_log(members, TURNS.name), records_in(members), timed=False)
        (judging,) = judge(traffic, [contender], embedder)
        judged += judging.judged()
    return judged


def _trained(dialogues: Sequence[LabelledDialogue], policy: Policy) -> Iterator[tuple[str, Contender]]:
    """Each family with the policy and scorer that know nothing of it."""
    from streams.inference.wordllama import WordLlamaEmbedder

    embedder, names = WordLlamaEmbedder(), families(dialogues)
    trainer = Trainer([*dialogues, *own_dialogues()], own_pairs(), embedder)
    with progress_bar("families left out") as progress:
        for done, name in enumerate(names):
            progress(done, len(names))
            model = trainer.model_without([name])
            escalation = structs.replace(policy.escalation, model=model.combination)
            yield name, Contender(structs.replace(policy, escalation=escalation), TrainedScorer(model, embedder))
