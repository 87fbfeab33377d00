"""`turntide lab eval escalation`: how well escalations are told from harmless talk, and what the alerts are worth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobs.lab.eval.scores import cell
from jobs.shared.dialogues import LabelledDialogue, family_of, read_dialogues
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.progress import progress_bar
from models.errors import ConfigurationError

if TYPE_CHECKING:
    from jobs.lab.eval.escalation import DialogueJudge
    from jobs.lab.eval.escalation_scoring import ScoredSession
    from streams.ports import Embedder

ESCALATION_EXAMPLES = (
    "turntide lab eval escalation --data dialogues.jsonl",
    "turntide lab eval escalation --data dialogues.jsonl --output json",
    "turntide lab eval escalation --data dialogues.jsonl --leave-out source",
    "turntide lab eval escalation --data mine.jsonl --leave-out nothing",
)


class LeaveOut(StrEnum):
    """What a dialogue's judge must not have seen; what `--leave-out` takes."""

    AUTO = "auto"
    FAMILY = "family"
    SOURCE = "source"
    NOTHING = "nothing"


def escalation_command(
    *,
    data: Annotated[Path, typer.Option(help="Labelled dialogues, a JSON object a line: source, label, turns.")],
    leave_out: Annotated[
        LeaveOut,
        typer.Option(
            help="By whom a dialogue is judged. auto: by the configured scorer, or where that was trained on its "
            "family, by one trained here without. family, source: always by one trained here without its family, or "
            "without its source alone. nothing: by the configured scorer, though it may know it."
        ),
    ] = LeaveOut.AUTO,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure how well escalations are told from harmless talk, prefix by prefix, through the real fold.

    A dialogue's score is the highest probability after any of its turns; alerts are those that the policy raises.
    Beside it stand what needs no memory: the first user turn alone, the number of turns, the mean length. Figures that
    need both labels are empty where the data bear one. No text is printed.
    """
    from jobs.lab.eval.escalation import judging_by, us_per_turn
    from jobs.lab.eval.escalation_scoring import summary
    from streams.inference.trained_scorer import model_at
    from streams.inference.wordllama import WordLlamaEmbedder
    from streams.settings import load_settings
    from streams.wiring import policy_of

    settings, embedder = load_settings(), WordLlamaEmbedder()
    policy, model = policy_of(settings), model_at(settings.scorer.file)
    if settings.scorer.kind == "rules" or not policy.escalation.enabled:
        raise ConfigurationError(
            "no trained scorer judges sessions here (scorer.kind is rules, or the policy's escalation.enabled false): "
            "there are no probabilities to measure. `turntide alerts backtest` compares any scorers and policies."
        )
    sides = sides_of(read_dialogues(data), leave_out, {source.name for source in model.file.card.sources})
    if leave_out in {LeaveOut.FAMILY, LeaveOut.SOURCE}:
        instead = "Add others, or measure the configured scorer by --leave-out nothing."
        require_two(sides.left_out, by_family=leave_out is LeaveOut.FAMILY, instead=instead)
    judging = judging_by(model, policy, embedder)
    measured = summary(_judged(sides, judging, embedder, by_family=leave_out is not LeaveOut.SOURCE))
    _print(
        {
            "scorer": model.name,
            "policy_version": policy.version,
            "threshold": policy.modes.elevated.enter,
            "leave_out": leave_out.value,
            "judged_left_out": len(sides.left_out),
            "judged_by_the_scorer": len(sides.as_it_is),
            "not_judged_without_user": len(sides.without_user),
            **measured.overall,
            "controls": measured.controls,
            "by_source": measured.by_source,
            **us_per_turn([*sides.left_out, *sides.as_it_is], judging, embedder),
        },
        Printer(output),
    )


def _judged(sides: Sides, judging: DialogueJudge, embedder: Embedder, *, by_family: bool) -> list[ScoredSession]:
    from jobs.lab.eval.escalation import judge_as_it_is, judge_left_out
    from jobs.lab.train.examples import own_dialogues, own_pairs
    from jobs.lab.train.scorer import Trainer

    judged = []
    if sides.left_out:
        with progress_bar("left out") as progress:
            trainer = Trainer([*sides.left_out, *own_dialogues()], own_pairs(), embedder)
            judged += judge_left_out(sides.left_out, trainer, judging.policy, progress, by_family=by_family)
    if sides.as_it_is:
        with progress_bar("dialogues") as progress:
            judged += judge_as_it_is(sides.as_it_is, judging, embedder, progress)
    return judged


def _print(report: Mapping[str, Any], printed: Printer) -> None:
    if printed.form is OutputFormat.JSON:
        printed.record(report)
        return
    if printed.form is OutputFormat.TABLE:
        flat = {name: value for name, value in report.items() if name not in {"by_source", "controls"}}
        flat |= {f"control: {name}": value for name, value in report["controls"].items()}
        printed.record({name: cell(value) for name, value in flat.items()})
    from jobs.lab.train.card import COLUMNS

    rows = [
        {"source": name, **{each: cell(row[each]) for each in ("label", *COLUMNS)}}
        for name, row in report["by_source"].items()
    ]
    printed.rows("by source", rows)


class Sides(NamedTuple):
    """Dialogues by who judges them.

    Attributes:
        left_out: By models that are trained on these, each without what it judges.
        as_it_is: By the configured scorer.
        without_user: By nobody: no user speaks, so there is nothing to score.
    """

    left_out: list[LabelledDialogue]
    as_it_is: list[LabelledDialogue]
    without_user: list[LabelledDialogue]


def sides_of(dialogues: Sequence[LabelledDialogue], leave_out: LeaveOut, known_sources: Collection[str]) -> Sides:
    """Who judges which dialogue.

    With `AUTO`, those of families that the configured scorer was trained on are judged by models without them, also
    where their own source is new. Where that is one family, its model is trained on the project's own texts alone.

    Raises:
        ConfigurationError: No user speaks in any of them.
    """
    known = {family_of(source) for source in known_sources}

    def seen(dialogue: LabelledDialogue) -> bool:
        return dialogue.family in known if leave_out is LeaveOut.AUTO else leave_out is not LeaveOut.NOTHING

    spoken = [each for each in dialogues if each.said_by_user]
    if not spoken:
        raise ConfigurationError("there is no dialogue in which a user speaks: nothing can be scored")
    return Sides(
        left_out=[each for each in spoken if seen(each)],
        as_it_is=[each for each in spoken if not seen(each)],
        without_user=[each for each in dialogues if not each.said_by_user],
    )


def require_two(dialogues: Sequence[LabelledDialogue], *, by_family: bool = True, instead: str) -> None:
    """Say that leaving out needs something that is left.

    Raises:
        ConfigurationError: There is one family alone, or one source; `instead` says what to do.
    """
    groups = {each.family if by_family else each.source for each in dialogues}
    if len(groups) == 1:
        kind = "family" if by_family else "source"
        raise ConfigurationError(f"all dialogues are of one {kind}, {groups.pop()}: left out, none is left. {instead}")
