"""`turntide train scorer`: the weights that Turntide ships, or your own, from labelled dialogues."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli import examples
from jobs.output import Output, OutputFormat
from models.errors import ConfigurationError

if TYPE_CHECKING:
    from jobs.eval.escalation_scoring import Judged

_RESAMPLES = 500
app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Learn the scorer's weights from labelled dialogues."
)


@app.callback()
def train() -> None:
    """Learn the scorer's weights from labelled dialogues."""


@app.command(
    epilog=examples(
        "turntide train scorer --data dialogues.jsonl --to mine.scorer",
        "turntide train scorer --data dialogues.jsonl --to mine.scorer --version shop-2 --no-measure",
        "TURNTIDE_SCORER__FILE=mine.scorer turntide worker sessions",
    )
)
def scorer(
    *,
    data: Annotated[
        Path, typer.Option(help="Labelled dialogues, a JSON object a line: source, label, licence, turns.")
    ],
    to: Annotated[Path, typer.Option(help="File to write.")],
    version: Annotated[str, typer.Option(help="Name of the result; alerts show it with its digest.")] = "escalation-1",
    seed: Annotated[int, typer.Option(help="Draws the bootstrap of the card's interval; training has none.")] = 1,
    date: Annotated[str, typer.Option(help="Day for the card; today's, if none.")] = "",
    any_licence: Annotated[
        bool, typer.Option("--any-licence", help="Learn from sources of every licence: for your own use.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Measure on families left out, for the card.")
    ] = True,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")] = OutputFormat.TABLE,
) -> None:
    """Train the turn scorer and the combination of signals, and write them as one file with its card.

    Sources whose licence asks for share-alike, or names none, serve measuring alone. The same data give the same bytes.
    """
    from jobs.eval.escalation import judge_left_out, summary
    from jobs.progress import progress_bar
    from jobs.train.card import FAILURES, measured_of
    from jobs.train.examples import own_dialogues, own_pairs, read_dialogues
    from jobs.train.scorer import Trainer
    from models.policy import Policy
    from models.risk.turn_model import ModelCard, TurnModel, write_model
    from streams.embed.wordllama import WordLlamaEmbedder

    if not to.parent.is_dir():
        raise ConfigurationError(f"--to {to}: there is no folder {to.parent}")
    dialogues, own, pairs, embedder = read_dialogues(data), own_dialogues(), own_pairs(), WordLlamaEmbedder()
    learnt = [dialogue for dialogue in dialogues if any_licence or dialogue.may_ship]
    if not any(dialogue.escalating for dialogue in learnt):
        raise ConfigurationError(
            "nothing escalating to learn from: licences are missing or share-alike, see --any-licence"
        )
    measured: dict[str, float] = {}
    with progress_bar("families left out") as progress:
        if measure:
            judged = judge_left_out(dialogues, own, pairs, Policy(), embedder, progress, by_family=True)
            measured = measured_of(summary(judged), roc_auc_interval(judged, seed))
        trainer = Trainer([*learnt, *own], pairs, embedder)
        day = date or datetime.now(UTC).date().isoformat()
        card = ModelCard(trained_on=day, seed=seed, sources=[], base_rate=0.0, measured=measured, failures=[*FAILURES])
        file = trainer.train(version, card)
    written = write_model(file)
    to.write_bytes(written)
    model = TurnModel(file, written)
    shown = {name: value for name, value in measured.items() if "." not in name}
    Output(output).record(
        {"file": str(to), "name": model.name, "bytes": len(written), "dialogues": len(learnt) + len(own), **shown}
    )


@app.command(epilog=examples("turntide train card", "turntide train card mine.scorer > card.md"))
def card(
    file: Annotated[
        Path | None, typer.Argument(help="A scorer's file. None: the shipped one.", show_default=False)
    ] = None,
) -> None:
    """Print the model card of a scorer's file, as Markdown."""
    from jobs.train.card import card_page
    from streams.scorers.trained import model_at

    typer.echo(card_page(model_at(file)), nl=False)


def roc_auc_interval(judged: list[Judged], seed: int) -> tuple[float, float]:
    """95 % interval of the ROC-AUC, by resampling sessions within their label."""
    import numpy as np

    from jobs.eval.escalation_scoring import roc_auc

    drawn = np.random.default_rng(seed)
    sides = [np.array([one.score for one in judged if one.escalating is label]) for label in (True, False)]
    found = [
        roc_auc(*(drawn.choice(side, len(side)) for side in sides)) or 0.0  # neither side is empty
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)
