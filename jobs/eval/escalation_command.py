"""`turntide eval escalation`: how well escalations are told from harmless talk, and what the alerts are worth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.output import Output, OutputFormat
from jobs.progress import progress_bar

ESCALATION_EXAMPLES = (
    "turntide eval escalation --data dialogues.jsonl",
    "turntide eval escalation --data dialogues.jsonl --output json",
    "turntide eval escalation --data dialogues.jsonl --leave-out source",
    "turntide eval escalation --data mine.jsonl --leave-out nothing",
)
_COLUMNS = (
    "label",
    "dialogues",
    "roc_auc",
    "pr_auc",
    "recall_at_fpr_0.01",
    "recall_at_fpr_0.05",
    "recall",
    "fpr",
    "median_lead",
)


class LeaveOut(StrEnum):
    """What `--leave-out` takes."""

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

    A dialogue's score is the highest probability after any of its turns; alerts are those that the policy raises. Beside
    it stand what needs no memory: the first user turn alone, the number of turns, the mean length. No text is printed.
    """
    from jobs.eval.escalation import judge_by_shipped, judge_left_out, judging_by, summary, us_per_turn
    from jobs.train.examples import own_dialogues, own_pairs, read_dialogues
    from streams.embed.wordllama import WordLlamaEmbedder
    from streams.scorers.trained import model_at
    from streams.settings import load_settings
    from streams.wiring import policy_of

    settings, embedder = load_settings(), WordLlamaEmbedder()
    policy, model, dialogues = policy_of(settings), model_at(settings.scorer.file), read_dialogues(data)
    known = {source.name for source in model.file.card.sources}
    known_families = {dialogue.family for dialogue in dialogues if dialogue.source in known}
    seen = [
        each
        for each in dialogues
        if leave_out is not LeaveOut.NOTHING and (leave_out is not LeaveOut.AUTO or each.family in known_families)
    ]
    unseen = [each for each in dialogues if each not in seen] if len(seen) < len(dialogues) else []
    judged = []
    if seen:
        with progress_bar("families left out") as progress:
            judged += judge_left_out(
                seen,
                own_dialogues(),
                own_pairs(),
                policy,
                embedder,
                progress,
                by_family=leave_out is not LeaveOut.SOURCE,
            )
    if unseen:
        with progress_bar("dialogues") as progress:
            judged += judge_by_shipped(unseen, model, policy, embedder, progress)
    report = {
        "scorer": model.name,
        "policy_version": policy.version,
        "threshold": policy.modes.elevated.enter,
        "judged_by_models_without_its_family"
        if leave_out is not LeaveOut.SOURCE
        else "judged_by_models_without_its_source": len(seen),
        "judged_by_the_scorer": len(unseen),
        **summary(judged),
        **us_per_turn(dialogues, judging_by(model, policy, embedder), embedder),
    }
    _print(report, Output(output))


def _print(report: Mapping[str, Any], printed: Output) -> None:
    if printed.form is OutputFormat.JSON:
        printed.record(report)
        return
    rows = [
        {"source": name, **{column: _cell(row[column]) for column in _COLUMNS}}
        for name, row in report["by_source"].items()
    ]
    if printed.form is OutputFormat.TABLE:
        flat = {name: value for name, value in report.items() if name not in {"by_source", "controls"}}
        flat |= {f"control: {name}": value for name, value in report["controls"].items()}
        printed.record({name: _cell(value) for name, value in flat.items()})
    printed.rows("by source", rows)


def _cell(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else value
