"""`turntide lab eval`: how good, on which data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct

from jobs.cli import examples
from jobs.lab.eval.escalation_command import ESCALATION_EXAMPLES, escalation_command
from jobs.lab.eval.understanding import EXTRACTION_EXAMPLES, FACTS_EXAMPLES, extraction_command, facts_command
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.progress import progress_bar

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure how good a judgement of Turntide's is, on dialogues.",
)


EmbedderName = StrEnum("EmbedderName", ["WORDLLAMA", "MINILM"])
RetrievalFormat = StrEnum("RetrievalFormat", ["LOCOMO"])
"""Formats of conversations that come with questions and their evidence."""
Data = Annotated[Path, typer.Option(help="Conversations with questions and the turns that answer them.")]
FormatOfData = Annotated[RetrievalFormat, typer.Option("--format", help="Its format.")]
Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]


@app.callback()
def evaluate() -> None:
    """Measure how good a judgement of Turntide's is, on dialogues."""


app.command("escalation", epilog=examples(*ESCALATION_EXAMPLES))(escalation_command)
app.command("facts", epilog=examples(*FACTS_EXAMPLES))(facts_command)
app.command("extraction", epilog=examples(*EXTRACTION_EXAMPLES))(extraction_command)


@app.command(
    epilog=examples(
        "turntide lab eval topics",
        "turntide lab eval topics locomo10.json --embedder minilm --output json",
        "turntide lab eval topics dialogues.jsonl --where label=benign --picture topics.svg",
    )
)
def topics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Dialogues, in any format of `turntide produce`. None: the demo's.", show_default=False),
    ] = None,
    *,
    embedder: Annotated[EmbedderName, typer.Option(help="Whose threshold is looked for.")] = EmbedderName.WORDLLAMA,
    where: Annotated[
        list[str] | None, typer.Option(help="Only dialogues beside which this stands, as name=value; may be repeated.")
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, max=10_000, help="Sessions to mix of the dialogues.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The same seed and dialogues: the same figures.")] = 1,
    picture: Annotated[Path | None, typer.Option(help="Draw the curve into this file, as SVG.")] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Find the cosine above which a message joins a topic, for one embedder.

    Sessions are made of stretches of five dialogues each, cut in two and said in turn; two messages belong together if
    they come from one dialogue. The project's own fold sorts them into topics for every threshold; F1 is that of pairs
    of user messages. --output csv prints the curve alone. Needs no Kafka; no message is ever printed.
    """
    from jobs.lab.eval.topics import measure
    from jobs.lab.eval.topics_dialogues import parse_conditions, read_dialogues
    from jobs.lab.eval.topics_table import curve_rows, draw, show
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings = load_settings(vectors={"embedder": embedder.value})
    dialogues = read_dialogues(files or [], parse_conditions(where or []))
    with progress_bar(f"topics, {embedder.value}") as progress:
        report = measure(
            dialogues,
            embedder_of(settings),
            policy_of(settings),
            sessions=sessions,
            seed=seed,
            progress=progress,
        )
    if picture is not None:
        draw(picture, report)
    _print(output, report, curve_rows(report), lambda printed: show(printed, report))


@app.command(
    epilog=examples(
        "turntide lab eval retrieval --data locomo10.json",
        "turntide lab eval retrieval --data locomo10.json --embedder minilm --output json",
        "turntide lab eval retrieval --data locomo10.json --limit-conversations 1",
    )
)
def retrieval(
    *,
    data: Data,
    form: FormatOfData = RetrievalFormat.LOCOMO,  # noqa: ARG001 - there is one yet
    embedder: Annotated[EmbedderName, typer.Option(help="Whose vectors are searched.")] = EmbedderName.WORDLLAMA,
    limit_conversations: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many conversations.", show_default="all")
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure how much of what answers a question is found by hybrid search.

    Starts a Kafka of its own, sends the conversations, lets the index role index them, and asks every question within
    the memory of its user. Recall is evidence found / evidence, the mean over questions; those without evidence are
    skipped. --output csv prints the recalls alone. No text is ever printed.
    """
    from datetime import UTC, datetime

    from jobs.lab.eval.retrieval import measure
    from jobs.lab.eval.retrieval_questions import read_dialogues
    from jobs.lab.eval.retrieval_scoring import recall_rows, show
    from jobs.produce.formats import Filling

    filling = Filling(source=data.stem, now=datetime.now(UTC))
    dialogues = read_dialogues(data, filling=filling, limit=limit_conversations)
    with progress_bar(f"retrieval, {embedder.value}") as progress:
        report = measure(dialogues, embedder.value, progress)
    _print(output, report, recall_rows(report), lambda printed: show(printed, report))


@app.command(
    epilog=examples(
        "turntide lab eval tiers --data locomo10.json",
        "turntide lab eval tiers --data locomo10.json --embedder minilm --output json",
    )
)
def tiers(
    *,
    data: Data,
    form: FormatOfData = RetrievalFormat.LOCOMO,  # noqa: ARG001 - there is one yet
    embedder: Annotated[EmbedderName, typer.Option(help="Whose distances are measured.")] = EmbedderName.WORDLLAMA,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what the three tiers keep of conversations, and how near episodes are to questions.

    Folds every turn by user, summarises extractively, and compares each question with the episodes that hold its
    evidence, with the user's others, and with those of other users: what an embedder's `episode_distance` divides.
    --output csv prints that curve alone. Needs no Kafka; no text is ever printed.
    """
    from datetime import UTC, datetime

    from jobs.lab.eval.retrieval_questions import read_dialogues
    from jobs.lab.eval.tiers import measure
    from jobs.produce.formats import Filling
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings = load_settings(vectors={"embedder": embedder.value})
    dialogues = read_dialogues(data, filling=Filling(source=data.stem, now=datetime.now(UTC)))
    with progress_bar(f"tiers, {embedder.value}") as progress:
        report = measure(dialogues, embedder_of(settings), policy_of(settings), progress)
    rows = [msgspec.to_builtins(share) for share in report.shares]

    def show(printed: Printer) -> None:
        printed.record(msgspec.to_builtins(report.kept))
        printed.rows("distances", rows)

    _print(output, report, rows, show)


def _print(
    output: OutputFormat, report: Struct, rows: Iterable[Mapping[str, Any]], show: Callable[[Printer], None]
) -> None:
    """Print all of a report with its envelope as JSON, its rows as CSV, or what `show` prints."""
    from jobs.lab.bench.machine import envelope

    printed = Printer(output)
    if output is OutputFormat.JSON:
        printed.record(envelope(report))
    elif output is OutputFormat.CSV:
        printed.rows("", rows)
    else:
        show(printed)
