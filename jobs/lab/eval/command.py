"""`turntide lab eval`: how good, on which data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct

from jobs.cli import examples
from jobs.lab.eval.scores import ScoreFigures, cell, print_judged
from jobs.shared.output import OutputFormat, Printer, progress_bar

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
_SET = "Labelled messages, JSON lines. None: the set that Turntide brings."
_TALKS = "Talks with questions, JSON lines. None: the set that Turntide brings."
_SPLIT = "Rules may be mended by looking at dev; all others are for measuring alone."
ShowMisses = Annotated[
    bool, typer.Option("--show-misses", help="Also print what was missed or found wrongly, with the messages.")
]
FactsSplit = StrEnum("FactsSplit", ["DEV", "TEST", "ALL"])
LeaveOut = StrEnum("LeaveOut", ["AUTO", "FAMILY", "SOURCE", "NOTHING"])
ExtractionSplit = StrEnum("ExtractionSplit", ["DEV", "TEST", "RARE", "FOREIGN", "ALL"])


@app.command(
    epilog=examples(
        "turntide lab eval escalation",
        "turntide lab eval escalation --data dialogues.jsonl --output json",
        "turntide lab eval escalation --data dialogues.jsonl --leave-out source",
        "turntide lab eval escalation --data mine.jsonl --leave-out nothing",
    )
)
def escalation(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Labelled dialogues, a JSON object a line: source, label, turns. None: the ordinary chats that "
            "Turntide brings, none of which should alert.",
            show_default=False,
        ),
    ] = None,
    leave_out: Annotated[
        LeaveOut,
        typer.Option(
            help="By whom a dialogue is judged. auto: by the configured scorer, or where that was trained on its "
            "family, by one trained here without. family, source: always by one trained here without its family, or "
            "without its source alone. nothing: by the configured scorer, though it may know it."
        ),
    ] = LeaveOut.AUTO,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure how well escalations are told from harmless talk, prefix by prefix, through the real fold.

    A dialogue's score is the highest probability after any of its turns; alerts are those that the policy raises.
    Beside it stand what needs no memory: the first user turn alone, the number of turns, the mean length. Figures that
    need both labels are empty where the data bear one. No text is printed.
    """
    from jobs.lab.eval.escalation import measure, ordinary_chats, show
    from jobs.shared.dialogues import read_dialogues

    show(measure(ordinary_chats() if data is None else read_dialogues(data), leave_out.value), Printer(output))


@app.command(
    epilog=examples(
        "turntide lab eval facts",
        "turntide lab eval facts --split dev --show-misses",
        "turntide lab eval facts --data messages.jsonl --output json",
    )
)
def facts(
    *,
    data: Annotated[Path | None, typer.Option(help=_SET, show_default=False)] = None,
    split: Annotated[FactsSplit, typer.Option(help=_SPLIT)] = FactsSplit.ALL,
    show_misses: ShowMisses = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what is read out of users' messages without a language model: facts to keep, and facts to forget.

    A fact counts as found if its category, key and value agree with the label (the words of one value are the other's,
    or stand in it in one piece) and it is sure and important enough to be stored under the policy. --output csv prints
    the figures by category, or with --show-misses the misses. Needs no Kafka.
    """
    from jobs.lab.bench.measuring import envelope
    from jobs.lab.eval.facts import measure, read_messages
    from models.language.facts.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    messages = [message for message in read_messages(data) if split in (FactsSplit.ALL, message.split)]
    report = measure(messages, extract, policy_of(load_settings()).users.facts)
    by_category = {
        **report.by_category,
        **{f"split {name}": figures for name, figures in report.by_split.items()},
        "retractions": report.retractions,
        "all facts": ScoreFigures(report.precision, report.recall, report.f1, report.gold, report.found),
    }
    print_judged(
        Printer(output),
        envelope(report),
        {("By category", "what"): by_category, ("By kind of message", "kind"): report.by_kind},
        show_misses=show_misses,
        said=f"{report.messages} messages; of the {report.negatives} with nothing to remember or to forget, "
        f"a share of {cell(report.negatives_clean)} was left alone",
    )


@app.command(
    epilog=examples(
        "turntide lab eval extraction",
        "turntide lab eval extraction --split dev --show-misses",
        "turntide lab eval extraction sentences.jsonl --output json",
    )
)
def extraction(
    file: Annotated[Path | None, typer.Argument(help=_SET, show_default=False)] = None,
    *,
    split: Annotated[ExtractionSplit, typer.Option(help=_SPLIT)] = ExtractionSplit.ALL,
    show_misses: ShowMisses = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure which decisions, goals, constraints … are read out of project talk, beside the source's bare patterns.

    A statement counts as found if its type agrees with the label and it is sure enough to become a memory under the
    policy. Subjects are counted apart. --output csv prints the figures by split and type, or with --show-misses the
    misses. Needs no Kafka.
    """
    from jobs.lab.bench.measuring import envelope
    from jobs.lab.eval.extraction import measure, read_sentences
    from models.errors import ConfigurationError
    from models.language.statements.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    sentences = [each for each in read_sentences(file) if split in (ExtractionSplit.ALL, each.split)]
    if not sentences:
        raise ConfigurationError(f"no labelled sentence of split {split.value}: give a file that has some")
    report = measure(
        sentences,
        lambda each: extract(each.text, each.role, context=each.context),
        policy_of(load_settings()).projects.long_term.promote_from,
    )
    by_type = {
        **{f"split {name}": figures for name, figures in report.by_split.items()},
        **report.by_type,
        "subjects": report.subjects,
        "bare source patterns": report.seed_patterns,
        "source patterns, held out": report.seed_patterns_held_out,
        "held out": report.held_out,
        "all": report.all,
    }
    print_judged(
        Printer(output),
        envelope(report),
        {("By split and type", "what"): by_type, ("By difficulty", "difficulty"): report.by_difficulty},
        show_misses=show_misses,
        said=f"{report.messages} messages; of the {report.negatives} that state nothing, a share of "
        f"{cell(report.negatives_clean)} was left alone; "
        f"F1 is {cell(report.f1_ratio)} times that of the source's bare patterns",
    )


@app.command(
    epilog=examples(
        "turntide lab eval topics",
        "turntide lab eval topics locomo10.json --embedder minilm --output json",
        "turntide lab eval topics dialogues.jsonl --where label=benign",
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
    output: Form = OutputFormat.TABLE,
) -> None:
    """Find the cosine above which a message joins a topic, for one embedder.

    Sessions are made of stretches of five dialogues each, cut in two and said in turn; two messages belong together if
    they come from one dialogue. The project's own fold sorts them into topics for every threshold; F1 is that of pairs
    of user messages. --output csv prints the curve alone. Needs no Kafka; no message is ever printed.
    """
    from jobs.lab.eval.dialogues import parse_conditions, read_dialogues
    from jobs.lab.eval.topics import measure, rows_of, show
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
    _print(output, report, rows_of(report.curve), lambda printed: show(printed, report))


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
    from jobs.lab.eval.dialogues import read_questions
    from jobs.lab.eval.retrieval import measure, recall_rows, show

    dialogues = read_questions(data, limit=limit_conversations)
    with progress_bar(f"retrieval, {embedder.value}") as progress:
        report = measure(dialogues, embedder.value, progress)
    _print(output, report, recall_rows(report), lambda printed: show(printed, report))


@app.command(
    epilog=examples(
        "turntide lab eval context",
        "turntide lab eval context --embedder minilm --output json",
        "turntide lab eval context talks.jsonl --one-user --output csv",
    )
)
def context(
    file: Annotated[Path | None, typer.Argument(help=_TALKS, show_default=False)] = None,
    *,
    embedder: Annotated[EmbedderName, typer.Option(help="Whose vectors are searched.")] = EmbedderName.WORDLLAMA,
    one_user: Annotated[bool, typer.Option("--one-user", help="All talks are one user's, which is harder.")] = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure how many questions about talks find their answer in the prompt that memory makes.

    Folds and indexes each talk as its own user's, then asks every question with budgets of 2,000, 1,000 and 500 tokens.
    Beside the prompt stand the first ten turns of the search, what retrieval gives, and ten turns by words alone.
    --output csv prints the rows alone. Needs no Kafka; no text is ever printed.
    """
    from jobs.lab.eval.context_answers import context_rows, measure, read_talks, show
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings, talks = load_settings(vectors={"embedder": embedder.value}), read_talks(file)
    with progress_bar(f"context, {embedder.value}") as progress:
        report = asyncio.run(measure(talks, embedder_of(settings), policy_of(settings), progress, one_user=one_user))
    _print(output, report, context_rows(report), lambda printed: show(printed, report))


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
    from jobs.lab.eval.dialogues import read_questions
    from jobs.lab.eval.tiers import measure
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings = load_settings(vectors={"embedder": embedder.value})
    dialogues = read_questions(data)
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
    from jobs.lab.bench.measuring import envelope

    printed = Printer(output)
    if output is OutputFormat.JSON:
        printed.record(envelope(report))
    elif output is OutputFormat.CSV:
        printed.rows("", rows)
    else:
        show(printed)
