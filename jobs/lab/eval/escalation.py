"""`turntide lab eval escalation`: the real fold over labelled dialogues, each judged by who has not seen its like."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from msgspec import structs

from jobs.lab.eval.escalation_scoring import ScoredSession, summary
from jobs.lab.eval.scores import cell
from jobs.lab.train.card import COLUMNS
from jobs.lab.train.scorer import Trainer, trainer_with_own
from jobs.lab.train.turns import bag_of_words
from jobs.shared.dialogues import LabelledDialogue, families, family_of, folded, judging_policy, read_labelled
from jobs.shared.output import OutputFormat, Printer, Progress, progress_bar
from models.errors import ConfigurationError
from models.events import AlertChanged, Role
from models.policy import Policy
from models.risk.combination import Grounds, judge
from models.risk.sequence import Observation, SequenceSignals
from models.risk.turn_model import TurnModel
from models.text.features import features_of
from streams.inference.trained_scorer import TrainedScorer, model_at, reader_file, reader_of
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import Embedder, TurnReader
from streams.settings import load_settings
from streams.wiring import policy_of

_BATCH_TURNS = 512
_TIMED_BATCHES = 16
"""A turn's cost is measured in so many batches of so many; with a second reader, which is slow, in one."""
_TIMED_ROUNDS = 3


def ordinary_chats() -> list[LabelledDialogue]:
    """Support, sales, tutoring and coding chats, written by somebody blind to the signals; nothing learns from them."""
    file = files("jobs.lab.eval").joinpath("ordinary_chats.jsonl")
    return read_labelled(file, LabelledDialogue, "dialogue", name="session_id")


class DialogueJudge(NamedTuple):
    """Who judges a dialogue."""

    scorer: TrainedScorer
    policy: Policy


def judging_by(model: TurnModel, policy: Policy, embedder: Embedder, reader: TurnReader | None = None) -> DialogueJudge:
    """The policy with a model in it, and a second reader beside it."""
    scorer = TrainedScorer(model, embedder, reader)
    escalation = structs.replace(policy.escalation, model=scorer.combination)
    return DialogueJudge(scorer, judging_policy(structs.replace(policy, escalation=escalation)))


def judge_dialogue(dialogue: LabelledDialogue, judging: DialogueJudge, embedder: Embedder) -> ScoredSession:
    """Fold a dialogue in which a user speaks turn by turn, and note its highest probability and its first alert."""
    said = dialogue.said_by_user
    vectors, reader = embedder.embed(said), judging.scorer.reader
    risks = judging.scorer.risks(said, vectors)
    highest, alerted_after = 0.0, None
    folding = folded(
        dialogue, risks, vectors, judging.policy, None if reader is None else reader.readings(said, vectors)
    )
    for seen, (turn, state, outputs) in enumerate(folding, start=1):
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


def by_family(
    dialogues: Sequence[LabelledDialogue], progress: Progress
) -> Iterator[tuple[str, list[LabelledDialogue]]]:
    """Dialogues, family after family."""
    names = families(dialogues)
    for done, name in enumerate(names):
        progress(done, len(names))
        yield name, [each for each in dialogues if each.family == name]
    progress(len(names), len(names))


def judge_left_out(
    dialogues: Sequence[LabelledDialogue],
    trainer: Trainer,
    policy: Policy,
    progress: Progress,
    reader: TurnReader | None = None,
) -> list[ScoredSession]:
    """Each dialogue by a model trained without its family, and a bag of words that learnt from the same."""
    judged = list[ScoredSession]()
    for name, members in by_family(dialogues, progress):
        judging = judging_by(trainer.model_without(name), policy, trainer.embedder, reader)
        words = by_words([each for each in trainer.dialogues if each.family != name], members)
        judged += [
            structs.replace(judge_dialogue(each, judging, trainer.embedder), bag_of_words=of_words)
            for each, of_words in zip(members, words, strict=True)
        ]
    return judged


def by_words(learnt: Sequence[LabelledDialogue], asked: Sequence[LabelledDialogue]) -> list[float | None]:
    """Log-odds of dialogues by a bag of all that their users say; None where what is learnt from bears one label."""
    labels = [each.escalating for each in learnt]
    if len(set(labels)) == 1:
        return [None] * len(asked)
    said, asked_of = (["\n".join(each.said_by_user) for each in side] for side in (learnt, asked))
    found: list[float | None] = bag_of_words().fit(said, labels).decision_function(asked_of).tolist()
    return found


def us_per_turn(dialogues: Sequence[LabelledDialogue], judging: DialogueJudge, embedder: Embedder) -> float:
    """Microseconds per user turn, in batches: embedding, scoring, features, signals with their combination.

    The best of three rounds: the others are what the machine did besides.
    """
    reader = judging.scorer.reader
    batches = _TIMED_BATCHES if reader is None else 1
    texts = [text for dialogue in dialogues for text in dialogue.said_by_user][: batches * _BATCH_TURNS]
    spent_s = []
    for _ in range(_TIMED_ROUNDS):
        began_s = time.perf_counter()
        for first in range(0, len(texts), _BATCH_TURNS):
            batch, signals = texts[first : first + _BATCH_TURNS], SequenceSignals()
            vectors = embedder.embed(batch)
            risks = judging.scorer.risks(batch, vectors)
            if reader is not None:
                reader.readings(batch, vectors)
            for n, (text, risk) in enumerate(zip(batch, risks, strict=True)):
                signals.observe(Observation(n, risk, features_of(text)))
                judge(Grounds(signals.values()), judging.scorer.combination, judging.policy.escalation)
        spent_s.append(time.perf_counter() - began_s)
    return round(min(spent_s) / len(texts) * 1e6, 1)


def sides_of(
    dialogues: Sequence[LabelledDialogue], leave_out: str, known_sources: Collection[str]
) -> tuple[list[LabelledDialogue], list[LabelledDialogue]]:
    """Dialogues that models judge which are trained here, each without what it judges; and by the configured scorer.

    With `auto`, those of families that the configured scorer was trained on are judged by models without them, also
    where their own source is new. Where that is one family, its model is trained on the project's own texts alone.
    Where no user speaks there is nothing to score: nobody judges it.

    Raises:
        ConfigurationError: No user speaks in any of them.
    """
    known = {family_of(source) for source in known_sources}

    def seen(dialogue: LabelledDialogue) -> bool:
        return dialogue.family in known if leave_out == "auto" else leave_out != "nothing"

    spoken = [each for each in dialogues if each.said_by_user]
    if not spoken:
        raise ConfigurationError("there is no dialogue in which a user speaks: nothing can be scored")
    return [each for each in spoken if seen(each)], [each for each in spoken if not seen(each)]


def require_two(dialogues: Sequence[LabelledDialogue], *, instead: str) -> None:
    """Say that leaving out needs something that is left.

    Raises:
        ConfigurationError: There is one family alone; `instead` says what to do.
    """
    if len(names := families(dialogues)) == 1:
        raise ConfigurationError(f"all dialogues are of one family, {names[0]}: left out, none is left. {instead}")


def measure(
    dialogues: Sequence[LabelledDialogue],
    leave_out: str,
    pool: Sequence[LabelledDialogue] = (),
) -> dict[str, Any]:
    """The configured scorer on these dialogues, as a report of figures; `leave_out` as in `sides_of`.

    Models trained here learn from the pool besides. Where a second reader is configured (`scorer.reader`), it stands
    beside all of them: it has learnt of no family.

    Raises:
        ConfigurationError: No trained scorer is configured, or nothing is left to learn from.
    """
    settings, embedder = load_settings(), WordLlamaEmbedder()
    policy, model = policy_of(settings), model_at(settings.scorer.file)
    if settings.scorer.kind == "rules" or policy.judging_model is None:
        raise ConfigurationError(
            "no trained scorer judges sessions here (scorer.kind is rules, or the policy's escalation.enabled false or "
            "risk.source upstream): there are no probabilities to measure. `turntide alerts backtest` compares any "
            "scorers and policies."
        )
    left_out, as_it_is = sides_of(dialogues, leave_out, {source.name for source in model.file.card.sources})
    if leave_out == "family":
        require_two(left_out, instead="Add others, or measure the configured scorer by --leave-out nothing.")
    reader = reader_of(reader_file(settings.scorer.reader), embedder)
    judging, judged = judging_by(model, policy, embedder, reader), list[ScoredSession]()
    if left_out:
        trainer = trainer_with_own([*left_out, *pool], embedder)
        with progress_bar("left out") as progress:
            judged += judge_left_out(left_out, trainer, judging.policy, progress, reader)
    if as_it_is:
        with progress_bar("dialogues") as progress:
            for done, dialogue in enumerate(as_it_is, 1):
                judged.append(judge_dialogue(dialogue, judging, embedder))
                progress(done, len(as_it_is))
    return {
        "scorer": judging.scorer.name,
        "policy_version": policy.version,
        "threshold": policy.modes.elevated.enter,
        "leave_out": leave_out,
        "judged_left_out": len(left_out),
        "judged_by_the_scorer": len(as_it_is),
        "not_judged_without_user": len(dialogues) - len(left_out) - len(as_it_is),
        **summary(judged),
        "us_per_turn": us_per_turn([*left_out, *as_it_is], judging, embedder),
    }


def show(report: Mapping[str, Any], printed: Printer) -> None:
    """Print a report: all of it as JSON, its sources as CSV."""
    if printed.form is OutputFormat.JSON:
        printed.record(report)
        return
    if printed.form is OutputFormat.TABLE:
        flat = {name: value for name, value in report.items() if not isinstance(value, dict | list)}
        flat |= {f"control: {name}": value for name, value in report["controls"].items()}
        printed.record({name: cell(value) for name, value in flat.items()})
    rows = [
        {"source": name, **{each: cell(row[each]) for each in ("label", *COLUMNS)}}
        for name, row in report["by_source"].items()
    ]
    printed.rows("by source", rows)
